"""Ids lead to the numbers of their rows, one by one or many at once, whatever their hashes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.storage.row_space import FragmentState
from omnigraph_core.topology import identity_map
from omnigraph_core.topology.identity_map import build_identity_map

COUNT = 6_000
IDS = pa.array([f"part-{n}" for n in range(COUNT)])


def state(number: int, rows: int) -> FragmentState:
    return FragmentState(number, (f"{number}.lance",), None, rows)


def hash_badly(texts: pa.StringArray) -> np.ndarray:
    """All texts of one length, and so nearly all, have the same hash."""
    return np.array([len(text or "") for text in texts.to_pylist()], np.uint64)


@pytest.fixture(params=["good hashes", "bad hashes"])
def ids(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> pa.StringArray:
    if request.param == "good hashes":
        return IDS
    monkeypatch.setattr(identity_map, "hash_texts", hash_badly)
    monkeypatch.setattr(identity_map, "hash_text", len)
    return IDS.slice(0, 300)


def test_every_id_has_the_number_of_its_row(ids: pa.StringArray) -> None:
    made = build_identity_map(ids, (), None)
    order = np.random.default_rng(1).permutation(len(ids)).astype(np.int32)
    assert made.numbers(ids, ids.take(pa.array(order))).tolist() == order.tolist()
    assert [made.number(ids, ids[n].as_py()) for n in (0, 17, 299)] == [0, 17, 299]


@pytest.mark.parametrize("repeated", [1, 2_000], ids=["few", "many"])
def test_what_is_not_there_has_none(ids: pa.StringArray, repeated: int) -> None:
    made = build_identity_map(ids, (), None)
    wanted = pa.array(["part-17", "part-none", None, "", "part-18"] * repeated)
    assert made.numbers(ids, wanted).tolist() == [17, -1, -1, -1, 18] * repeated
    assert made.number(ids, "part-none") == -1


def test_nothing_is_in_an_empty_table() -> None:
    nothing = pa.array([], pa.utf8())
    made = build_identity_map(nothing, (), None)
    assert made.number(nothing, "part-1") == -1
    assert made.numbers(nothing, IDS).tolist() == [-1] * COUNT
    assert build_identity_map(IDS, (), None).numbers(IDS, nothing).tolist() == []


def test_numbers_that_are_remembered_stay_few_and_right() -> None:
    made = build_identity_map(IDS, (), None)
    for _ in range(2):
        assert [made.number(IDS, f"part-{n}") for n in range(3_000)] == list(range(3_000))
    assert 0 < len(made.recent) <= 1_000
    assert all(IDS[number].as_py() == id for id, number in made.recent.items())


def test_a_version_that_grew_takes_the_older_map_over(monkeypatch: pytest.MonkeyPatch) -> None:
    states = (state(0, 4_000), state(1, 2_000))
    older = build_identity_map(IDS.slice(0, 4_000), states[:1], None)
    hashed: list[int] = []
    original = identity_map.hash_texts

    def counting(texts: pa.StringArray) -> np.ndarray:
        hashed.append(len(texts))
        return original(texts)

    monkeypatch.setattr(identity_map, "hash_texts", counting)
    grown = build_identity_map(IDS, states, older)
    assert hashed == [2_000]
    assert grown.numbers(IDS, IDS).tolist() == list(range(COUNT))
    assert older.numbers(IDS.slice(0, 4_000), IDS.slice(3_990, 20)).tolist() == [
        *range(3_990, 4_000),
        *[-1] * 10,
    ]


def test_a_version_that_lost_rows_is_mapped_anew() -> None:
    older = build_identity_map(IDS, (state(0, COUNT),), None)
    left = IDS.slice(1)
    fewer = FragmentState(0, ("0.lance",), "7-7", COUNT - 1)
    made = build_identity_map(left, (fewer,), older)
    assert made.number(left, "part-0") == -1
    assert made.number(left, "part-1") == 0
