"""Names in expressions: `$x`, `$x.p` and parameters, resolved to typed values.

Every function returns None after reporting, or silently when the cause was reported before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.query.scope import find_property, find_variable, properties_of
from omnigraph_core.query.typed import EntityKind, NodeValue, ParamValue, PropertyValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.query.ast import Access, Variable
    from omnigraph_core.query.scope import Bound, Context, Scope
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.types import PropType


def type_of(expr: TypedExpr) -> PropType | None:
    """The type of a value; a node standing for itself has none."""
    return None if isinstance(expr, NodeValue) else expr.type


def check_param(ctx: Context, name: str) -> ParamValue | None:
    """A declared parameter; None when its type is unknown."""
    type = ctx.params[name]
    return ParamValue(str(name), type) if type is not None else None


def check_variable(ctx: Context, scope: Scope, variable: Variable) -> ParamValue | NodeValue | None:
    """`$name`: a parameter if one is declared, else a bound node."""
    name = variable.name
    if name in ctx.params:
        return check_param(ctx, name)
    bound = find_variable(ctx, scope, name)
    if bound is None:
        return None
    if bound.kind is EntityKind.EDGE:
        report_bare_edge(ctx, variable)
        return None
    if bound.type_name is None:
        return None
    return NodeValue(bound.name, bound.type_name, bound.is_optional)


def report_bare_edge(ctx: Context, variable: Variable) -> None:
    message = f"`${variable.name}` is an edge, it has no value of its own"
    hint = f"use one of its properties, or `${variable.name}.id`"
    ctx.report("T23", message, variable.span, hint=hint)


def check_access(ctx: Context, scope: Scope, access: Access) -> PropertyValue | None:
    """`$x.p`: a declared property, or the implicit `id`, `src` or `dst`."""
    bound = find_variable(ctx, scope, access.variable)
    if bound is None or bound.type_name is None:
        return None
    type = find_property(ctx, bound, access.property)
    if type is None:
        _report_property(ctx, bound, access)
        return None
    return PropertyValue(bound.name, str(access.property), type)


def _report_property(ctx: Context, bound: Bound, access: Access) -> None:
    properties, implicit = properties_of(ctx.catalog, bound.kind, bound.type_name)
    message = f"unknown property `{access.property}` on `{bound.type_name}`"
    hint = did_you_mean(access.property, (*properties, *implicit))
    ctx.report("T6", message, access.property.span, hint=hint or listing("it has", properties))


def listing(words: str, names: Iterable[str]) -> str | None:
    """A hint that lists what there is, when that is short enough to help."""
    known = [f"`{name}`" for name in names]
    return f"{words} {', '.join(known)}" if 0 < len(known) <= 8 else None
