"""Texts lead to the numbers of their rows, one by one or many at once, whatever their hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.topology import text_map
from omnigraph_core.topology.text_map import EVERYTHING, map_texts
from tests.support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNT = 6_000
IDS = pa.array([f"part-{n}" for n in range(COUNT)])


class Only:
    """Numbers that count."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = frozenset(numbers)

    def has(self, number: int) -> bool:
        return number in self._numbers

    def which_live(self, numbers: np.ndarray) -> np.ndarray:
        return np.array([number in self._numbers for number in numbers.tolist()], np.bool_)


def hash_badly(texts: pa.StringArray) -> np.ndarray:
    """All texts of one length, and so nearly all, have the same hash."""
    return np.array([len(text or "") for text in texts.to_pylist()], np.uint64)


@pytest.fixture(params=["good hashes", "bad hashes"])
def ids(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> pa.StringArray:
    if request.param == "good hashes":
        return IDS
    monkeypatch.setattr(text_map, "hash_texts", hash_badly)
    monkeypatch.setattr(text_map, "hash_text", len)
    return IDS.slice(0, 300)


def test_every_text_has_the_number_of_its_row(ids: pa.StringArray) -> None:
    made = map_texts(ids)
    order = np.random.default_rng(1).permutation(len(ids)).astype(np.int32)
    assert made.numbers(ids, ids.take(pa.array(order)), EVERYTHING).tolist() == order.tolist()
    found = [made.number(ids, ids[n].as_py(), EVERYTHING) for n in (0, 17, 299)]
    assert found == [0, 17, 299]


@pytest.mark.parametrize("repeated", [1, 2_000], ids=["few", "many"])
def test_what_is_not_there_has_none(ids: pa.StringArray, repeated: int) -> None:
    made = map_texts(ids)
    wanted = pa.array(["part-17", "part-none", None, "", "part-18"] * repeated)
    assert made.numbers(ids, wanted, EVERYTHING).tolist() == [17, -1, -1, -1, 18] * repeated
    assert made.number(ids, "part-none", EVERYTHING) == -1


def test_nothing_is_in_an_empty_table() -> None:
    nothing = pa.array([], pa.utf8())
    made = map_texts(nothing)
    assert made.number(nothing, "part-1", EVERYTHING) == -1
    assert made.numbers(nothing, IDS, EVERYTHING).tolist() == [-1] * COUNT
    assert map_texts(IDS).numbers(IDS, nothing, EVERYTHING).tolist() == []


def test_numbers_that_are_remembered_are_asked_about_again() -> None:
    made = map_texts(pa.array(["bolt", "nut"]))
    texts = pa.array(["bolt", "nut", "bolt"])
    assert made.number(texts, "bolt", Only([0, 1])) == 0
    grown = made.extended(texts)
    assert grown.number(texts, "bolt", Only([1, 2])) == 2
    assert grown.number(texts, "bolt", Only([0, 1])) == 0
    assert grown.number(texts, "bolt", Only([1])) == -1


def test_numbers_that_are_remembered_stay_few() -> None:
    made = map_texts(IDS)
    for _ in range(2):
        found = [made.number(IDS, f"part-{n}", EVERYTHING) for n in range(3_000)]
        assert found == list(range(3_000))
    assert 0 < len(made._recent) <= 1_000


def test_only_what_is_new_is_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    older = map_texts(IDS.slice(0, 5_990))
    hashed: list[int] = []
    original = text_map.hash_texts

    def counting(texts: pa.StringArray) -> np.ndarray:
        hashed.append(len(texts))
        return original(texts)

    monkeypatch.setattr(text_map, "hash_texts", counting)
    grown = older.extended(IDS)
    assert hashed == [10]
    assert grown.extended(IDS) is grown
    assert grown._levels[1] is older._levels[1], "what was there is shared"
    monkeypatch.undo()
    assert grown.numbers(IDS, IDS, EVERYTHING).tolist() == list(range(COUNT))
    assert older.numbers(IDS, IDS.slice(5_980, 20), EVERYTHING).tolist() == [
        *range(5_980, 5_990),
        *[-1] * 10,
    ]


@settings(max_examples=examples(60))
@given(
    st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), max_size=8),
    st.booleans(),
    st.data(),
)
def test_a_map_that_grew_finds_what_a_loop_finds(
    steps: list[list[str]], is_folded: bool, data: st.DataObject
) -> None:
    """Texts repeat; of each, some numbers count."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_map, "_LEAST_APART", 1 if is_folded else 100)
        patch.setattr(text_map, "_FEW", data.draw(st.sampled_from([0, 100])))
        made, texts = map_texts(pa.array([], pa.utf8())), list[str]()
        for step in steps:
            texts += step
            made = made.extended(pa.array(texts, pa.utf8()))
            alone = {text: data.draw(st.sampled_from(_places(texts, text))) for text in set(texts)}
            wanted = [*"abcdefg"]
            column, living = pa.array(texts, pa.utf8()), Only([*alone.values()])
            found = made.numbers(column, pa.array(wanted), living).tolist()
            assert found == [alone.get(text, -1) for text in wanted]
            several = Only(data.draw(st.lists(st.integers(0, max(len(texts) - 1, 0)))))
            for text in wanted:
                numbers = [place for place in _places(texts, text) if several.has(place)]
                assert made.numbers_with(column, text, several).tolist() == numbers


def _places(texts: list[str], wanted: str) -> list[int]:
    return [place for place, text in enumerate(texts) if text == wanted]
