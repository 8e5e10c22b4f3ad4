"""Whole reads for the oracle, searches and rankings among them.

A search is made an ordinary property: what it gives each node is computed by loops over the texts
or vectors of all nodes of its type, and the query then reads that property. Nothing is shared with
the engine but the checked query and its plain lowering.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from omnigraph_core.constants import RRF_K
from omnigraph_core.ir.lower import lower_query
from omnigraph_core.ir.nodes import OrderKey, QueryIR
from omnigraph_core.query.typed import Bm25, Nearest, PropertyValue, Rrf, TextMatch
from omnigraph_core.types import F64
from tests.support.oracle import Cell, Given, evaluate, finish, iter_rows
from tests.support.oracle_graph import Node, OracleGraph
from tests.support.text_oracle import K1, B, analyse, indexed, is_match
from tests.support.tree_parts import field_names, inside

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from omnigraph_core.query.checked import CheckedQuery
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.values import Value
    from tests.support.oracle import Row

Searched: TypeAlias = TextMatch | Nearest | Bm25
RANKS = ("nearest ", "bm25 ", "rrf ")


@dataclass(frozen=True)
class Answer:
    """What a read must find."""

    rows: list[dict[str, Cell]]
    everything: list[dict[str, Cell]]
    """The same without limit and offset."""
    is_ordered: bool


def answer(
    checked: CheckedQuery, graph: OracleGraph, params: Mapping[str, Value], now: dt.datetime
) -> Answer:
    """The rows of a read, in order when it has one."""
    ir = lower_query(checked)
    assert isinstance(ir, QueryIR)
    ir, graph = _searched(ir, Given(graph, params, now))
    given = Given(graph, params, now)
    rows = list(iter_rows(ir.pipeline, {}, given))
    ir, rows = _fused(ir, rows, given)
    ir, rows = _ranked(ir, rows)
    everything = finish(replace(ir, limit=None, offset=None), rows, given)
    return Answer(finish(ir, rows, given), everything, bool(ir.order_by))


# Searches become properties


def _searched(ir: QueryIR, given: Given) -> tuple[QueryIR, OracleGraph]:
    """The query and the graph with a property for every search that the query has."""
    names: dict[Searched, PropertyValue] = {}
    added: dict[Node, dict[str, Value]] = {}
    for number, expr in enumerate(dict.fromkeys(_parts(ir, TextMatch | Nearest | Bm25))):
        name = f"{type(expr).__name__.lower()} {number}"
        names[expr] = PropertyValue(expr.field.variable, name, expr.type)
        for same in given.graph.nodes.values():
            # A name may stand for nodes of different types in different blocks.
            for node, value in _values(expr, list(same.values()), given).items():
                added.setdefault(node, {})[name] = value
    if not names:
        return ir, given.graph
    nodes = [
        Node(node.type, node.id, {**node.properties, **added.get(node, {})})
        for same in given.graph.nodes.values()
        for node in same.values()
    ]
    edges = (edge for same in given.graph.edges.values() for edge in same)
    return _replaced(ir, names), OracleGraph(given.graph.catalog, nodes, edges)


def _values(expr: Searched, nodes: Sequence[Node], given: Given) -> dict[Node, Value]:
    query = evaluate(expr.query, {}, given.params, given.now)
    if query is None:
        return {}
    found = {node: node.get(expr.field.property) for node in nodes}
    present = {node: value for node, value in found.items() if value is not None}
    if isinstance(expr, TextMatch):
        return _text_matches(expr, query, present, given)
    if isinstance(expr, Nearest):
        return {n: d for n, v in present.items() if (d := distance(v, query)) is not None}
    return dict(_bm25(present, str(query)))


def _text_matches(
    expr: TextMatch, query: Any, texts: Mapping[Node, Value], given: Given
) -> dict[Node, Value]:
    edits: Any = 0
    if expr.max_edits is not None:
        edits = evaluate(expr.max_edits, {}, given.params, given.now)
    if edits is None:
        return {}
    return {n: is_match(str(expr.function), str(text), query, edits) for n, text in texts.items()}


def distance(vector: Any, query: Any) -> float | None:
    """1 - cos; none if either has no direction."""
    lengths: float = math.sqrt(sum(x * x for x in vector)) * math.sqrt(sum(x * x for x in query))
    if not lengths:
        return None
    product: float = sum(x * y for x, y in zip(vector, query, strict=True))
    return min(max(1.0 - product / lengths, 0.0), 2.0)


def _bm25(texts: Mapping[Node, Value], query: str) -> dict[Node, float]:
    """Scores of the texts with a hit, rounded at the same points wherever they are computed."""
    documents = {node: indexed(analyse(str(text))) for node, text in texts.items()}
    average = sum(map(len, documents.values())) / max(len(documents), 1)
    scores: dict[Node, float] = {}
    for word in sorted(set(indexed(analyse(query)))):
        hits = {node: Counter(words)[word] for node, words in documents.items() if word in words}
        rarity = (K1 + 1) * math.log1p((len(documents) - len(hits) + 0.5) / (len(hits) + 0.5))
        for node, count in hits.items():
            norm = K1 * (1 - B + B * (len(documents[node]) / average))
            scores[node] = scores.get(node, 0.0) + rarity * count / (norm + count)
    return scores


# Rankings of the whole match


def _fused(ir: QueryIR, rows: list[Row], given: Given) -> tuple[QueryIR, list[Row]]:
    """Every `rrf` as a property of the nodes it ranks, with one that tells equal ones apart."""
    names: dict[Rrf, PropertyValue] = {}
    for number, rank in enumerate(dict.fromkeys(_parts(ir, Rrf))):
        variable = rank.arms[0].variable
        name = f"rrf {number}"
        names[rank] = PropertyValue(variable, name, rank.type)
        nodes = {node for row in rows if isinstance(node := row[variable], Node)}
        fused = _fuse(ir, rank, nodes, given)
        ranked = {
            node: Node(node.type, node.id, {**node.properties, name: score, f"{name} tie": place})
            for node, (score, place) in fused.items()
        }
        rows = [{**row, variable: ranked.get(row[variable], row[variable])} for row in rows]  # type: ignore[arg-type]
    return _replaced(ir, names), rows


def _fuse(
    ir: QueryIR, rank: Rrf, nodes: Iterable[Node], given: Given
) -> dict[Node, tuple[float, int]]:
    def number(expr: TypedExpr | None) -> Any:
        return 0 if expr is None else evaluate(expr, {}, given.params, given.now)

    k = number(rank.k)
    k = RRF_K.value if k is None else k
    scores: dict[Node, float] = {}
    places: dict[Node, int] = {}
    nodes = sorted(nodes, key=lambda node: node.id)
    arms = [_arm(arm, nodes, number(ir.limit) + number(ir.offset)) for arm in rank.arms]
    for arm in arms:
        for place, node in enumerate(arm):
            scores[node] = scores.get(node, 0.0) + 1.0 / (k + 1.0 + place)
            places.setdefault(node, len(places))
    return {node: (score, places[node]) for node, score in scores.items()}


def _arm(arm: Any, nodes: list[Node], limit: int) -> list[Node]:
    """The nodes an arm ranks, best first; it is a property by now, named after what it was."""
    scores: dict[Node, Any] = {n: s for n in nodes if (s := n.get(arm.property)) is not None}
    if arm.property.startswith("nearest "):
        return sorted(scores, key=lambda node: scores[node])[:limit]
    return sorted(scores, key=lambda node: -scores[node])


def _ranked(ir: QueryIR, rows: list[Row]) -> tuple[QueryIR, list[Row]]:
    """A leading rank as plain sort keys; rows that take no part in it are dropped."""
    leading = ir.order_by[0].expr if ir.order_by else None
    if not isinstance(leading, PropertyValue) or not leading.property.startswith(RANKS):
        return ir, rows
    is_distance = leading.property.startswith("nearest ")
    keys = [OrderKey(leading, is_descending=not is_distance), *ir.order_by[1:]]
    if leading.property.startswith("rrf ") and not ir.is_distinct:
        keys.append(OrderKey(PropertyValue(leading.variable, f"{leading.property} tie", F64)))
    kept = [
        row
        for row in rows
        if (node := row[leading.variable]) is not None and node.get(leading.property) is not None
    ]
    return replace(ir, order_by=tuple(keys)), kept


# Walking and rewriting a query


def _parts(part: object, kind: Any) -> Iterator[Any]:
    """Everything of a kind anywhere inside."""
    if isinstance(part, kind):
        yield part
    for inner in inside(part):
        yield from _parts(inner, kind)


def _replaced(ir: QueryIR, names: Mapping[Any, PropertyValue]) -> QueryIR:
    """The query with some of its expressions in the place of others."""

    def change(part: Any) -> Any:
        if isinstance(part, Searched | Rrf) and part in names:
            return names[part]
        if isinstance(part, tuple):
            return tuple(map(change, part))
        if names_inside := field_names(type(part)):
            return replace(part, **{name: change(getattr(part, name)) for name in names_inside})
        return part

    return change(ir) if names else ir
