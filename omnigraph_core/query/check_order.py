"""Sort keys: each an orderable value that still exists where sorting happens.

A ranking is best first, comes before every other key, and needs rows that are not grouped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.query.ast import Access, Call, SortDirection, Variable, Word
from omnigraph_core.query.checked import CheckedSortKey
from omnigraph_core.query.expressions import check_call, report_blob
from omnigraph_core.query.functions import FUNCTIONS, FunctionKind, Place
from omnigraph_core.query.operands import check_access, check_variable, type_of

if TYPE_CHECKING:
    from omnigraph_core.query.ast import Read, SortKey
    from omnigraph_core.query.result import Result
    from omnigraph_core.query.scope import Context, Scope
    from omnigraph_core.query.typed import ColumnValue, TypedExpr


def check_order(
    ctx: Context, scope: Scope, result: Result, read: Read
) -> tuple[CheckedSortKey, ...]:
    """The sort keys of a read, in order."""
    _check_nearest(ctx, read)
    keys = []
    for position, key in enumerate(read.order):
        expr = _key(ctx, scope, result, read, key, is_first=position == 0)
        if expr is None:
            continue
        is_rank = isinstance(key.expr, Call) and _kind(key.expr) is FunctionKind.RANK
        default = SortDirection.DESC if is_rank else SortDirection.ASC
        keys.append(CheckedSortKey(expr, key.direction or default))
    return tuple(keys)


def _kind(call: Call) -> FunctionKind | None:
    function = FUNCTIONS.get(call.function)
    return None if function is None else function.kind


def _check_nearest(ctx: Context, read: Read) -> None:
    """`nearest` keeps the best `limit` rows before aliases exist."""
    nearest = [
        key for key in read.order if isinstance(key.expr, Call) and key.expr.function == "nearest"
    ]
    if not nearest:
        return
    if read.limit is None:
        hint = "add `limit 10`"
        ctx.report("T17", "`nearest` needs a limit", nearest[0].expr.span, hint=hint)
    for key in read.order:
        if isinstance(key.expr, Word):
            message = f"alias `{key.expr.name}` cannot order together with `nearest`"
            hint = "order by the property it stands for"
            ctx.report("T18", message, key.expr.span, hint=hint)


def _key(
    ctx: Context, scope: Scope, result: Result, read: Read, key: SortKey, *, is_first: bool
) -> TypedExpr | None:
    expr = key.expr
    if isinstance(expr, Word):
        column = result.by_alias(ctx, expr, "T39")
        return column if column is not None and _is_orderable(ctx, key, column) else None
    if isinstance(expr, Access):
        return _property_key(ctx, scope, result, key, expr)
    if isinstance(expr, Call):
        if _kind(expr) is FunctionKind.RANK and not _may_rank(
            ctx, result, read, key, is_first=is_first
        ):
            return None
        return _call_key(ctx, scope, result, key, expr)
    _report_no_key(ctx, scope, key)
    return None


def _is_orderable(ctx: Context, key: SortKey, value: TypedExpr) -> bool:
    type = type_of(value)
    if type is not None and type.is_blob:
        report_blob(ctx, key.expr)
        return False
    if type is not None and not type.is_list and not type.is_vector:
        return True
    kind = "nodes" if type is None else "lists" if type.is_list else "vectors"
    message = f"{ctx.written(key.expr.span)} holds {kind}, which have no order"
    ctx.report("T39", message, key.expr.span, hint="order by a single value")
    return False


def _property_key(
    ctx: Context, scope: Scope, result: Result, key: SortKey, written: Access
) -> TypedExpr | None:
    value = check_access(ctx, scope, written)
    if value is None or not _is_orderable(ctx, key, value):
        return None
    return _in_result(ctx, result, key, value) if result.hides_rows else value


def _in_result(ctx: Context, result: Result, key: SortKey, value: TypedExpr) -> ColumnValue | None:
    """The returned column of that value, since nothing else is left to order by."""
    column = result.column_of(value)
    if column is None:
        why = "grouped" if result.is_grouped else "distinct"
        message = f"{ctx.written(key.expr.span)} is not a column of this {why} result"
        hint = "return it, or order by an alias"
        ctx.report("T39", message, key.expr.span, hint=hint)
    return column


def _may_rank(ctx: Context, result: Result, read: Read, key: SortKey, *, is_first: bool) -> bool:
    assert isinstance(key.expr, Call)
    name, span = key.expr.function, key.expr.span
    if name == "rrf" and read.limit is None:
        ctx.report("T21", "`rrf` needs a limit", span, hint="add `limit 10`")
    problem = hint = None
    if result.is_grouped:
        problem, hint = f"`{name}` ranks rows, and groups have none", "rank without aggregates"
    elif not is_first:
        problem, hint = f"`{name}` must be the first sort key", "put the ranking first"
    elif key.direction is SortDirection.ASC:
        problem, hint = f"`{name}` has no ascending order", "leave out `asc`: best comes first"
    if problem is not None:
        ctx.report("T39", problem, span, hint=hint)
    return problem is None


def _call_key(
    ctx: Context, scope: Scope, result: Result, key: SortKey, call: Call
) -> TypedExpr | None:
    if _kind(call) is FunctionKind.AGGREGATE and not result.is_grouped:
        message = f"{ctx.written(call.span)} orders groups, and this query has none"
        hint = "return an aggregate, or order by a property"
        ctx.report("T39", message, call.span, hint=hint)
        return None
    value = check_call(ctx, scope, call, Place.ORDER)
    if value is None or not _is_orderable(ctx, key, value):
        return None
    if result.is_distinct:
        column = _in_result(ctx, result, key, value)
        # Best first is not the greatest value first: a distance is best when it is least.
        is_rank = _kind(call) is FunctionKind.RANK
        return value if is_rank and column is not None else column
    return (result.column_of(value) or value) if result.is_grouped else value


def _report_no_key(ctx: Context, scope: Scope, key: SortKey) -> None:
    hint = "order by a property, an alias, an aggregate or a ranking"
    if isinstance(key.expr, Variable) and key.expr.name not in ctx.params:
        if check_variable(ctx, scope, key.expr) is None:
            return
        hint = f"order by a property, or by `${key.expr.name}.id`"
    message = f"{ctx.written(key.expr.span)} cannot order the result"
    ctx.report("T39", message, key.expr.span, hint=hint)
