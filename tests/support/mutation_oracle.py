"""What a mutation does, in dicts and loops: statements in order, then every rule on all rows.

`apply(ir, graph, params)` gives the graph afterwards and the counts, or the rules that are broken.
Nothing is shared with the engine but the IR.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from omnigraph_core.ir.nodes import Delete, Filter, Insert
from omnigraph_core.query.typed import TARGET, EntityKind
from omnigraph_core.types import INTEGER_RANGES
from omnigraph_core.values import canonical_text
from omnigraph_core.violations import Rule
from tests.support.oracle import NOW, Given, evaluate, iter_rows
from tests.support.oracle_graph import Edge, Node, OracleGraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.ir.nodes import MutationIR, MutationOp
    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.schema.catalog import Catalog, EdgeType, NodeType, PropertyDef
    from omnigraph_core.values import Value

Entity = Node | Edge
_numbers = count(1)


@dataclass
class Graph:
    """Rows by type name and id."""

    catalog: Catalog
    nodes: dict[str, dict[str, Node]] = field(default_factory=dict)
    edges: dict[str, dict[str, Edge]] = field(default_factory=dict)

    def of(self, kind: EntityKind, name: str) -> dict[str, Any]:
        tables: dict[str, dict[str, Any]] = self.nodes if kind is EntityKind.NODE else self.edges  # type: ignore[assignment]
        return tables.setdefault(name, {})

    def copy(self) -> Graph:
        nodes = {name: dict(rows) for name, rows in self.nodes.items()}
        edges = {name: dict(rows) for name, rows in self.edges.items()}
        return Graph(self.catalog, nodes, edges)


@dataclass(frozen=True)
class Outcome:
    """A graph and counts, or the rules that kept the mutation from happening."""

    graph: Graph
    affected_nodes: int = 0
    affected_edges: int = 0
    broken: frozenset[Rule] = frozenset()


def apply(ir: MutationIR, before: Graph, params: Mapping[str, Value]) -> Outcome:
    """The outcome of a mutation on a graph, which is left as it was."""
    graph = before.copy()
    given = Given(OracleGraph(before.catalog, []), params, NOW)
    affected: Counter[EntityKind] = Counter()
    touched: set[tuple[str, str]] = set()
    broken: set[Rule] = set()
    for op in ir.ops:
        broken |= _run(op, graph, given, affected, touched)
    broken |= _broken_rules(graph, touched)
    if broken:
        return Outcome(before, broken=frozenset(broken))
    return Outcome(graph, affected[EntityKind.NODE], affected[EntityKind.EDGE])


def _run(
    op: MutationOp,
    graph: Graph,
    given: Given,
    affected: Counter[EntityKind],
    touched: set[tuple[str, str]],
) -> set[Rule]:
    """Run a statement; `touched` gathers (edge type, source) of edges that come or go.

    A value that does not fit breaks a rule, and the row goes on without it.
    """
    table = graph.of(op.kind, op.type_name)
    if isinstance(op, Delete):
        for id in [id for id, row in table.items() if _is_true(op.where, row, given)]:
            _delete(graph, op.kind, op.type_name, id, affected, touched)
        return set()
    declared = _declared(graph.catalog, op.kind, op.type_name)
    values = {name: evaluate(expr, {}, given.params, given.now) for name, expr in op.assignments}
    misfits = [name for name in values if not _fits(declared.properties.get(name), values[name])]
    values |= dict.fromkeys(misfits)
    broken = {Rule.VALUE} if misfits else set()
    if isinstance(op, Insert):
        row = _new(op, declared, values)
        table[row.id] = row
        affected[op.kind] += 1
        if isinstance(row, Edge):
            touched.add((row.type, row.src))
        return broken
    for id in [id for id, row in table.items() if _is_true(op.where, row, given)]:
        table[id] = replace(table[id], properties={**table[id].properties, **values})
        affected[op.kind] += 1
    return broken


def _is_true(where: TypedCondition, row: Entity, given: Given) -> bool:
    return any(True for _ in iter_rows((Filter(where),), {TARGET: row}, given))


def _declared(catalog: Catalog, kind: EntityKind, name: str) -> NodeType | EdgeType:
    return catalog.nodes[name] if kind is EntityKind.NODE else catalog.edges[name]


def _fits(property: PropertyDef | None, value: object) -> bool:
    if property is None or value is None or not property.type.scalar.is_integer:
        return True
    low, high = INTEGER_RANGES[property.type.scalar]
    return isinstance(value, int) and low <= value <= high


def _new(op: Insert, declared: NodeType | EdgeType, values: dict[str, Any]) -> Entity:
    properties = {
        name: values.get(name, property.default) if name not in values else values[name]
        for name, property in declared.properties.items()
    }
    fresh = f"new {next(_numbers)}"
    if op.kind is EntityKind.EDGE:
        return Edge(op.type_name, fresh, values["src"], values["dst"], properties)
    key = getattr(declared, "key", None)
    if key is None or properties[key[0]] is None:
        return Node(op.type_name, fresh, properties)
    return Node(op.type_name, canonical_text(properties[key[0]]), properties)


def _delete(
    graph: Graph,
    kind: EntityKind,
    name: str,
    id: str,
    affected: Counter[EntityKind],
    touched: set[tuple[str, str]],
) -> None:
    row = graph.of(kind, name).pop(id)
    affected[kind] += 1
    if isinstance(row, Edge):
        touched.add((row.type, row.src))
        return
    for edge in graph.catalog.edges.values():
        for other in list(graph.edges.get(edge.name, {}).values()):
            at_source = edge.source == name and other.src == id
            at_target = edge.target == name and other.dst == id
            if at_source or at_target:
                _delete(graph, EntityKind.EDGE, edge.name, other.id, affected, touched)


def _broken_rules(graph: Graph, touched: set[tuple[str, str]]) -> set[Rule]:
    broken: set[Rule] = set()
    catalog = graph.catalog
    for node in catalog.nodes.values():
        rows = list(graph.nodes.get(node.name, {}).values())
        for row in rows:
            broken |= _broken_by_row(node, row)
        broken |= _broken_groups(node, rows)
    for edge in catalog.edges.values():
        rows = list(graph.edges.get(edge.name, {}).values())
        for row in rows:
            broken |= _broken_by_row(edge, row)
            for end, type in ((row.src, edge.source), (row.dst, edge.target)):
                if end is None:
                    broken.add(Rule.REQUIRED)
                elif end not in graph.nodes.get(type, {}):
                    broken.add(Rule.ENDPOINT)
        broken |= _broken_groups(edge, rows)
        for name, source in touched:
            if name == edge.name and source in graph.nodes.get(edge.source, {}):
                number = sum(row.src == source for row in rows)
                low, high = edge.cardinality.minimum, edge.cardinality.maximum
                if number < low or (high is not None and number > high):
                    broken.add(Rule.CARDINALITY)
    return broken


def _broken_by_row(declared: NodeType | EdgeType, row: Entity) -> set[Rule]:
    broken = set()
    for name, property in declared.properties.items():
        value = row.get(name)
        if value is None and not property.type.is_nullable:
            broken.add(Rule.REQUIRED)
        allowed = property.type.enum_values
        if value is not None and allowed is not None and value not in allowed:
            broken.add(Rule.ENUM)
    for bounds in getattr(declared, "ranges", ()):
        value = row.get(bounds.property)
        low, high = bounds.minimum, bounds.maximum
        if isinstance(value, int | float) and not (
            (low is None or value >= low) and (high is None or value <= high)
        ):
            broken.add(Rule.RANGE)
    for check in getattr(declared, "checks", ()):
        value = row.get(check.property)
        if value is not None and not re.search(check.pattern, str(value)):
            broken.add(Rule.CHECK)
    return broken


def _broken_groups(declared: NodeType | EdgeType, rows: list[Any]) -> set[Rule]:
    for group in declared.unique:
        tuples = [tuple(row.get(name) for name in group) for row in rows]
        complete = [item for item in tuples if None not in item]
        if len(complete) != len(set(complete)):
            return {Rule.UNIQUE}
    return set()
