"""Expressions: a parsed one and the place it stands in, checked into a typed one.

Returns None after reporting what is wrong, so a caller that gets None says nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.query.ast import Access, Call, ListLiteral, Literal, TemporalLiteral, Variable
from omnigraph_core.query.functions import FUNCTIONS, FunctionKind, Place
from omnigraph_core.query.literals import check_literal
from omnigraph_core.query.operands import check_access, check_variable, type_of
from omnigraph_core.query.search_calls import check_rank, check_text_match
from omnigraph_core.query.typed import Aggregate, AggregateFunction, NowValue
from omnigraph_core.types import F64, I64, U64, Scalar

if TYPE_CHECKING:
    from omnigraph_core.query.ast import Expr, Word
    from omnigraph_core.query.functions import Function
    from omnigraph_core.query.scope import Context, Scope
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.types import PropType

_COMPARABLE: Final = frozenset({Scalar.STRING, Scalar.DATE, Scalar.DATETIME})


def check_expr(ctx: Context, scope: Scope, expr: Expr, place: Place) -> TypedExpr | None:
    """An expression over rows of the match, as it may stand in a condition, column or aggregate."""
    if isinstance(expr, Access):
        return check_access(ctx, scope, expr)
    if isinstance(expr, Literal | TemporalLiteral | ListLiteral):
        return check_literal(ctx, expr)
    if isinstance(expr, Variable):
        return check_variable(ctx, scope, expr)
    if isinstance(expr, Call):
        return check_call(ctx, scope, expr, place)
    _report_word(ctx, scope, expr)
    return None


def _report_word(ctx: Context, scope: Scope, word: Word) -> None:
    owner = next(iter(scope.names()), "x")
    hint = f"write `${owner}.{word.name}` for a property, or quote a text"
    ctx.report("T6", f"`{word.name}` stands for nothing here", word.span, hint=hint)


def check_call(ctx: Context, scope: Scope, call: Call, place: Place) -> TypedExpr | None:
    """A function call, refused when the function is unknown, misplaced or miscounted."""
    function = find_function(ctx, call, place)
    if function is None:
        return None
    if function.kind is FunctionKind.AGGREGATE:
        return _aggregate(ctx, scope, call)
    if function.kind is FunctionKind.TEXT:
        return check_text_match(ctx, scope, call)
    if function.kind is FunctionKind.RANK:
        return check_rank(ctx, scope, call)
    return NowValue()


def find_function(ctx: Context, call: Call, place: Place) -> Function | None:
    """The function a call names, if it may stand there and takes that many arguments."""
    function = FUNCTIONS.get(call.function)
    if function is None:
        message = f"unknown function `{call.function}`"
        hint = did_you_mean(call.function, FUNCTIONS) or f"functions are {', '.join(FUNCTIONS)}"
        ctx.report("T44", message, call.function.span, hint=hint)
        return None
    if place not in function.places:
        _report_place(ctx, call, function, place)
        return None
    if not function.minimum <= len(call.arguments) <= function.maximum:
        message = f"`{function.name}` takes {function.arity}, found {len(call.arguments)}"
        ctx.report("T44", message, call.span, hint=f"write `{function.signature}`")
        return None
    return function if _is_plain(ctx, call, function) else None


def _is_plain(ctx: Context, call: Call, function: Function) -> bool:
    """Whether `distinct` and literal-only functions are used as they must."""
    if call.is_distinct and function.name != "count":
        code = "T8" if function.kind is FunctionKind.AGGREGATE else "T44"
        hint = f"only `count(distinct …)` counts values once; write `{function.signature}`"
        ctx.report(code, f"`{function.name}` takes no `distinct`", call.span, hint=hint)
        return False
    if function.name in ("date", "datetime"):
        message = f"`{function.name}` takes one text"
        ctx.report("T44", message, call.span, hint=f"write {function.summary}")
        return False
    return True


def _report_place(ctx: Context, call: Call, function: Function, place: Place) -> None:
    code, hint = _misplaced(function, place)
    message = f"`{function.name}` cannot stand in {place}"
    ctx.report(code, message, call.span, hint=hint)


def _misplaced(function: Function, place: Place) -> tuple[str, str]:
    """The code and the way out for a function in the wrong place."""
    if place is Place.ORDER:
        return "T39", "order by a property, an alias, an aggregate or a ranking"
    if place is Place.ARGUMENT:
        return "T8", "aggregate a property or a variable"
    if place is Place.MATCH and function.kind is FunctionKind.AGGREGATE:
        return "T8", "filter groups with `having { … }` after return"
    if place is Place.MATCH:
        return "T7", "rank in `order { … }` and cut with `limit`, or filter with `search`"
    if place is Place.HAVING:
        return "T44", "search in match; having sees groups"
    return "T44", "use a literal, a parameter or `now()`"


def _aggregate(ctx: Context, scope: Scope, call: Call) -> Aggregate | None:
    argument = check_expr(ctx, scope, call.arguments[0], Place.ARGUMENT)
    if argument is None:
        return None
    type = type_of(argument)
    if type is not None and type.is_blob:
        report_blob(ctx, call.arguments[0])
        return None
    result = _aggregate_type(AggregateFunction(call.function), type)
    if result is None:
        _report_argument(ctx, call, type)
        return None
    return Aggregate(AggregateFunction(call.function), argument, result, call.is_distinct)


def report_blob(ctx: Context, expr: Expr) -> None:
    message = f"{ctx.written(expr.span)} is a Blob, which queries do not read as a value"
    ctx.report("T24", message, expr.span, hint="return its `id` instead")


def _aggregate_type(function: AggregateFunction, type: PropType | None) -> PropType | None:
    """What an aggregate yields, or None when it cannot take such a value. None takes a node."""
    if function is AggregateFunction.COUNT:
        return I64
    if type is None or type.is_list:
        return None
    if function in (AggregateFunction.MIN, AggregateFunction.MAX):
        return type.nullable() if type.is_numeric or type.scalar in _COMPARABLE else None
    if not type.is_numeric:
        return None
    if function is AggregateFunction.AVG or type.scalar.is_float:
        return F64.nullable()
    return (U64 if type.scalar is Scalar.U64 else I64).nullable()


def _report_argument(ctx: Context, call: Call, type: PropType | None) -> None:
    takes = "numbers" if call.function in ("sum", "avg") else "numbers, texts and dates"
    found = "a node" if type is None else str(type)
    argument = call.arguments[0]
    message = f"`{call.function}` takes {takes}, {ctx.written(argument.span)} is {found}"
    ctx.report("T8", message, argument.span, hint="use `count`, or another property")
