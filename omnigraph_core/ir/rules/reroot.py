"""Each part of a match started where fewest nodes are: at an id or a key that is given.

Links read the same from both ends, so entering a part elsewhere turns expands round and changes no
row. Parts reached from an outer row have their start already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.ir.links import next_link, walk_link
from omnigraph_core.ir.nodes import Expand, Filter, NodeScan, OptionalJoin, introduces
from omnigraph_core.ir.rules.levels import RuleContext, rewrite_levels
from omnigraph_core.query.checked import CheckedTraversal
from omnigraph_core.query.mentions import mentions
from omnigraph_core.query.typed import Compare, IsIn, PropertyValue, TypedOp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.ir.nodes import Op, Pipeline, QueryIR
    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.schema.catalog import NodeType


def choose_roots(ir: QueryIR, context: RuleContext) -> QueryIR:
    """Start each part at a node found by id, key or unique value, if the written start is none.

    >>> from omnigraph_core.ir.explain import explain
    >>> from tests.support.ir_samples import CONTEXT, named, query, uses
    >>> ir = query(NodeScan("p", "Part"), uses("p", "q", named("q", "bolt")))
    >>> print(explain(ir))
    query sample()
      scan $p: Part
      expand $p -Uses-> $q: Part where $q.name = "bolt"
    >>> print(explain(choose_roots(ir, CONTEXT)))
    query sample()
      scan $q: Part where $q.name = "bolt"
      expand $q <-Uses- $p: Part
    """

    def change(pipeline: Pipeline) -> Pipeline:
        return _reroot(pipeline, context)

    return rewrite_levels(ir, change)


def _reroot(pipeline: Pipeline, context: RuleContext) -> Pipeline:
    parts = _split_parts(pipeline)
    if parts is None:
        return pipeline
    anchored, rooted, rest = parts
    conditions = _conditions_by_variable(pipeline)
    started = [_restart(part, conditions, context) for part in rooted]
    if started == rooted:
        return pipeline
    return (*anchored, *(op for part in started for op in part), *rest)


def _split_parts(pipeline: Pipeline) -> tuple[list[Op], list[list[Op]], list[Op]] | None:
    """Expands from outer rows, one list per scan with its expands, and everything else.

    None when a part cannot be told from the next: an expand ties two of them together, or stands
    behind an optional join.
    """
    anchored: list[Op] = []
    rooted: list[list[Op]] = []
    rest: list[Op] = []
    part_of: dict[str, list[Op]] = {}
    for op in pipeline:
        match op:
            case NodeScan():
                part: list[Op] = [op]
                rooted.append(part)
            case Expand():
                part = part_of.get(op.src_var, anchored)
                if op.is_closing and part_of.get(op.dst_var, anchored) is not part:
                    return None
                part.append(op)
            case _:
                rest.append(op)
                continue
        if any(isinstance(earlier, OptionalJoin) for earlier in rest):
            return None
        part_of.update((variable, part) for variable in introduces(op))
    return anchored, rooted, rest


def _conditions_by_variable(pipeline: Pipeline) -> dict[str, tuple[TypedCondition, ...]]:
    """The conditions on one variable alone, wherever on this level they stand."""
    found: dict[str, tuple[TypedCondition, ...]] = {}
    for op in pipeline:
        match op:
            case NodeScan(variable=variable, filters=conditions):
                found[variable] = (*found.get(variable, ()), *conditions)
            case Expand(dst_var=variable, dst_filters=conditions):
                found[variable] = (*found.get(variable, ()), *conditions)
            case Filter(condition=condition) if len(names := mentions(condition)) == 1:
                (variable,) = names
                found[variable] = (*found.get(variable, ()), condition)
            case _:
                pass
    return found


def _restart(
    part: list[Op], conditions: dict[str, tuple[TypedCondition, ...]], context: RuleContext
) -> list[Op]:
    """The part from its best start; the written one unless another is strictly better."""
    types = dict(_node_types(part))
    own = dict(_own_filters(part))
    nodes = context.catalog.nodes
    # max() keeps the first of equals, and the written start comes first
    start = max(types, key=lambda v: selectivity(conditions.get(v, ()), nodes[types[v]]))
    if start == next(iter(types)):
        return part
    links = [_link(op, types) for op in part if isinstance(op, Expand)]
    ops: list[Op] = [NodeScan(start, types[start], own[start])]
    bound = {start}
    while (link := next_link(links, bound)) is not None:
        links.remove(link)
        ops.append(walk_link(link, bound, own))
        bound.update(introduces(ops[-1]))
    return ops


def _node_types(part: Iterable[Op]) -> Iterator[tuple[str, str]]:
    for op in part:
        if isinstance(op, NodeScan):
            yield op.variable, op.type_name
        elif isinstance(op, Expand) and not op.is_closing:
            yield op.dst_var, op.dst_type


def _own_filters(part: Iterable[Op]) -> Iterator[tuple[str, tuple[TypedCondition, ...]]]:
    for op in part:
        if isinstance(op, NodeScan):
            yield op.variable, op.filters
        elif isinstance(op, Expand) and not op.is_closing:
            yield op.dst_var, op.dst_filters


def _link(op: Expand, types: dict[str, str]) -> CheckedTraversal:
    return CheckedTraversal(
        left=op.src_var,
        left_type=types[op.src_var],
        right=op.dst_var,
        right_type=op.dst_type,
        edge_type=op.edge_type,
        direction=op.direction,
        min_hops=op.min_hops,
        max_hops=op.max_hops,
        edge_binding=op.edge_binding,
    )


def selectivity(conditions: Iterable[TypedCondition], node: NodeType) -> int:
    """2 when the conditions name at most one node, 1 when they list candidates, else 0."""
    pinned: set[str] = set()
    listed: set[str] = set()
    for condition in conditions:
        match condition:
            case Compare(PropertyValue(property=name), TypedOp.EQ, value) if _is_given(value):
                pinned.add(name)
            case Compare(value, TypedOp.EQ, PropertyValue(property=name)) if _is_given(value):
                pinned.add(name)
            case IsIn(PropertyValue(property=name)):
                listed.add(name)
            case _:
                pass
    groups = [{"id"}, *(set(group) for group in (node.key, *node.unique) if group)]
    if any(group <= pinned for group in groups):
        return 2
    return int(any(group <= pinned | listed for group in groups))


def _is_given(value: TypedExpr) -> bool:
    return not mentions(value)
