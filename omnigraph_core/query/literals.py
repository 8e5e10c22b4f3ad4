"""Literals as typed constants, alone and beside the type they meet.

Alone, a whole number is I64 (U64 beyond its range), a fraction F64, a text String, an empty list
[String]. In a comparison only two things change: whole numbers beside an F32 or F64 become F64
where that is exact, and an empty list takes the other side's type; nothing is rounded, truncated
or range-checked, so a literal out of an I32's range simply never equals one. In an assignment the
constant takes the property's own type, and what that type cannot hold is refused.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.query.ast import ListLiteral, Literal, TemporalLiteral
from omnigraph_core.query.typed import Constant
from omnigraph_core.types import (
    BOOL,
    DATE,
    DATETIME,
    F64,
    I64,
    INTEGER_RANGES,
    STRING,
    U64,
    PropType,
    Scalar,
    scalars_compatible,
)
from omnigraph_core.values import F32_OVERFLOW, ValueProblem, parse_date, parse_datetime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.diagnostics import Span
    from omnigraph_core.query.ast import Expr
    from omnigraph_core.query.scope import Context
    from omnigraph_core.values import Value

AnyLiteral: TypeAlias = Literal | TemporalLiteral | ListLiteral

_LOWEST: Final = -(2**63)
_HIGHEST_SIGNED: Final = 2**63 - 1
_HIGHEST: Final = 2**64 - 1
_EXAMPLES: Final = {
    Scalar.DATE: 'date("2026-01-31")',
    Scalar.DATETIME: 'datetime("2026-01-31T10:00:00Z")',
}
_TEMPORAL_OR_TEXT: Final = frozenset({Scalar.STRING, *_EXAMPLES})


def check_literal(ctx: Context, literal: AnyLiteral) -> Constant | None:
    """A literal with its own type, or None after reporting what is wrong with it."""
    if isinstance(literal, ListLiteral):
        return _list(ctx, literal)
    if isinstance(literal, TemporalLiteral):
        return _temporal(ctx, literal)
    value = literal.value
    if isinstance(value, str):
        return Constant(value, STRING)
    if isinstance(value, bool):
        return Constant(value, BOOL)
    if isinstance(value, int):
        return _integer(ctx, value, literal.span)
    if math.isfinite(value):
        return Constant(value, F64)
    ctx.report("T47", "number is too large for F64", literal.span)
    return None


def _integer(ctx: Context, value: int, span: Span) -> Constant | None:
    if _LOWEST <= value <= _HIGHEST_SIGNED:
        return Constant(value, I64)
    if 0 <= value <= _HIGHEST:
        return Constant(value, U64)
    message = "whole number does not fit in 64 bits"
    ctx.report("T47", message, span, hint=f"the range is {_LOWEST} to {_HIGHEST}")
    return None


def _temporal(ctx: Context, literal: TemporalLiteral) -> Constant | None:
    try:
        if literal.scalar is Scalar.DATE:
            return Constant(parse_date(literal.text), DATE)
        return Constant(parse_datetime(literal.text), DATETIME)
    except ValueProblem as problem:
        hint = f"write `{_EXAMPLES[literal.scalar]}`"
        ctx.report("T46", str(problem), literal.span, hint=hint)
        return None


def _list(ctx: Context, literal: ListLiteral) -> Constant | None:
    members: list[Constant] = []
    is_sound = True
    for item in literal.items:
        if not isinstance(item, Literal | TemporalLiteral):
            what = "a list" if isinstance(item, ListLiteral) else ctx.written(item.span)
            hint = "a list literal holds plain literals; pass other lists as a parameter"
            ctx.report("T38", f"a list literal cannot hold {what}", item.span, hint=hint)
            is_sound = False
        elif (member := check_literal(ctx, item)) is None:
            is_sound = False
        else:
            members.append(member)
    return _joined(ctx, members, literal.span) if is_sound else None


def _joined(ctx: Context, members: list[Constant], span: Span) -> Constant | None:
    """Members under one type: all alike, or numbers widened to what holds them all."""
    scalars = {member.type.scalar for member in members} or {Scalar.STRING}
    if len(scalars) == 1:
        return _list_constant((member.value for member in members), scalars.pop())
    if all(scalar.is_numeric for scalar in scalars):
        if Scalar.F64 in scalars and all(_is_exact(member.value) for member in members):
            return _list_constant((_as_float(member.value) for member in members), Scalar.F64)
        if all(isinstance(member.value, int) and member.value >= 0 for member in members):
            return _list_constant((member.value for member in members), Scalar.U64)
    names = " and ".join(sorted(scalars))
    hint = "use members of one type"
    ctx.report("T38", f"a list literal cannot mix {names}", span, hint=hint)
    return None


def _list_constant(values: Iterable[Value], scalar: Scalar) -> Constant:
    return Constant(tuple(values), PropType(scalar, is_list=True))


def _as_float(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)


def meet(constant: Constant, other: PropType) -> Constant:
    """A constant as it stands beside a value of another type in a comparison."""
    mine = constant.type
    if isinstance(constant.value, tuple):
        if not constant.value:
            return Constant((), PropType(other.scalar, is_list=True))
        if other.scalar.is_float and mine.scalar.is_integer and all(map(_is_exact, constant.value)):
            return _list_constant((_as_float(item) for item in constant.value), Scalar.F64)
        return constant
    if other.scalar.is_float and mine.scalar.is_integer and _is_exact(constant.value):
        return Constant(_as_float(constant.value), F64)
    return constant


def _is_exact(value: Value) -> bool:
    """Whether a number is the same as an F64; rounding it would make it equal to its neighbours."""
    return _as_float(value) == value


def is_allowed(ctx: Context, constant: Constant, type: PropType, written: Expr) -> bool:
    """Whether text literals are members of an enum; those that are not are reported."""
    if type.enum_values is None or constant.type.scalar is not Scalar.STRING:
        return True
    is_sound = True
    for value, span in _members(constant, written):
        if value not in type.enum_values:
            near = did_you_mean(str(value), type.enum_values)
            hint = near or f"allowed: {', '.join(type.enum_values)}"
            ctx.report("T3", f'"{value}" is not a value of {type.element}', span, hint=hint)
            is_sound = False
    return is_sound


def _members(constant: Constant, written: Expr) -> Iterator[tuple[Value, Span]]:
    """Each value with the place it is written at: the members of a list, else the value itself."""
    if isinstance(written, ListLiteral) and isinstance(constant.value, tuple):
        for value, item in zip(constant.value, written.items, strict=True):
            yield value, item.span
    else:
        yield constant.value, written.span


def fit_vector(ctx: Context, constant: Constant, type: PropType, written: Expr) -> Constant | None:
    """A list of numbers as a vector of the declared length."""
    span = written.span
    numbers = constant.value
    if not isinstance(numbers, tuple) or (numbers and not constant.type.scalar.is_numeric):
        return _misfit(ctx, constant, type, span, hint="write its numbers, like [0.1, 0.2]")
    return vector_of(ctx, numbers, type, span, "T3")


def vector_of(
    ctx: Context, numbers: tuple[Value, ...], type: PropType, span: Span, code: str
) -> Constant | None:
    """Numbers as a vector: as many as it has dimensions, each within the range of F32."""
    if len(numbers) != type.dimension:
        message = f"expected {type.dimension} numbers, found {len(numbers)}"
        ctx.report(code, message, span)
        return None
    fitted = tuple(_as_float(number) for number in numbers)
    for number in fitted:
        if abs(number) >= F32_OVERFLOW:
            message = f"{number} is out of range for F32"
            ctx.report(code, message, span, hint="the numbers of a vector are F32")
            return None
    return Constant(fitted, type.nullable(is_nullable=False))


def fit_assignment(
    ctx: Context, constant: Constant, type: PropType, written: Expr
) -> Constant | None:
    """A constant converted to the type of the property it is assigned to."""
    if type.is_vector:
        return fit_vector(ctx, constant, type, written)
    if type.is_list != constant.type.is_list:
        hint = "write a list, in `[` and `]`" if type.is_list else "the property holds one value"
        return _misfit(ctx, constant, type, written.span, hint=hint)
    if type.is_list:
        return _fit_members(ctx, written, type)
    return _fit_scalar(ctx, constant, type, written.span)


def _fit_members(ctx: Context, written: Expr, type: PropType) -> Constant | None:
    """The members of a list, each fitted as written: beside a fraction they stay whole numbers."""
    assert isinstance(written, ListLiteral)
    fitted: list[Value] = []
    for item in written.items:
        assert isinstance(item, Literal | TemporalLiteral)
        own = check_literal(ctx, item)
        member = None if own is None else _fit_scalar(ctx, own, type.element, item.span)
        if member is not None:
            fitted.append(member.value)
    if len(fitted) < len(written.items):
        return None
    return Constant(tuple(fitted), type.nullable(is_nullable=False))


def _fit_scalar(ctx: Context, constant: Constant, type: PropType, span: Span) -> Constant | None:
    mine, wanted = constant.type.scalar, type.scalar
    target = type.nullable(is_nullable=False)
    if wanted is Scalar.BLOB and mine is Scalar.STRING:
        return Constant(constant.value, target)
    if not scalars_compatible(mine, wanted):
        return _misfit(ctx, constant, type, span, hint=form_hint(wanted))
    if type.is_enum and not is_allowed(ctx, constant, type, Literal(str(constant.value), span)):
        return None
    if wanted.is_numeric:
        return _fit_number(ctx, constant, target, span)
    return Constant(constant.value, target)


def _fit_number(ctx: Context, constant: Constant, type: PropType, span: Span) -> Constant | None:
    value = constant.value
    assert isinstance(value, int | float)
    if type.scalar.is_float:
        if type.scalar is Scalar.F64 or abs(value) < F32_OVERFLOW:
            return Constant(float(value), type)
        ctx.report("T3", f"{value} is out of range for F32", span, hint="the property is an F32")
        return None
    if isinstance(value, float):
        message = f"{type.scalar} takes whole numbers, found {value}"
        ctx.report("T3", message, span, hint="round the number, or declare the property as F64")
        return None
    low, high = INTEGER_RANGES[type.scalar]
    if low <= value <= high:
        return Constant(value, type)
    ctx.report("T3", f"{value} is out of range for {type.scalar}", span, hint=f"{low} to {high}")
    return None


def _misfit(
    ctx: Context, constant: Constant, type: PropType, span: Span, *, hint: str | None
) -> Constant | None:
    message = f"expected {type.nullable(is_nullable=False)}, found {constant.type}"
    ctx.report("T3", message, span, hint=hint)
    return None


def form_hint(wanted: Scalar) -> str | None:
    """How a literal of a type is written."""
    if wanted.is_numeric:
        return "write a number, without quotes"
    if wanted in _EXAMPLES:
        return f"write `{_EXAMPLES[wanted]}`"
    return {
        Scalar.STRING: "write a text in double quotes",
        Scalar.BLOB: "write a text in double quotes: `base64:…` or a URI",
        Scalar.BOOL: "write `true` or `false`",
    }.get(wanted)


def temporal_hint(mine: Scalar, wanted: Scalar) -> str | None:
    """How to write a date where a text, or the other kind of date, stands."""
    if wanted in _EXAMPLES and mine in _TEMPORAL_OR_TEXT:
        return f"write `{_EXAMPLES[wanted]}`"
    return None
