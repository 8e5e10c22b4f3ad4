"""Every version a row can have in base, ours and theirs: the decision and the exact writes.

First as the only row of its table, then all of them together among thousands of others, with rows
moved by optimize, both strategies and both resolutions; each time for a node and an edge alike.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import MergeConflicts
from omnigraph_core.merge.model import TableDisposition
from omnigraph_core.storage.row_space import fragment_states
from tests.support.examples import LONG
from tests.support.merge_worlds import delete, graph_of, load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.merge.model import MergeResult
    from tests.support.merge_oracle import Graph, Row

SCHEMA = """
node Anchor {
    name: String @key
}
node Item {
    code: String @key
    x: I32?
    y: I32?
}
edge Link: Anchor -> Anchor {
    x: I32?
    y: I32?
}
"""
ITEM, LINK = "node:Item", "edge:Link"
KEYS = (ITEM, LINK)
OTHERS = 3_000 if LONG else 1_000

VALUES = {"a": (1, 0), "b": (2, 0), "c": (0, 3), "same": (0, 0), "rewritten": (0, 0)}
"""`a` and `b` differ in `x`, `c` in `y` alone."""
ABSENT, GONE = "absent", "gone"
"""A row that never was, and one that was deleted again after it had been added."""

KEEP, INSERT, UPDATE, DELETE = "keep", "insert", "update", "delete"
DI, DU, DD = "divergent_insert", "divergent_update", "delete_vs_update"
Versions = tuple[str, str, str]
"""Of base, ours and theirs."""


def grid(base: str, theirs: str, rows: Iterable[str]) -> dict[Versions, str]:
    """Decisions by versions: theirs across, ours down."""
    words = {"k": KEEP, "i": INSERT, "u": UPDATE, "d": DELETE, "DI": DI, "DU": DU, "DD": DD}
    return {
        (base, ours, their): words[word]
        for ours, *cells in (row.split() for row in rows)
        for their, word in zip(theirs.split(), cells, strict=True)
    }


DECISIONS = {
    **grid(
        "absent", "         absent gone  a   b   c", (
            "absent     k      k     i   i   i ",
            "gone       k      k     i   i   i ",
            "a          k      k     k   DI  DI",
            "b          k      k     DI  k   DI",
            "c          k      k     DI  DI  k ",
        ),
    ),
    **grid(
        "present", "        absent same rewritten a   b   c", (
            "absent     k      k    k         DD  DD  DD",
            "same       d      k    k         u   u   u ",
            "rewritten  d      k    k         u   u   u ",
            "a          DD     k    k         k   DU  DU",
            "b          DD     k    k         DU  k   DU",
            "c          DD     k    k         DU  DU  k ",
        ),
    ),
}  # fmt: skip
BY_PROPERTY = {
    ("present", "a", "c"),
    ("present", "c", "a"),
    ("present", "b", "c"),
    ("present", "c", "b"),
}
"""What a merge by property decides and one by row does not."""
RULES = [(strategy, side) for strategy in ("row", "property") for side in (None, "ours", "theirs")]


def decision(versions: Versions, strategy: str, side: str | None) -> str:
    """What is written to ours, or the kind of conflict."""
    found = DECISIONS[versions]
    if found not in (DI, DU, DD):
        return found
    if strategy == "property" and versions in BY_PROPERTY:
        return UPDATE
    if side is None:
        return found
    _, ours, theirs = versions
    if side == "ours":
        return KEEP
    return INSERT if ours == ABSENT else DELETE if theirs == ABSENT else UPDATE


def result_of(versions: Versions, strategy: str, side: str | None) -> tuple[int, int] | None:
    """The values of the row afterwards, None if there is none."""
    _, ours, theirs = versions
    if decision(versions, strategy, side) == KEEP:
        return VALUES.get(ours)
    if strategy == "property" and versions in BY_PROPERTY:
        return (max(VALUES[ours][0], VALUES[theirs][0]), 3)
    return VALUES.get(theirs)


def test_the_table_is_complete() -> None:
    sides = {"absent": 5, "present": 6}
    assert Counter(base for base, _, _ in DECISIONS) == {b: n * n for b, n in sides.items()}


def row(key: str, id: str, values: tuple[int, int]) -> Row:
    ends = {"src": '"left"', "dst": '"right"'} if key == LINK else {"code": json.dumps(id)}
    return ends | {"x": str(values[0]), "y": str(values[1])}


def records(id: str, values: tuple[int, int]) -> list[dict[str, Any]]:
    """A node and an edge with these values."""
    data = {"x": values[0], "y": values[1]}
    return [
        {"type": "Item", "data": {"code": id, **data}},
        {"edge": "Link", "from": "left", "to": "right", "data": {"id": id, **data}},
    ]


def remove(og: Omnigraph, branch: str, ids: list[str]) -> None:
    if ids:
        delete(og, branch, "Item", ids)
        delete(og, branch, "Link", ids)


def change(og: Omnigraph, branch: str, versions: dict[str, str]) -> None:
    """Give rows of a branch their version, by id."""
    written = {id: VALUES.get(v, (9, 9)) for id, v in versions.items() if v not in (ABSENT, "same")}
    if written:
        load(og, branch, [r for id, values in written.items() for r in records(id, values)])
    remove(og, branch, [id for id, version in versions.items() if version == GONE])


def start(root: Any) -> Omnigraph:
    og = Omnigraph.init(str(root / "graph"), SCHEMA)
    load(og, "main", [{"type": "Anchor", "data": {"name": name}} for name in ("left", "right")])
    return og


def conflicts_of(og: Omnigraph, source: str, branch: str, strategy: str) -> set[tuple[str, ...]]:
    head = og.head_commit_id_for_branch(branch)
    with pytest.raises(MergeConflicts) as caught:
        og.branch_merge(source, into=branch, strategy=strategy)
    assert og.head_commit_id_for_branch(branch) == head
    listed = caught.value.conflicts
    tried = og.branch_merge(source, into=branch, strategy=strategy, dry_run=True)
    assert tried.to_json()["merge_conflicts"] == list(listed)
    found = [(str(c["table_key"]), str(c["row_id"]), str(c["kind"])) for c in listed]
    assert found == sorted(set(found))
    return set(found)


def counts(result: MergeResult, key: str) -> tuple[int, int, int, int]:
    found = {table.table_key: table for table in result.tables}.get(key)
    return (found.inserted, found.updated, found.deleted, found.conflicts) if found else (0,) * 4


def disposition(result: MergeResult, key: str) -> TableDisposition:
    found = {table.table_key: table.disposition for table in result.tables}
    return found.get(key, TableDisposition.KEPT)


# One row by itself


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """A branch per base, and off it one per version of the row for ours and for theirs."""
    og = start(tmp_path_factory.mktemp("single"))
    for base in ("absent", "present"):
        og.branch_create(base)
        if base == "present":
            load(og, base, records("r", (0, 0)))
        for side, place in (("ours", 1), ("theirs", 2)):
            for version in dict.fromkeys(v[place] for v in DECISIONS if v[0] == base):
                branch = f"{side}-{base}-{version}"
                og.branch_create(branch, source=base)
                if base == "present" and version == ABSENT:
                    remove(og, branch, ["r"])
                else:
                    change(og, branch, {"r": version})
    return og


@pytest.mark.parametrize(("base", "ours", "theirs"), DECISIONS)
def test_the_only_row(single: Omnigraph, base: str, ours: str, theirs: str) -> None:
    versions = (base, ours, theirs)
    source = f"theirs-{base}-{theirs}"
    for strategy, side in RULES:
        if side is not None and DECISIONS[versions] not in (DI, DU, DD):
            continue  # there is nothing to choose
        if not (LONG or (strategy, side) == ("row", None) or versions in BY_PROPERTY):
            continue  # shown by `test_among_others`
        branch = "-".join(("cell", *versions, strategy, str(side)))
        single.branch_create(branch, source=f"ours-{base}-{ours}")
        decided = decision(versions, strategy, side)
        if decided in (DI, DU, DD):
            found = conflicts_of(single, source, branch, strategy)
            assert found == {(key, "r", decided) for key in KEYS}
            continue
        result = single.branch_merge(source, into=branch, strategy=strategy, resolve=side)
        values = result_of(versions, strategy, side)
        for key in KEYS:
            expected = {} if values is None else {"r": row(key, "r", values)}
            assert graph_of(single, branch).get(key, {}) == expected
            if disposition(result, key) is TableDisposition.MERGED:
                assert counts(result, key) == written([decided])
            else:
                assert counts(result, key) == (0, 0, 0, 0)


def written(decisions: Iterable[str]) -> tuple[int, int, int, int]:
    found = Counter(decisions)
    return (found[INSERT], found[UPDATE], found[DELETE], found[DI] + found[DU] + found[DD])


# All of them among others

MOVES = ("none", "ours", "theirs", "both", "indexed")
"""Whose rows optimize has moved before the merge."""


def id_of(versions: Versions) -> str:
    return "-".join(versions)


CALM = [versions for versions, found in DECISIONS.items() if found not in (DI, DU, DD)]
OURS_OWN = range(40)
THEIRS_OWN = range(40, 90)
"""Others that one side alone has changed, the last ten of them deleted."""


def other(number: int) -> str:
    return f"other {number:05}"


def diverge(og: Omnigraph, move: str, kind: str) -> None:
    cells = CALM if kind == "calm" else list(DECISIONS)
    for side, place, own in (("ours", 1, OURS_OWN), ("theirs", 2, THEIRS_OWN)):
        branch = f"{side}-{move}-{kind}"
        og.branch_create(branch)
        if move in (side, "both"):
            og.optimize(branch=branch)
        change(
            og, branch, {id_of(v): v[place] for v in cells if (v[0], v[place]) != PRESENT_ABSENT}
        )
        gone = [id_of(v) for v in cells if (v[0], v[place]) == PRESENT_ABSENT]
        remove(og, branch, [*gone, *(other(number) for number in own[-10:])])
        load(og, branch, [r for number in own[:-10] for r in records(other(number), (5, number))])
        if move in (side, "both"):
            og.optimize(branch=branch)
        elif move == "indexed":
            og.ensure_indices(branch=branch)


PRESENT_ABSENT = ("present", ABSENT)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    og = start(tmp_path_factory.mktemp("crowd"))
    ids = [other(number) for number in range(OTHERS)]
    ids += [id_of(versions) for versions in DECISIONS if versions[0] == "present"]
    load(og, "main", [r for id in sorted(ids) for r in records(id, (0, 0))])
    return og


def diverged(og: Omnigraph, move: str, kind: str) -> tuple[str, str]:
    """Branches of ours and of theirs, edited when the first test asks for them."""
    ours, theirs = f"ours-{move}-{kind}", f"theirs-{move}-{kind}"
    if ours not in og.branch_list():
        diverge(og, move, kind)
    return ours, theirs


def expected_rows(key: str, cells: Iterable[Versions], strategy: str, side: str | None) -> Any:
    rows = {other(n): row(key, other(n), (0, 0)) for n in range(OTHERS)}
    for own in (OURS_OWN, THEIRS_OWN):
        rows |= {other(n): row(key, other(n), (5, n)) for n in own[:-10]}
        for number in own[-10:]:
            del rows[other(number)]
    present = [id_of(versions) for versions in DECISIONS if versions[0] == "present"]
    rows |= {id: row(key, id, (0, 0)) for id in present}
    for versions in cells:
        values = result_of(versions, strategy, side)
        rows.pop(id_of(versions), None)
        if values is not None:
            rows[id_of(versions)] = row(key, id_of(versions), values)
    return rows


@pytest.mark.parametrize(
    "move",
    [
        "none",
        *(
            pytest.param(move, marks=pytest.mark.long("conflicts are found wherever rows are"))
            for move in MOVES[1:]
        ),
    ],
)
@pytest.mark.parametrize(("strategy", "side"), RULES)
def test_among_others(crowd: Omnigraph, move: str, strategy: str, side: str | None) -> None:
    ours, theirs = diverged(crowd, move, "calm" if side is None else "all")
    cells = CALM if side is None else list(DECISIONS)
    branch = f"merged-{move}-{strategy}-{side}"
    crowd.branch_create(branch, source=ours)
    before = {key: states(crowd, branch, key) for key in KEYS}
    result = crowd.branch_merge(theirs, into=branch, strategy=strategy, resolve=side)
    own = [UPDATE] * (len(THEIRS_OWN) - 10) + [DELETE] * 10
    wanted = written([*own, *(decision(versions, strategy, side) for versions in cells)])
    graph: Graph = graph_of(crowd, branch)
    for key in KEYS:
        assert graph[key] == expected_rows(key, cells, strategy, side)
        assert disposition(result, key) is TableDisposition.MERGED
        assert counts(result, key) == wanted
        assert moved(before[key], states(crowd, branch, key)) == (
            wanted[0] + wanted[1],
            wanted[1] + wanted[2],
        )
    assert result.resolved == (0 if side is None else 2 * undecided(strategy))


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("strategy", ["row", "property"])
def test_conflicts_among_others(crowd: Omnigraph, move: str, strategy: str) -> None:
    ours, theirs = diverged(crowd, move, "all")
    found = conflicts_of(crowd, theirs, ours, strategy)
    expected = {
        (key, id_of(versions), decided)
        for key in KEYS
        for versions in DECISIONS
        if (decided := decision(versions, strategy, None)) in (DI, DU, DD)
    }
    assert found == expected
    assert len(found) == 2 * undecided(strategy)


def undecided(strategy: str) -> int:
    kinds = [decision(versions, strategy, None) for versions in DECISIONS]
    return sum(kind in (DI, DU, DD) for kind in kinds)


def states(og: Omnigraph, branch: str, key: str) -> dict[tuple[str, ...], int]:
    """Live rows of a table by their files."""
    table = og.table(og.snapshot(branch), key)
    return {state.files: state.rows for state in fragment_states(table)}


def moved(before: dict[tuple[str, ...], int], after: dict[tuple[str, ...], int]) -> tuple[int, int]:
    """How many rows are in new files, and how many are no longer in the old ones."""
    fresh = sum(rows for files, rows in after.items() if files not in before)
    kept = sum(rows for files, rows in after.items() if files in before)
    return fresh, sum(before.values()) - kept
