"""Reads: what the rows of a match become — columns, groups, order, limit.

Without groups or `distinct`, sort keys see the rows of the match; with either they see only the
result, so a key must be one of its columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.query.ast import (
    Access,
    And,
    Call,
    Comparison,
    Literal,
    Membership,
    NullTest,
    Or,
    Truth,
    Variable,
    Word,
)
from omnigraph_core.query.check_match import check_match
from omnigraph_core.query.check_order import check_order
from omnigraph_core.query.checked import CheckedColumn, CheckedRead
from omnigraph_core.query.conditions import check_condition, conjuncts
from omnigraph_core.query.expressions import check_expr, report_blob
from omnigraph_core.query.functions import FUNCTIONS, FunctionKind, Place
from omnigraph_core.query.literals import check_literal
from omnigraph_core.query.operands import check_param, type_of
from omnigraph_core.query.result import Result
from omnigraph_core.query.typed import (
    Aggregate,
    Constant,
    NodeValue,
    NowValue,
    ParamValue,
    PropertyValue,
    Rrf,
)

if TYPE_CHECKING:
    from omnigraph_core.query.ast import Column, Condition, Expr, Read
    from omnigraph_core.query.scope import Context, Scope
    from omnigraph_core.query.typed import TypedCondition, TypedExpr

_GROUPABLE: Final = (PropertyValue, NodeValue, Aggregate, Constant, ParamValue, NowValue)


def check_read(ctx: Context, read: Read) -> tuple[CheckedRead, Scope]:
    """A read, and the scope of its match; meaningful only if the context has no problems."""
    scope, clauses = check_match(ctx, read.match)
    is_grouped = _is_grouped(read)
    result = Result(is_grouped=is_grouped, is_distinct=read.is_distinct)
    for column in read.columns:
        _add_column(ctx, scope, result, column)
    if any(isinstance(expr, Rrf) for _, expr in result.columns) and read.limit is None:
        _report_rrf(ctx, read)
    having = _having(ctx, scope, result, read)
    checked = CheckedRead(
        clauses=clauses,
        columns=tuple(
            CheckedColumn(name, expr, type_of(expr))
            for name, expr in result.columns
            if expr is not None
        ),
        is_distinct=read.is_distinct,
        is_grouped=is_grouped,
        having=having,
        order=check_order(ctx, scope, result, read),
        limit=_row_count(ctx, read.limit, "limit"),
        offset=_row_count(ctx, read.offset, "offset"),
    )
    return checked, scope


def _is_grouped(read: Read) -> bool:
    return any(_is_aggregate(column.expr) for column in read.columns) or any(
        _mentions_aggregate(condition) for condition in read.having
    )


def _is_aggregate(expr: Expr) -> bool:
    if not isinstance(expr, Call):
        return False
    function = FUNCTIONS.get(expr.function)
    return function is not None and function.kind is FunctionKind.AGGREGATE


def _mentions_aggregate(condition: Condition) -> bool:
    waiting = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, And | Or):
            waiting.extend(part.operands)
        elif any(_is_aggregate(expr) for expr in _operands(part)):
            return True
    return False


def _operands(part: Comparison | Membership | NullTest | Truth) -> tuple[Expr, ...]:
    if isinstance(part, Comparison):
        return part.left, part.right
    return (part.item,) if isinstance(part, Membership) else (part.operand,)


def _add_column(ctx: Context, scope: Scope, result: Result, column: Column) -> None:
    name = str(column.alias) if column.alias is not None else _default_name(column.expr)
    expr = check_expr(ctx, scope, column.expr, Place.RETURN)
    if expr is not None and not _is_column(ctx, result, column, expr):
        expr = None
    if result.find(name) is not None:
        span = column.alias.span if column.alias is not None else column.expr.span
        hint = "give it another name with `as`"
        ctx.report("T25", f"the result has a column `{name}` already", span, hint=hint)
    result.columns.append((name, expr))


def _default_name(expr: Expr) -> str:
    """The name of a column without an alias."""
    if isinstance(expr, Access):
        return f"{expr.variable}.{expr.property}"
    if isinstance(expr, Variable | Word):
        return str(expr.name)
    return str(expr.function) if isinstance(expr, Call) else "literal"


def _is_column(ctx: Context, result: Result, column: Column, expr: TypedExpr) -> bool:
    type = type_of(expr)
    if type is not None and type.is_blob:
        report_blob(ctx, column.expr)
        return False
    if result.is_grouped and not isinstance(expr, _GROUPABLE):
        message = f"{ctx.written(column.expr.span)} cannot stand next to an aggregate"
        hint = "group by properties or variables"
        ctx.report("T9", message, column.expr.span, hint=hint)
        return False
    return True


def _report_rrf(ctx: Context, read: Read) -> None:
    for column in read.columns:
        if isinstance(column.expr, Call) and column.expr.function == "rrf":
            ctx.report("T21", "`rrf` needs a limit", column.expr.span, hint="add `limit 10`")


def _having(ctx: Context, scope: Scope, result: Result, read: Read) -> tuple[TypedCondition, ...]:
    if not read.having:
        return ()
    if not result.is_grouped:
        span = read.having[0].span.to(read.having[-1].span)
        hint = "move the condition into match, or return an aggregate"
        ctx.report("T42", "`having` filters groups, and this query has none", span, hint=hint)
        return ()

    def operand(expr: Expr) -> TypedExpr | None:
        return _group_operand(ctx, scope, result, expr)

    parts = [part for condition in read.having for part in conjuncts(condition)]
    checked = [check_condition(ctx, part, operand) for part in parts]
    return tuple(condition for condition in checked if condition is not None)


def _group_operand(ctx: Context, scope: Scope, result: Result, expr: Expr) -> TypedExpr | None:
    """An operand over groups: a column, an aggregate, or a value known before the first row."""
    if isinstance(expr, Word):
        return result.by_alias(ctx, expr, "T42")
    value = check_expr(ctx, scope, expr, Place.HAVING)
    if value is None or isinstance(value, Constant | ParamValue | NowValue):
        return value
    column = result.column_of(value)
    if column is not None:
        return column
    if isinstance(value, Aggregate):
        return value
    message = f"{ctx.written(expr.span)} is not in the result"
    hint = "return it, so that the groups have it, or filter it in match"
    ctx.report("T42", message, expr.span, hint=hint)
    return None


def _row_count(ctx: Context, written: Literal | Variable | None, word: str) -> TypedExpr | None:
    """A limit or offset: a whole number, or a parameter that always is one."""
    if written is None:
        return None
    if isinstance(written, Literal):
        if isinstance(written.value, int) and not isinstance(written.value, bool):
            return _constant_count(ctx, written, written.value, word)
        message = f"{word} is a whole number"
        ctx.report("T43", message, written.span, hint=f"write `{word} 10`")
        return None
    if written.name not in ctx.params:
        hint = f"declare a parameter, like `${word}: I64`"
        message = f"{word} takes a number or a declared parameter"
        ctx.report("T43", message, written.span, hint=hint)
        return None
    param = check_param(ctx, written.name)
    if param is None or (
        param.type.is_numeric and param.type.scalar.is_integer and not param.type.is_nullable
    ):
        return param
    message = f"{word} takes a whole number that is never null, `${written.name}` is {param.type}"
    ctx.report("T43", message, written.span, hint=f"declare it: `${written.name}: I64`")
    return None


def _constant_count(ctx: Context, written: Literal, value: int, word: str) -> TypedExpr | None:
    if value >= 0:
        return check_literal(ctx, written)
    ctx.report("T43", f"{word} cannot be negative", written.span, hint=f"write `{word} 0` or more")
    return None
