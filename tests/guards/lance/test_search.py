"""Indexes and search: the traps that decide how this project builds and asks them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.dataset import LanceOperation
from lance.query import MatchQuery

from tests.guards.lance import chain
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path

    from lance.dataset import LanceDataset

DIMENSION: Final = 4
VECTOR: Final = pa.list_(pa.float32(), DIMENSION)
REPORTS: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("kind", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("body", pa.string()),
    ]
)
PLAIN_TEXT: Final[dict[str, Any]] = {"stem": False, "remove_stop_words": False}


def reports(**words: str) -> pa.Table:
    """One row per name; its word in every column that can be searched."""
    columns = [list(words), list(words.values()), [[word] for word in words.values()]]
    return pa.table([*columns, list(words.values())], schema=REPORTS)


def points(count: int, *, column: str = "place", start: int = 0) -> pa.Table:
    source = random.Random(start)
    vectors = [[source.gauss(0, 1) for _ in range(DIMENSION)] for _ in range(count)]
    ids = [f"p{number}" for number in range(start, start + count)]
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), (column, VECTOR)])
    return pa.table([ids, pa.array(vectors, VECTOR)], schema=schema)


def place(path: Path, rows: pa.Table) -> LanceDataset:
    return chain.append(chain.create(path / "table", rows.schema), rows)


def words_found(dataset: LanceDataset, query: MatchQuery) -> list[str]:
    found = dataset.to_table(columns=["id", "_score"], full_text_query=query)
    return sorted(found["id"].to_pylist())


def nearest(dataset: LanceDataset, target: list[float], **options: Any) -> list[str]:
    wanted = {"column": "place", "q": np.array(target, dtype=np.float32), "k": 1, **options}
    return dataset.to_table(columns=["id", "_distance"], nearest=wanted)["id"].to_pylist()


# --- Stable row ids ------------------------------------------------------------------------------


@each(
    ("column", "kind", "options"),
    [("kind", "BITMAP", {}), ("tags", "LABEL_LIST", {}), ("body", "INVERTED", PLAIN_TEXT)],
    ids=["bitmap", "label list", "inverted"],
)
@each("are_stable", [False, True], ids=["address", "stable"])
def test_stable_row_ids_find_rows_that_changed(
    column: str, kind: str, options: dict[str, Any], *, are_stable: bool, tmp_path: Path
) -> None:
    """Why tables do without stable row ids: the segment of the old row still answers for it."""
    empty = REPORTS.empty_table()
    uri = str(tmp_path / "reports")
    dataset = lance.write_dataset(empty, uri, enable_stable_row_ids=are_stable)
    dataset = chain.append(dataset, reports(changed="oak", other="oak"))
    dataset = chain.index(dataset, column, kind, chain.uncovered(dataset, column), **options)
    dataset = chain.upsert(dataset, reports(changed="elm"))
    dataset = chain.index(dataset, column, kind, chain.uncovered(dataset, column), **options)
    assert len(chain.segments(dataset, column)) == 2
    if column == "body":
        found = words_found(dataset, MatchQuery("oak", "body"))
    else:
        text = {"kind": "kind = 'oak'", "tags": "array_has_any(tags, ['oak'])"}[column]
        found = sorted(dataset.to_table(columns=["id"], filter=text)["id"].to_pylist())
    assert found == (["changed", "other"] if are_stable else ["other"])


# --- Coverage ------------------------------------------------------------------------------------


def test_indexes_of_detached_versions_are_used(tmp_path: Path) -> None:
    """The differential test would say nothing if Lance scanned instead."""
    dataset = place(tmp_path, points(300))
    dataset = chain.reindex(dataset, "id", "BTREE")
    dataset = chain.reindex(dataset, "place", "IVF_FLAT", metric="L2", num_partitions=2)
    dataset = chain.append(dataset, points(300, start=300))
    dataset = chain.index(dataset, "id", "BTREE", chain.uncovered(dataset, "id"))
    wanted = {"column": "place", "q": np.zeros(DIMENSION, np.float32), "k": 1, "metric": "L2"}
    assert "ScalarIndexQuery" in dataset.scanner(filter="id = 'p5'").explain_plan()
    plan = dataset.scanner(nearest=wanted, columns=["id", "_distance"]).explain_plan()
    assert "ANNSubIndex" in plan
    assert "KNNVectorDistance" in plan, "what no segment covers is searched as well"


def test_compaction_uncovers_what_it_rewrites(tmp_path: Path) -> None:
    """Why indexes are built again after a compaction; until then results stay right."""
    dataset = place(tmp_path, reports(one="oak"))
    dataset = chain.reindex(chain.append(dataset, reports(two="elm")), "id", "BTREE")
    assert chain.uncovered(dataset, "id") == []
    compacted = chain.compact(dataset)
    assert [fragment.fragment_id for fragment in compacted.get_fragments()] == [2]
    assert chain.uncovered(compacted, "id") == [2]
    assert compacted.to_table(filter="id = 'two'")["kind"].to_pylist() == ["elm"]


def test_an_overwrite_drops_every_index(tmp_path: Path) -> None:
    """Why an overwrite load plans its indexes anew."""
    dataset = chain.reindex(place(tmp_path, reports(one="oak")), "id", "BTREE")
    assert chain.overwrite(dataset, reports(two="elm")).describe_indices() == []


# --- Text ----------------------------------------------------------------------------------------


def test_a_text_segment_is_unreadable_until_it_is_finished(tmp_path: Path) -> None:
    """Why every text segment goes through the merge step, also a single one."""
    dataset = place(tmp_path, reports(one="oak"))
    unfinished = dataset.create_index_uncommitted(
        "body", "INVERTED", name="body_index", fragment_ids=[0], **PLAIN_TEXT
    )
    broken = chain.commit(dataset, LanceOperation.CreateIndex([unfinished], []))
    with pytest.raises(pa.ArrowInvalid, match=r"tokens\.lance"):
        words_found(broken, MatchQuery("oak", "body"))
    finished = chain.index(dataset, "body", "INVERTED", [0], **PLAIN_TEXT)
    assert words_found(finished, MatchQuery("oak", "body")) == ["one"]


def test_fuzzy_search_misses_what_no_segment_covers(tmp_path: Path) -> None:
    """Why fuzzy search needs full coverage, and exact search does not."""
    bare = place(tmp_path, reports(one="oak"))
    fuzzy, exact = MatchQuery("oat", "body", fuzziness=1), MatchQuery("oak", "body")
    indexed = chain.index(bare, "body", "INVERTED", [0], **PLAIN_TEXT)
    grown = chain.append(indexed, reports(two="oak"))
    assert [words_found(at, fuzzy) for at in (bare, indexed, grown)] == [[], ["one"], ["one"]]
    assert [words_found(at, exact) for at in (bare, grown)] == [["one"], ["one", "two"]]


def test_automatic_fuzziness_is_exact(tmp_path: Path) -> None:
    """Why the distance is always given."""
    indexed = chain.reindex(place(tmp_path, reports(one="oak")), "body", "INVERTED", **PLAIN_TEXT)
    assert words_found(indexed, MatchQuery("oat", "body", fuzziness=None)) == []


# --- Vectors -------------------------------------------------------------------------------------


def test_the_metric_is_not_remembered(tmp_path: Path) -> None:
    """Why the metric is part of every question: without it the answer depends on the index."""
    vectors = pa.array([[9, 0, 0, 0], [0.5, 0.5, 0, 0]], VECTOR)
    bare = place(tmp_path, pa.table([["same way, far", "near"], vectors], schema=points(0).schema))
    indexed = chain.index(bare, "place", "IVF_FLAT", [0], metric="cosine", num_partitions=1)
    target = [1.0, 0.0, 0.0, 0.0]
    assert nearest(bare, target) == ["near"], "L2 without an index"
    assert nearest(indexed, target) == ["same way, far"], "the metric of the index with one"
    assert nearest(indexed, target, use_index=False) == ["near"], "L2 again beside the index"
    for at in (bare, indexed):
        assert nearest(at, target, metric="cosine") == ["same way, far"]
        assert nearest(at, target, metric="L2") == ["near"]


@pytest.mark.parametrize(
    ("kind", "rows", "options", "message"),
    [
        ("IVF_FLAT", 2, {"num_partitions": 3}, "cannot train 3 centroids with 2 vectors"),
        ("IVF_PQ", 255, {"num_partitions": 1, "num_sub_vectors": 2}, "Requires 256 rows"),
    ],
    ids=["fewer rows than partitions", "fewer rows than codes"],
)
def test_small_delta_segments_are_refused(
    kind: str, rows: int, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """Why a delta segment is built only from enough rows: the clamp counts the whole table."""
    dataset = place(tmp_path, points(600))
    dataset = chain.index(dataset, "place", kind, [0], metric="L2", **options)
    dataset = chain.append(dataset, points(rows, start=600))
    with pytest.raises(RuntimeError, match=message):
        chain.index(dataset, "place", kind, [1], metric="L2", **options)


def test_a_small_table_is_indexed_in_name_only(tmp_path: Path) -> None:
    """Below 256 rows a product-quantised index covers nothing and every search is exact."""
    options = {"metric": "L2", "num_partitions": 1, "num_sub_vectors": 2}
    dataset = chain.reindex(place(tmp_path, points(255)), "place", "IVF_PQ", **options)
    assert dataset.stats.index_stats("place_index")["num_unindexed_rows"] == 255


@pytest.mark.parametrize("column", ["flat", "row_id"])
def test_some_names_cannot_carry_a_vector_index(column: str, tmp_path: Path) -> None:
    """Why such columns are searched without an index: the build breaks, once with a panic.

    A panic is no Exception, so it passes every ordinary handler.
    """
    dataset = place(tmp_path, points(10, column=column))
    with pytest.raises(BaseException, match=r"Option::unwrap|row_id not found") as caught:
        chain.index(dataset, column, "IVF_FLAT", [0], metric="L2", num_partitions=1)
    assert isinstance(caught.value, Exception) == (column == "row_id")
