"""Keys by hash: equal values meet, and a task that is done again emits the same bytes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph_core.schema.catalog import EdgeType
from omnigraph_core.spark.ingest import keys
from omnigraph_core.spark.ingest.hashing import Hasher
from omnigraph_core.spark.ingest.inspect import unified
from omnigraph_core.write.batches import FRESH
from omnigraph_core.write.collect import NUMBER

HASHER = Hasher(7)


def pairs(hashes: Any) -> list[tuple[int, int]]:
    return list(zip(hashes[0].tolist(), hashes[1].tolist(), strict=True))


def test_equal_texts_have_equal_hashes_however_they_are_cut() -> None:
    texts = ["", "a", "b", "ab", "12345678", "123456789", "x" * 500, "x" * 499, "é", "\0", "\0\0"]
    whole = pairs(HASHER.texts(pa.array(texts)))
    assert len(set(whole)) == len(texts)
    assert (0, 0) not in whole
    assert pairs(HASHER.texts(pa.chunked_array([texts[:3], [], texts[3:]], pa.utf8()))) == whole
    assert pairs(HASHER.texts(pa.array(["y", *texts]).slice(1))) == whole
    assert pairs(Hasher(8).texts(pa.array(texts))) != whole, "another job, other hashes"
    assert pairs(HASHER.texts(pa.array([], pa.utf8()))) == []


def test_many_texts_have_different_hashes() -> None:
    one, two = HASHER.texts(pa.array([f"n{number}" for number in range(50_000)]))
    for hashes in (one, two):
        assert len(np.unique(hashes)) == 50_000
        counts = np.bincount((hashes >> np.uint64(60)).astype(np.int64), minlength=16)
        assert counts.min() > 2_500, "spread over all partitions"


def test_tuples_are_told_apart_by_all_their_values() -> None:
    left, right = pa.array(["a", "b", "a", "ab"]), pa.array(["b", "a", "b", ""])
    found = pairs(HASHER.tuples([left, right]))
    assert found[0] == found[2]
    assert len(set(found)) == 3


def test_codes_tell_hashes_apart_that_share_a_half() -> None:
    one = np.array([(1, 1), (1, 2), (1, 1)], keys.HASH)
    two = np.array([(1, 2), (3, 1)], keys.HASH)
    (first, second), count = unified(one, two)
    assert count == 3
    assert first[0] == first[2] != first[1] == second[0]


def edges(count: int, *, is_fresh: bool) -> pa.Table:
    return pa.table(
        {
            "id": [f"e{number}" for number in range(count)],
            "src": ["hub"] * (count - 1) + ["other"],
            "dst": [f"n{number}" for number in range(count)],
            FRESH: [is_fresh] * count,
            NUMBER: pa.array(range(count), pa.int64()),
            keys.PLACE: pa.array(range(count), pa.int64()),
        }
    )


def limited(minimum: int, maximum: int | None) -> Any:
    """As much of an edge type as keys are made by."""
    limits = SimpleNamespace(minimum=minimum, maximum=maximum)
    edge = object.__new__(EdgeType)
    for name, value in {"cardinality": limits, "unique": ()}.items():
        object.__setattr__(edge, name, value)
    return edge


def test_a_hub_is_one_key_of_its_part() -> None:
    found = dict(keys._given_keys(HASHER, "edge:E", limited(0, None), edges(1_000, is_fresh=True)))
    ends = found["end edge:E src"]
    assert sorted(ends["count"].tolist()) == [1, 999]
    assert len(found["end edge:E dst"]) == 1_000
    assert len(found["id edge:E"]) == 0, "nobody has ids that are fresh"


def test_edges_beyond_every_limit_are_counted_without_their_ids() -> None:
    rows = edges(1_000, is_fresh=False)
    found = dict(keys._given_keys(HASHER, "edge:E", limited(1, 3), rows))
    assert len(found["owner edge:E"]) == 1, "the source with one edge"
    assert found["loose edge:E"]["count"].tolist() == [999]
    few = pa.concat_tables([rows.slice(0, 2), rows.slice(0, 1)])
    found = dict(keys._given_keys(HASHER, "edge:E", limited(1, 3), few))
    assert len(found["owner edge:E"]) == 2, "an edge that is given twice is one edge"
    assert len(found["loose edge:E"]) == 0


def test_blocks_hold_the_keys_of_their_range_of_hashes() -> None:
    hashes = HASHER.texts(pa.array([f"n{number}" for number in range(500)]))
    given = keys._keys("claimed node:N", hashes)
    blocks = keys._blocks(3, given, 7)
    assert blocks.ends[0] == 0
    assert blocks.ends[-1] == given.nbytes
    for partition in range(7):
        content = np.asarray(blocks.content)[blocks.ends[partition] : blocks.ends[partition + 1]]
        found = content.view(keys.HASH)["h1"].astype(object)
        assert all(partition * 2**64 // 7 <= h1 < (partition + 1) * 2**64 // 7 for h1 in found)
    again = keys._blocks(3, given[np.argsort(given["h2"])], 7)
    assert bytes(np.asarray(again.content)) == bytes(np.asarray(blocks.content))
