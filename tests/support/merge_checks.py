"""A merge of the engine beside one of the oracle: same outcome, same conflicts, same graph."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import MergeConflicts
from omnigraph_core.history.bases import Join, find_base, nearest
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.merge.model import MergeOutcome, TableDisposition
from tests.support.merge_oracle import Rules, join, merge
from tests.support.merge_worlds import CATALOG, graph_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.bases import MergeBase
    from omnigraph_core.merge.model import MergeConflict, MergeResult
    from omnigraph_core.schema.catalog import Catalog
    from tests.support.merge_oracle import Found, Graph, Merged, Place, Row

UNIQUE, CARDINALITY = "unique_violation", "cardinality_violation"
CHOICES = frozenset({"divergent_insert", "divergent_update", "delete_vs_update"})


@dataclass(frozen=True)
class Lens:
    """How the rows of each side look in the merged schema."""

    catalog: Catalog = CATALOG
    base: Callable[[Graph], Graph] = lambda graph: graph
    ours: Callable[[Graph], Graph] = lambda graph: graph
    theirs: Callable[[Graph], Graph] = lambda graph: graph
    keys: Mapping[str, str] = field(default_factory=dict)
    """Table keys of the target that are others in the merged schema."""
    lost: Callable[[Graph, Graph, Graph], Iterable[Found]] = lambda *_: ()
    """Conflicts about values that the merged schema has no place for: of base, ours, theirs."""


def check_merge(
    og: Omnigraph, source: str, target: str, rules: Rules, lens: Lens | None = None
) -> Merged:
    """Merge a branch into another, as far as that is possible, and compare every step."""
    lens = lens or Lens()
    head = og.head_commit_id_for_branch(target)
    before, incoming = graph_of(og, target), graph_of(og, source)
    ours, theirs = lens.ours(before), lens.theirs(incoming)
    tried = og.branch_merge(source, into=target, dry_run=True, **_options(rules))
    assert tried.commit is None
    places = [(item.table_key, item.row_id or "") for item in tried.conflicts]
    assert places == sorted(places)
    check_ancestry(og, tried)
    parted, undecided = base_of(og, tried, rules.strategy)
    base = lens.base(parted)
    expected = merge(base, ours, theirs, lens.catalog, rules, undecided)
    expected.violations.update(lens.lost(parted, before, incoming))
    conflicts = [
        replace(item, table_key=lens.keys.get(item.table_key, item.table_key))
        for item in tried.conflicts
    ]
    check_conflicts(conflicts, expected)
    check_rows(conflicts, expected, base, ours, theirs)
    assert og.head_commit_id_for_branch(target) == head
    if expected.is_clean:
        _check_merged(og, tried, ours, expected, rules)
    else:
        with pytest.raises(MergeConflicts) as caught:
            og.branch_merge(source, into=target, **_options(rules))
        assert list(caught.value.conflicts) == [item.to_json() for item in tried.conflicts]
        assert og.head_commit_id_for_branch(target) == head
        assert graph_of(og, target) == before
    return expected


def base_of(og: Omnigraph, tried: MergeResult, strategy: str) -> tuple[Graph, frozenset[Place]]:
    """What both sides are compared with, and the rows that it cannot tell."""
    branches = (tried.source, tried.target)
    known = {item.graph_commit_id: item for name in branches for item in og.list_commits(name)}
    found = find_base(tried.source_commit_id, tried.target_commit_id, known.get)
    assert found is not None
    assert nearest(found) == tried.base_commit_id
    return _joined(og, found, strategy)


def _joined(og: Omnigraph, base: MergeBase, strategy: str) -> tuple[Graph, frozenset[Place]]:
    if not isinstance(base, Join):
        return graph_of(og, ReadTarget(snapshot_id=base)), frozenset()
    ours, undecided = _joined(og, base.ours, strategy)
    theirs = graph_of(og, ReadTarget(snapshot_id=base.theirs))
    assert base.root is not None
    root, unknown = _joined(og, base.root, strategy)
    graph, found = join(root, ours, theirs, strategy, undecided | unknown)
    return graph, found | undecided


def _options(rules: Rules) -> dict[str, Any]:
    return {"strategy": rules.strategy, "resolve": rules.resolve, "choices": rules.choices}


def _check_merged(
    og: Omnigraph, tried: MergeResult, ours: Graph, expected: Merged, rules: Rules
) -> None:
    source, target = tried.source, tried.target
    head, merged_head = (og.head_commit_id_for_branch(name) for name in (target, source))
    result = og.branch_merge(source, into=target, actor="act-merge", **_options(rules))
    assert (result.outcome, result.tables) == (tried.outcome, tried.tables)
    assert without_empty(graph_of(og, target)) == without_empty(expected.graph)
    assert result.resolved == expected.resolved
    if result.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
        assert og.head_commit_id_for_branch(target) == head
        return
    assert result.commit == og.snapshot(target).commit
    assert result.commit.parents == (head, merged_head)
    assert result.commit.actor_id == "act-merge"
    check_writes(result, expected.writes(ours))
    again = og.branch_merge(source, into=target)
    assert again.outcome is MergeOutcome.ALREADY_UP_TO_DATE


def check_writes(result: MergeResult, writes: dict[str, tuple[int, int, int]]) -> None:
    """A table that rows were merged in has exactly these; others were taken or left as a whole."""
    tables = {table.table_key: table for table in result.tables}
    for key in {*tables, *writes}:
        wanted = writes.get(key, (0, 0, 0))
        table = tables.get(key)
        if table is not None and table.disposition is TableDisposition.MERGED:
            assert (table.inserted, table.updated, table.deleted) == wanted
        elif any(wanted):
            assert table is not None
            assert table.disposition is TableDisposition.ADOPTED


def check_conflicts(conflicts: Iterable[MergeConflict], expected: Merged) -> None:
    found = [(item.table_key, item.row_id, str(item.kind)) for item in conflicts]
    chosen = [item for item in found if item[2] in CHOICES]
    assert Counter(chosen) == Counter(expected.conflicts)
    unique = {(key, id) for key, id, kind in found if kind == UNIQUE}
    others = Counter(item for item in found if item[2] not in CHOICES and item[2] != UNIQUE)
    check_clashes(unique, expected)
    counts, wanted = _split(others), _split(expected.violations)
    assert counts[0] == wanted[0]
    # Rows that were reported, and edges at them, do not count any more where edges are counted.
    is_exact = not unique and not wanted[0] and not expected.conflicts
    assert counts[1] == wanted[1] if is_exact else counts[1] <= wanted[1]


def _split(found: Counter[Found]) -> tuple[Counter[Found], Counter[Found]]:
    """Those of single rows, and those of numbers of edges."""
    numbers = Counter({item: n for item, n in found.items() if item[2] == CARDINALITY})
    return found - numbers, numbers


def check_clashes(unique: set[tuple[str, str | None]], expected: Merged) -> None:
    """One of the rows that share a value is reported at least, and no row that shares none."""
    for key, ids in expected.clashes if not expected.conflicts else ():
        assert any((key, id) in unique for id in ids) or _is_excused(key, ids, expected)
    shared = {(key, id) for key, ids in expected.clashes for id in ids}
    assert unique <= shared


def _is_excused(key: str, ids: Iterable[str], expected: Merged) -> bool:
    """Edges that were reported as orphans, or at a node that was reported, are left in peace."""
    if not key.startswith("edge:"):
        return False
    is_orphan = any((key, id, "orphan_edge") in expected.violations for id in ids)
    return is_orphan or any(other.startswith("node:") for other, _ in expected.clashes)


def check_rows(
    conflicts: Iterable[MergeConflict], expected: Merged, base: Graph, ours: Graph, theirs: Graph
) -> None:
    """Conflicts of rows show the three versions of the row, and what the sides disagree on."""
    for item in conflicts:
        if item.kind.is_choice and item.row_id is not None:
            named = expected.properties[item.table_key, item.row_id]
            assert set(item.properties) == named
            for shown, graph in ((item.base, base), (item.ours, ours), (item.theirs, theirs)):
                row = graph.get(item.table_key, {}).get(item.row_id)
                assert (shown is None) == (row is None)
                if shown is not None and row is not None:
                    assert shown == {"id": item.row_id} | _shown(row)


def _shown(row: Row) -> dict[str, object]:
    """A row as conflicts show it: numbers as JavaScript reads them, of bytes only a digest."""
    values: dict[str, object] = {name: json.loads(text) for name, text in row.items()}
    for name, value in values.items():
        if isinstance(value, int) and abs(value) >= 2**53:
            values[name] = str(value)
        if isinstance(value, str) and value.startswith("base64:"):
            content = base64.b64decode(value.removeprefix("base64:"))
            values[name] = f"{len(content)} bytes, sha256:{sha256(content).hexdigest()}"
    return values


def without_empty(graph: Graph) -> Graph:
    return {key: rows for key, rows in graph.items() if rows}


def check_ancestry(og: Omnigraph, tried: MergeResult) -> None:
    """The outcome and the base are what the commits of both branches say."""
    source, target = _contained(og, tried.source), _contained(og, tried.target)
    if tried.source_commit_id in target:
        outcome = MergeOutcome.ALREADY_UP_TO_DATE
    elif tried.target_commit_id in source:
        outcome = MergeOutcome.FAST_FORWARD
    else:
        outcome = MergeOutcome.MERGED
    assert tried.outcome is outcome
    assert tried.base_commit_id in best_bases(source, target)


def best_bases(
    source: Mapping[str, tuple[str, ...]], target: Mapping[str, tuple[str, ...]]
) -> set[str]:
    """Common commits that no other common commit is built on."""
    common = source.keys() & target.keys()
    older: set[str] = set()
    reached = [parent for commit_id in common for parent in source[commit_id]]
    while reached:
        parent = reached.pop()
        if parent not in older:
            older.add(parent)
            reached += source.get(parent, ())
    return set(common - older)


def _contained(og: Omnigraph, branch: str) -> dict[str, tuple[str, ...]]:
    """Parents of every commit of a branch."""
    return {commit.graph_commit_id: commit.parents for commit in og.list_commits(branch)}
