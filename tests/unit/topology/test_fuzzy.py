"""Spellings within some edits of a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.topology import fuzzy
from omnigraph_core.topology.fuzzy import spellings_of
from tests.support import text_oracle
from tests.support.cases import each

if TYPE_CHECKING:
    import pytest

WORDS = (
    *(
        "bolt",
        "bolts",
        "boil",
        "blot",
        "colt",
        "b",
        "olt",
        "xyz",
        "boltbolt",
        "aaaa",
        "aaab",
        "abab",
    ),
    *("ωmega", "omega", "straße", "strasse", "kitten", "sitting", "saturday", "sunday"),
    *("i̇stanbul", "istanbul", "深圳", "深圳市"),
    *("q" * 300, "q" * 299 + "r", ""),
)


@each("edits", [0, 1, 2, 3, 5, 8, 300])
@each("cells", [1, 64, 1 << 20])
def test_words_within_edits(edits: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzy, "_CELLS", cells)
    spellings = spellings_of(pa.array(WORDS, pa.large_string()))
    for word in (*WORDS[:-3], "bolds", "zz", "深川"):
        expected = [text_oracle.distance(word, other) <= edits for other in WORDS]
        assert spellings.near(word, edits).tolist() == expected


def test_no_words() -> None:
    assert spellings_of(pa.array([], pa.large_string())).near("bolt", 2).tolist() == []
