"""Tables of three snapshots: which are one, and what the versions alone decide."""

from __future__ import annotations

from omnigraph_core.manifest.image import TableEntry, TableOperation
from omnigraph_core.merge.tables import SideTables, TableCase, Way, is_same_type, pair_tables
from tests.support.cases import each


def entry(key: str, version: int, location: str | None = None) -> TableEntry:
    return TableEntry(
        table_key=key,
        location=location or f"at/{key}",
        table_version=1,
        physical_version=version,
        branch=None,
        row_count=0,
        fragment_count=0,
        operation=TableOperation.APPEND,
    )


def paired(
    base: list[TableEntry],
    ours: list[TableEntry],
    theirs: list[TableEntry],
    our_names: dict[str, str] | None = None,
    their_names: dict[str, str] | None = None,
    *,
    continued: str | None = None,
) -> list[TableCase]:
    same = {item.table_key: item.table_key for item in (*base, *ours, *theirs)}

    def side(entries: list[TableEntry], names: dict[str, str] | None) -> SideTables:
        return SideTables(entries, same if names is None else names, lambda _: continued)

    return list(pair_tables(base, side(ours, our_names), side(theirs, their_names)))


@each(
    ("base", "ours", "theirs", "way"),
    [
        (1, 1, 1, Way.KEEP),
        (1, 2, 1, Way.KEEP),
        (1, 1, 2, Way.ADOPT),
        (1, 2, 2, Way.KEEP),
        (1, 2, 3, Way.ROWS),
        (None, 2, 2, Way.KEEP),
        (None, 2, 3, Way.ROWS),
        (None, 2, None, Way.KEEP),
        (None, None, 2, Way.ADOPT),
        (1, 1, None, Way.REMOVE),
        (1, 2, None, Way.REMOVE),
        (1, None, 1, Way.NONE),
        (1, None, 2, Way.NONE),
        (1, None, None, Way.NONE),
    ],
)
def test_what_versions_decide(
    base: int | None, ours: int | None, theirs: int | None, way: Way
) -> None:
    sides = [[] if side is None else [entry("node:A", side)] for side in (base, ours, theirs)]
    (case,) = paired(*sides)
    assert case.way is way
    assert case.is_ours_changed == (base != ours)
    assert case.is_theirs_changed == (base != theirs)


def test_a_renamed_type_keeps_its_table() -> None:
    (case,) = paired(
        [entry("node:A", 1, "x")],
        [entry("node:A", 2, "x")],
        [entry("node:B", 1, "x")],
        {"node:A": "node:B"},
        {"node:B": "node:B"},
    )
    assert (case.key, case.label, case.way) == ("node:B", "node:A", Way.KEEP)


def test_a_type_made_anew_has_another_table() -> None:
    first, second = paired(
        [entry("node:A", 1, "x")], [entry("node:A", 1, "x")], [entry("node:A", 1, "y")]
    )
    assert {first.way, second.way} == {Way.REMOVE, Way.ADOPT}


def test_tables_that_are_new_on_both_sides_are_one() -> None:
    (case,) = paired([], [entry("node:A", 1, "x")], [entry("node:A", 1, "y")])
    assert (case.way, case.base) == (Way.ROWS, None)
    assert case.ours is not None
    assert case.theirs is not None
    assert (case.ours.location, case.theirs.location) == ("x", "y")


def test_tables_that_were_merged_stay_one_wherever_they_are() -> None:
    """The base has the source's, from before; the target has kept its own."""
    (case,) = paired(
        [entry("node:A", 1, "y")],
        [entry("node:A", 2, "x")],
        [entry("node:A", 3, "y")],
        continued="node:A",
    )
    assert (case.way, case.key) == (Way.ROWS, "node:A")
    assert [item and item.location for item in (case.base, case.ours, case.theirs)] == list("yxy")


@each(
    ("ours", "theirs", "way"),
    [
        ([entry("node:A", 2, "x")], [], Way.REMOVE),
        ([], [entry("node:A", 2, "x")], Way.NONE),
        ([entry("node:A", 2, "x")], [entry("node:A", 1, "y")], Way.KEEP),
        ([entry("node:A", 1, "y")], [entry("node:A", 2, "x")], Way.ADOPT),
        ([entry("node:A", 2, "x")], [entry("node:A", 2, "x")], Way.KEEP),
        ([entry("node:A", 2, "x")], [entry("node:A", 2, "z")], Way.ROWS),
    ],
)
def test_a_table_may_continue_elsewhere(
    ours: list[TableEntry], theirs: list[TableEntry], way: Way
) -> None:
    (case,) = paired([entry("node:A", 1, "y")], ours, theirs, continued="node:A")
    assert case.way is way


def test_a_renamed_type_may_continue_elsewhere() -> None:
    (case,) = paired(
        [entry("node:A", 1, "y")],
        [entry("node:B", 2, "x")],
        [entry("node:A", 3, "y")],
        {"node:B": "node:B"},
        {"node:A": "node:B"},
        continued="node:B",
    )
    assert (case.way, case.key) == (Way.ROWS, "node:B")


def test_a_type_that_goes_may_have_been_elsewhere() -> None:
    (case,) = paired(
        [entry("node:A", 1, "y")], [entry("node:A", 2, "x")], [], {}, {}, continued="node:A"
    )
    assert (case.way, case.key) == (Way.REMOVE, None)


@each(
    ("one", "other", "known", "is_same"),
    [
        (5, 5, {5}, True),
        (5, 5, set(), True),
        (5, 7, set(), True),
        (7, 5, {7}, True),
        (5, 7, {7}, True),
        (5, 7, {5}, False),
        (7, 5, {5}, False),
        (5, 7, {5, 7}, False),
    ],
)
def test_which_types_of_one_name_are_one(
    one: int, other: int, known: set[int], is_same: bool
) -> None:
    assert is_same_type(one, other, known) is is_same


def test_a_new_table_is_not_the_one_that_the_other_side_has_kept() -> None:
    cases = paired(
        [entry("node:A", 1, "x")],
        [entry("node:A", 1, "x")],
        [entry("node:Old", 1, "x"), entry("node:A", 1, "y")],
        {"node:A": "node:Old"},
        {"node:Old": "node:Old", "node:A": "node:A"},
    )
    assert {(case.key, case.way) for case in cases} == {
        ("node:Old", Way.KEEP),
        ("node:A", Way.ADOPT),
    }


def test_what_the_merged_schema_has_no_type_for_has_no_key() -> None:
    (case,) = paired([entry("node:A", 1)], [entry("node:A", 1)], [], {}, {})
    assert (case.key, case.way) == (None, Way.REMOVE)


def test_cases_are_in_order() -> None:
    tables = [entry(f"node:{name}", 1) for name in "CAB"]
    assert [case.label for case in paired(tables, tables, tables)] == ["node:A", "node:B", "node:C"]
