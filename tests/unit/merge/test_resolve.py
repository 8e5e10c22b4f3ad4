"""Choices from files: what is accepted, and everything that is wrong at once."""

from __future__ import annotations

import json

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.merge.model import MergeConflict, MergeConflictKind, MergeSide
from omnigraph_core.merge.resolve import check_choices, parse_choices
from tests.support.cases import each

ENTRIES = [
    {"table_key": "node:Part", "row_id": "p1", "choose": "ours"},
    {"table_key": "edge:Holds", "row_id": "h\u20281", "choose": "theirs"},
]
CHOICES = {
    ("node:Part", "p1"): MergeSide.OURS,
    ("edge:Holds", "h\u20281"): MergeSide.THEIRS,
}


@each(
    "text",
    [
        json.dumps(ENTRIES),
        json.dumps(ENTRIES, indent=2),
        json.dumps({"outcome": "merged", "merge_conflicts": ENTRIES}),
        "\n\n".join(json.dumps(entry, ensure_ascii=False) for entry in ENTRIES) + "\n",
        "\r\n".join(json.dumps(entry) for entry in ENTRIES),
        json.dumps([*ENTRIES, ENTRIES[0]]),
    ],
)
def test_forms(text: str) -> None:
    assert parse_choices(text) == CHOICES


def test_nothing_is_chosen() -> None:
    assert parse_choices("") == parse_choices("[]") == parse_choices(" \n") == {}


def test_conflicts_as_they_are_printed() -> None:
    printed = [
        MergeConflict("node:Part", "p1", MergeConflictKind.DIVERGENT_UPDATE, "…").to_json(),
        MergeConflict("node:Part", "p2", MergeConflictKind.DELETE_VS_UPDATE, "…").to_json(),
        MergeConflict("edge:Holds", None, MergeConflictKind.CARDINALITY_VIOLATION, "…").to_json(),
    ]
    printed[0]["choose"] = "theirs"
    assert parse_choices(json.dumps(printed)) == {("node:Part", "p1"): MergeSide.THEIRS}


@each(
    ("text", "told"),
    [
        ("[1]", "entry 1: an entry is an object"),
        ('"x"', "entry 1: an entry is an object"),
        ('{"table_key": "node:Part", "choose": "ours"}', "entry 1: `table_key` and `row_id`"),
        ('{"table_key": "node:Part", "row_id": "p1"}', "`choose` is null, give `ours` or `theirs`"),
        (
            '{"table_key": "node:Part", "row_id": "p1", "choose": "mine"}',
            'node:Part:p1: `choose` is "mine"',
        ),
        (
            '{"table_key": "edge:H", "row_id": "h", "kind": "orphan_edge", "choose": "ours"}',
            "edge:H:h: choosing a side does not settle a conflict of `orphan_edge`",
        ),
        ('{"table_key": "x"}\nnonsense', "line 2: not JSON"),
        (json.dumps([ENTRIES[0], {**ENTRIES[0], "choose": "theirs"}]), "both sides are chosen"),
    ],
)
def test_mistakes(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_choices(text)
    assert told in caught.value.message


def test_all_mistakes_are_told() -> None:
    lines = [*("?" for _ in range(30)), json.dumps({**ENTRIES[0], "choose": 1})]
    with pytest.raises(ConfigError) as caught:
        parse_choices("\n".join(lines))
    assert "line 1: " in caught.value.message
    assert "line 20: " in caught.value.message
    assert "and 11 more" in caught.value.message


def test_choices_of_a_program() -> None:
    assert check_choices({("node:Part", "p1"): "ours"}) == {("node:Part", "p1"): MergeSide.OURS}
    with pytest.raises(ConfigError) as caught:
        check_choices({("node:Part", "p1"): "mine", ("node:Part", "p2"): "both"})
    assert "node:Part:p1: `mine` is chosen" in caught.value.message
    assert "node:Part:p2: `both` is chosen" in caught.value.message
