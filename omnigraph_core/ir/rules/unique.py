"""One name, one variable: locals of `not` blocks that share a name get one each.

Blocks beside each other may use a name for nodes of different types. An executor that keeps what it
knows by variable must not mix them up, so the later one gets a name that nobody can write.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from omnigraph_core.ir.nodes import (
    AntiJoin,
    Expand,
    Filter,
    NodeScan,
    OptionalJoin,
    anti_join,
    introduces,
    optional_join,
)
from omnigraph_core.query.mentions import rename_condition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.ir.nodes import Op, Pipeline, QueryIR
    from omnigraph_core.ir.rules.levels import RuleContext


def unique_names(ir: QueryIR, _: RuleContext) -> QueryIR:
    """The same query in which no two variables share a name.

    >>> from omnigraph_core.ir.explain import explain
    >>> from tests.support.ir_samples import CONTEXT, query, uses
    >>> unused = anti_join((uses("p", "q"),))
    >>> ir = query(NodeScan("p", "Part"), unused, unused)
    >>> print(explain(unique_names(ir, CONTEXT)))
    query sample()
      scan $p: Part
      anti-join on $p
        expand $p -Uses-> $q: Part
      anti-join on $p
        expand $p -Uses-> $q~1: Part
    """
    taken = set(ir.variables)
    return replace(ir, pipeline=_blocks(ir.pipeline, taken))


def _blocks(pipeline: Pipeline, taken: set[str]) -> Pipeline:
    """The pipeline with the locals of its blocks renamed where their names are taken."""
    return tuple(_block(op, taken) for op in pipeline)


def _block(op: Op, taken: set[str]) -> Op:
    if isinstance(op, OptionalJoin):
        inner = _blocks(op.inner, taken)
        return op if inner == op.inner else optional_join(inner)
    if not isinstance(op, AntiJoin):
        return op
    names = {}
    for name in (variable for part in op.inner for variable in introduces(part)):
        if name in taken:
            names[name] = next(new for n in count(1) if (new := f"{name}~{n}") not in taken)
        taken.add(names.get(name, name))
    inner = tuple(_renamed(part, names) for part in op.inner) if names else op.inner
    inner = _blocks(inner, taken)
    return op if inner == op.inner else anti_join(inner)


def _renamed(op: Op, names: Mapping[str, str]) -> Op:
    """The operator with other names for its variables; a block inside may have locals so called."""
    match op:
        case NodeScan():
            filters = tuple(rename_condition(part, names) for part in op.filters)
            return replace(op, variable=names.get(op.variable, op.variable), filters=filters)
        case Expand():
            return replace(
                op,
                src_var=names.get(op.src_var, op.src_var),
                dst_var=names.get(op.dst_var, op.dst_var),
                dst_filters=tuple(rename_condition(part, names) for part in op.dst_filters),
                edge_binding=None
                if op.edge_binding is None
                else names.get(op.edge_binding, op.edge_binding),
            )
        case Filter(condition=condition):
            return Filter(rename_condition(condition, names))
        case AntiJoin() | OptionalJoin():
            shared = {old: new for old, new in names.items() if old in op.outer_vars}
            if isinstance(op, OptionalJoin):
                own = {old: new for old, new in names.items() if old in op.introduced}
                return optional_join(_renamed_all(op.inner, {**shared, **own}))
            return anti_join(_renamed_all(op.inner, shared))


def _renamed_all(pipeline: Pipeline, names: Mapping[str, str]) -> Pipeline:
    return tuple(_renamed(op, names) for op in pipeline) if names else pipeline
