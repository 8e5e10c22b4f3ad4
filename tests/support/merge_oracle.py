"""A three-way merge in dicts and loops: whole graphs come in, what must come of them goes out.

Every rule is tried on the whole merged graph, so that an engine which looks at changes alone is
checked for what it leaves out. Nothing is shared with the engine but the catalog.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from omnigraph_core.schema.catalog import Catalog, EdgeType, NodeType

Row = dict[str, str]
"""Property, `src` and `dst` → JSON text: two values are equal exactly if their texts are."""
Graph = dict[str, dict[str, Row]]
"""Table key → id → row. A table without rows may be left out."""
Found = tuple[str, str | None, str]
"""Table key, row id and kind of a conflict."""
Place = tuple[str, str]
"""Table key and row id."""
Choices = dict[Place, str]


@dataclass(frozen=True)
class Rules:
    """How the merge is to be done."""

    strategy: str = "row"
    resolve: str | None = None
    choices: Choices = field(default_factory=dict)

    def side_of(self, table_key: str, id: str) -> str | None:
        return self.choices.get((table_key, id), self.resolve)


@dataclass
class Merged:
    """The graph, if there are no conflicts; of every table, what had to be written to ours."""

    graph: Graph = field(default_factory=dict)
    conflicts: set[Found] = field(default_factory=set)
    properties: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """By table key and id of a conflict: what both sides changed differently."""
    violations: Counter[Found] = field(default_factory=Counter)
    clashes: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    """Per unique tuple that several rows have: table key and their ids."""
    resolved: int = 0

    @property
    def is_clean(self) -> bool:
        return not self.conflicts and not self.violations and not self.clashes

    def writes(self, ours: Graph) -> dict[str, tuple[int, int, int]]:
        """Per table with any: rows inserted, updated and deleted."""
        return {
            key: counts
            for key in sorted({*self.graph, *ours})
            if any(counts := _writes(ours.get(key, {}), self.graph.get(key, {})))
        }


def merge(
    base: Graph,
    ours: Graph,
    theirs: Graph,
    catalog: Catalog,
    rules: Rules,
    undecided: frozenset[Place] = frozenset(),
) -> Merged:
    """What merging theirs into ours must give.

    Args:
        undecided: rows that the base has not, though nobody knows whether they were there.
    """
    merged = _merge(base, ours, theirs, rules, undecided)
    _check(merged, catalog, ours)
    return merged


def join(
    root: Graph, ours: Graph, theirs: Graph, strategy: str, undecided: frozenset[Place]
) -> tuple[Graph, frozenset[Place]]:
    """Two bases made one: without the rows that they disagree about, which are told."""
    merged = _merge(root, ours, theirs, Rules(strategy), undecided)
    found = frozenset((key, str(id)) for key, id, _ in merged.conflicts)
    for key, id in found:
        merged.graph[key].pop(id, None)
    return merged.graph, found


def _merge(
    base: Graph, ours: Graph, theirs: Graph, rules: Rules, undecided: frozenset[Place]
) -> Merged:
    merged = Merged()
    for key in sorted({*base, *ours, *theirs}):
        rows = [graph.get(key, {}) for graph in (base, ours, theirs)]
        table: dict[str, Row] = {}
        for id in sorted({*rows[0], *rows[1], *rows[2]}):
            versions = [side.get(id) for side in rows]
            is_known = (key, id) not in undecided
            row = _decide(key, id, versions, rules, merged, is_known=is_known)
            if row is not None:
                table[id] = row
        merged.graph[key] = table
    return merged


def _decide(
    key: str, id: str, versions: list[Row | None], rules: Rules, merged: Merged, *, is_known: bool
) -> Row | None:
    base, ours, theirs = versions
    if ours == theirs or (is_known and theirs == base):
        return ours
    if is_known and ours == base:
        return theirs
    differing: set[str] = set()
    combined = ours
    if rules.strategy == "property" and base and ours and theirs:
        combined, differing = _combine(key, base, ours, theirs)
        if not differing:
            return combined
    side = rules.side_of(key, id)
    if side is not None:
        merged.resolved += 1
        return _chosen(side, ours, theirs, combined, differing)
    merged.conflicts.add((key, id, _kind(base, ours, theirs)))
    merged.properties[key, id] = differing or _both_changed(key, base, ours, theirs)
    return ours


def _combine(key: str, base: Row, ours: Row, theirs: Row) -> tuple[Row, set[str]]:
    """Each property for itself, the ends of an edge together; and those where that does not do."""
    combined: Row = {}
    for name in ours:
        old, mine, other = (_unit(key, row, name) for row in (base, ours, theirs))
        combined[name] = ours[name] if other in (old, mine) else theirs[name]
    return combined, _both_changed(key, base, ours, theirs)


def _both_changed(key: str, base: Row | None, ours: Row | None, theirs: Row | None) -> set[str]:
    if ours is None or theirs is None:
        return set()
    if base is None:
        return {name for name in ours if ours[name] != theirs[name]}
    found = set()
    for name in ours:
        old, mine, other = (_unit(key, row, name) for row in (base, ours, theirs))
        if mine != other and old not in (mine, other):
            found.add(name)
    return found


def _unit(key: str, row: Row, name: str) -> object:
    """A value with those that it goes with."""
    if key.startswith("edge:") and name in ("src", "dst"):
        return row["src"], row["dst"]
    return row[name]


def _chosen(
    side: str, ours: Row | None, theirs: Row | None, combined: Row | None, differing: set[str]
) -> Row | None:
    """The row of the side; property by property, only where both sides changed it differently."""
    row = ours if side == "ours" else theirs
    if not differing or row is None or combined is None:
        return row
    return {name: row[name] if name in differing else combined[name] for name in combined}


def _kind(base: Row | None, ours: Row | None, theirs: Row | None) -> str:
    if ours is None or theirs is None:
        return "delete_vs_update"
    return "divergent_insert" if base is None else "divergent_update"


def _writes(before: Mapping[str, Row], after: Mapping[str, Row]) -> tuple[int, int, int]:
    both = before.keys() & after.keys()
    updated = sum(before[id] != after[id] for id in both)
    return len(after.keys() - both), updated, len(before.keys() - both)


def _check(merged: Merged, catalog: Catalog, ours: Graph) -> None:
    """Every rule on all rows. Rows in conflict are as in ours, and break nothing themselves."""
    undecided = {(key, id) for key, id, _ in merged.conflicts}
    types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    for type in types:
        rows = merged.graph.get(type.table_key, {})
        merged.clashes += [(type.table_key, ids) for ids in _clashes(type, rows)]
        for id, row in rows.items():
            if (type.table_key, id) not in undecided and any(_broken_values(type, row)):
                merged.violations[type.table_key, id, "value_constraint_violation"] = 1
    for edge in catalog.edges.values():
        rows = merged.graph.get(edge.table_key, {})
        ends = (
            ("src", catalog.nodes[edge.source].table_key),
            ("dst", catalog.nodes[edge.target].table_key),
        )
        for id, row in rows.items():
            if (edge.table_key, id) in undecided:
                continue
            if any(not _is_there(merged, key, json.loads(row[end])) for end, key in ends):
                merged.violations[edge.table_key, id, "orphan_edge"] = 1
        sources = merged.graph.get(catalog.nodes[edge.source].table_key, {})
        before = _by_source(ours.get(edge.table_key, {}))
        wrong = sum(1 for _ in _miscounted(edge, rows, sources, before))
        if wrong:
            merged.violations[edge.table_key, None, "cardinality_violation"] = wrong


def _is_there(merged: Merged, key: str, id: str) -> bool:
    """A node that may yet come back counts as one that is there."""
    return id in merged.graph.get(key, {}) or (key, id, "delete_vs_update") in merged.conflicts


def _clashes(type: NodeType | EdgeType, rows: Mapping[str, Row]) -> Iterator[frozenset[str]]:
    for group in type.unique:
        holders: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for id, row in rows.items():
            values = tuple(row[name] for name in group)
            if "null" not in values:
                holders[values].add(id)
        yield from (frozenset(ids) for ids in holders.values() if len(ids) > 1)


def _broken_values(type: NodeType | EdgeType, row: Row) -> Iterator[bool]:
    values: dict[str, Any] = {name: json.loads(text) for name, text in row.items()}
    for name, property in type.properties.items():
        allowed, value = property.type.enum_values, values[name]
        yield value is None and not property.type.is_nullable
        if value is not None and allowed is not None:
            members = value if property.type.is_list else [value]
            yield any(member not in allowed for member in members)
    for bounds in getattr(type, "ranges", ()):
        value, low, high = values[bounds.property], bounds.minimum, bounds.maximum
        if value is not None:
            yield (low is not None and value < low) or (high is not None and value > high)
    for check in getattr(type, "checks", ()):
        value = values[check.property]
        yield value is not None and not re.search(check.pattern, value)


def _by_source(rows: Mapping[str, Row]) -> Counter[str]:
    return Counter(json.loads(row["src"]) for row in rows.values())


def _miscounted(
    edge: EdgeType, rows: Mapping[str, Row], sources: Iterable[str], before: Counter[str]
) -> Iterator[str]:
    """Sources with a number of edges out of bounds.

    One that had none in ours may have none: nothing asks for the first edge of a new node.
    """
    numbers = _by_source(rows)
    low, high = edge.cardinality.minimum, edge.cardinality.maximum
    for source in sources:
        number = numbers[source]
        if number == 0 and before[source] == 0:
            continue
        if number < low or (high is not None and number > high):
            yield source
