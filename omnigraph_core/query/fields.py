"""Values given to properties: inline fields of a binding, assignments of an insert or update.

A value is a literal, a declared parameter or `now()`. A field compares and so takes any compatible
literal; an assignment stores and so takes only what the property's type can hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.query.ast import Call, ListLiteral, Literal, TemporalLiteral, Variable
from omnigraph_core.query.expressions import find_function
from omnigraph_core.query.functions import Place
from omnigraph_core.query.literals import (
    check_literal,
    fit_assignment,
    fit_vector,
    form_hint,
    is_allowed,
    meet,
)
from omnigraph_core.query.operands import check_param
from omnigraph_core.query.typed import (
    Compare,
    Constant,
    NowValue,
    ParamValue,
    PropertyValue,
    TypedOp,
)
from omnigraph_core.types import DATETIME, STRING, Scalar, scalars_compatible

if TYPE_CHECKING:
    from typing import TypeAlias

    from omnigraph_core.diagnostics import Span
    from omnigraph_core.query.ast import Assignment, Expr
    from omnigraph_core.query.scope import Context, Scope
    from omnigraph_core.types import PropType

    GivenValue: TypeAlias = Constant | ParamValue | NowValue


def check_field(
    ctx: Context, scope: Scope, variable: str, field: Assignment, type: PropType
) -> Compare | None:
    """`p: value` of a binding: equal to the value, or a list holding it."""
    value = check_value(ctx, field.value, type=type, scope=scope)
    if type.is_blob:
        message = f"`{field.name}` is a Blob and cannot be matched"
        ctx.report("T3", message, field.name.span, hint="match another property")
        return None
    if value is None:
        return None
    fitted = _fit_field(ctx, value, type, field.value)
    if fitted is None:
        return None
    op = TypedOp.HAS_MEMBER if type.is_list else TypedOp.EQ
    return Compare(PropertyValue(variable, str(field.name), type), op, fitted)


def check_assignment(ctx: Context, given: Assignment, type: PropType) -> GivenValue | None:
    """`p: value` of an insert or update, converted to the property's type."""
    value = check_value(ctx, given.value, type=type)
    if isinstance(value, Constant):
        return fit_assignment(ctx, value, type, given.value)
    if value is None or _can_store(value.type, type):
        return value
    _report_unfit(ctx, value, type, given.value.span)
    return None


def check_value(
    ctx: Context, written: Expr, *, type: PropType | None = None, scope: Scope | None = None
) -> GivenValue | None:
    """A value known before the first row: literal, parameter or `now()`.

    Args:
        type: what the value is for, to suggest a declaration of an undeclared parameter.
        scope: where pattern variables exist that could be taken for a parameter.
    """
    if isinstance(written, Literal | TemporalLiteral | ListLiteral):
        return check_literal(ctx, written)
    if isinstance(written, Variable):
        if scope is not None and written.name not in ctx.params and scope.is_known(written.name):
            message = f"`${written.name}` is a pattern variable, a field takes a value"
            hint = "compare properties in a filter of their own, like `$a.p = $b.p`"
            ctx.report("T14", message, written.span, hint=hint)
            return None
        return check_declared(ctx, written, type)
    if isinstance(written, Call):
        return NowValue() if find_function(ctx, written, Place.VALUE) is not None else None
    message = f"{ctx.written(written.span)} is not a literal, parameter or `now()`"
    hint = "quote a text, or declare a parameter"
    ctx.report("T14", message, written.span, hint=hint)
    return None


def check_declared(
    ctx: Context, variable: Variable, type: PropType | None = None
) -> ParamValue | None:
    """`$name` where only a parameter makes sense."""
    if variable.name in ctx.params:
        return check_param(ctx, variable.name)
    if ctx.is_first("T14", variable.name):
        near = did_you_mean(f"${variable.name}", [f"${name}" for name in ctx.params])
        wanted = f": `${variable.name}: {_declaration(type)}`" if type is not None else ""
        hint = near or f"declare it{wanted or ' as a parameter'}"
        message = f"`${variable.name}` is not a declared parameter"
        ctx.report("T14", message, variable.span, hint=hint)
    return None


def _declaration(type: PropType) -> str:
    """How a parameter for a property of this type is declared."""
    if type.is_enum:
        return str(STRING)
    return str(type.nullable(is_nullable=False))


def _fit_field(ctx: Context, value: GivenValue, type: PropType, written: Expr) -> GivenValue | None:
    if isinstance(value, Constant):
        return _fit_literal(ctx, value, type, written)
    if type.is_vector:
        is_fit = value.type.is_vector and value.type.dimension == type.dimension
    else:
        is_fit = not value.type.is_list and scalars_compatible(value.type.scalar, type.scalar)
    if is_fit:
        return value
    _report_unfit(ctx, value, type.element if type.is_list else type, written.span)
    return None


def _fit_literal(ctx: Context, value: Constant, type: PropType, written: Expr) -> Constant | None:
    span = written.span
    if type.is_vector:
        return fit_vector(ctx, value, type, written)
    if value.type.is_list:
        way = "give the one member to look for" if type.is_list else "use a filter with `in`"
        ctx.report("T3", f"expected one {type.scalar}, found a list", span, hint=way)
        return None
    if not scalars_compatible(value.type.scalar, type.scalar):
        hint = form_hint(type.scalar)
        ctx.report("T3", f"expected {type.element}, found {value.type}", span, hint=hint)
        return None
    return meet(value, type) if is_allowed(ctx, value, type, written) else None


def _can_store(given: PropType, type: PropType) -> bool:
    """Whether a parameter or `now()` may be written; its value is checked when it is."""
    if type.is_vector or given.is_vector:
        return type.is_vector and given.is_vector and type.dimension == given.dimension
    if type.is_list != given.is_list:
        return False
    if type.is_blob and given.scalar is Scalar.STRING:
        return True
    return scalars_compatible(given.scalar, type.scalar)


def _report_unfit(ctx: Context, value: GivenValue, type: PropType, span: Span) -> None:
    wanted = type.nullable(is_nullable=False)
    hint = "`now()` fits a DateTime only"
    if isinstance(value, ParamValue):
        hint = f"declare it: `${value.name}: {_declaration(type)}`"
    elif value.type == DATETIME and type.scalar is Scalar.DATE:
        hint = "pass the day as a Date parameter"
    message = f"expected {wanted}, {ctx.written(span)} is {value.type}"
    ctx.report("T7", message, span, hint=hint)
