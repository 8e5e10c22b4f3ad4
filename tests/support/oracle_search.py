"""Whole reads for the oracle, searches and rankings among them.

A search is made an ordinary property: what it gives each node of a type is computed by loops over
the texts and vectors of all of them, and the query then asks for that. Nothing is shared with the
engine but the checked query and its plain lowering.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from omnigraph_core.ir.lower import lower_query
from omnigraph_core.ir.nodes import OrderKey, QueryIR
from omnigraph_core.query.typed import (
    Bm25,
    ColumnValue,
    Constant,
    Nearest,
    PropertyValue,
    Rrf,
    TextMatch,
)
from omnigraph_core.types import BOOL, F64, I64
from tests.support.oracle import Cell, Given, evaluate, finish, iter_rows
from tests.support.oracle_graph import Node, OracleGraph
from tests.support.text_oracle import B, K1, analyse, indexed, is_match

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from omnigraph_core.query.checked import CheckedQuery
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.values import Value
    from tests.support.oracle import Row

T = TypeVar("T")
Searched: TypeAlias = TextMatch | Nearest | Bm25
Values: TypeAlias = "Mapping[str, Value]"
"""What an expression is for each node of a type, by id."""


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
    ir, graph = _searched(ir, graph, Given(graph, params, now))
    given = Given(graph, params, now)
    rows = list(iter_rows(ir.pipeline, {}, given))
    ir, rows = _fused(ir, rows, given)
    ir, rows = _ranked(ir, rows)
    everything = finish(replace(ir, limit=None, offset=None), rows, given)
    return Answer(finish(ir, rows, given), everything, bool(ir.order_by))


# Searches become properties


def _searched(ir: QueryIR, graph: OracleGraph, given: Given) -> tuple[QueryIR, OracleGraph]:
    """The query and the graph with a property for every search; those in `rrf` stay as they are."""
    types = _node_types(ir)
    found = dict.fromkeys(e for e in _parts(ir) if isinstance(e, TextMatch | Nearest | Bm25))
    added: dict[str, dict[str, Values]] = {name: {} for name in graph.nodes}
    names: dict[Searched, PropertyValue] = {}
    for number, expr in enumerate(found):
        type_name = types[expr.field.variable]
        nodes = graph.nodes[type_name].values()
        names[expr] = PropertyValue(expr.field.variable, f"search {number}", expr.type)
        added[type_name][names[expr].property] = _values(expr, nodes, given)

    def renamed(part: object) -> object:
        if isinstance(part, Rrf):
            return part
        return names.get(part) if isinstance(part, TextMatch | Nearest | Bm25) else None

    kept = {rank: rank for rank in _parts(ir) if isinstance(rank, Rrf)}
    return _rewritten(ir, lambda part: part if part in kept else renamed(part)), _with(graph, added)
