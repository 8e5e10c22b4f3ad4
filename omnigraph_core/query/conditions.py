"""Conditions: two operands that can meet, a membership, a null test, and their `and` and `or`.

The caller says how an operand is read (`Operand`), so match, having and where share these rules.
Membership in a constant list is always `IsIn`, whichever way round it was written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.query.ast import (
    And,
    CompareOp,
    Comparison,
    Expr,
    Literal,
    Membership,
    NullTest,
    Or,
    TemporalLiteral,
    Variable,
)
from omnigraph_core.query.literals import is_allowed, meet, temporal_hint
from omnigraph_core.query.operands import type_of
from omnigraph_core.query.typed import (
    Aggregate,
    All,
    Any,
    ColumnValue,
    Compare,
    Constant,
    Holds,
    IsIn,
    IsNull,
    NodeValue,
    ParamValue,
    PropertyValue,
    TypedExpr,
    TypedOp,
)
from omnigraph_core.types import STRING, PropType, Scalar, scalars_compatible

if TYPE_CHECKING:
    from omnigraph_core.diagnostics import Span
    from omnigraph_core.query.ast import Condition, Truth
    from omnigraph_core.query.scope import Context
    from omnigraph_core.query.typed import TypedCondition

Operand: TypeAlias = Callable[[Expr], TypedExpr | None]
"""Reads one operand; None after reporting what is wrong with it."""

_EQUALITY: Final = frozenset({CompareOp.EQ, CompareOp.NE})


def check_condition(ctx: Context, condition: Condition, operand: Operand) -> TypedCondition | None:
    """A condition whose every part fits, or None after reporting each part that does not."""
    if isinstance(condition, Comparison):
        return _comparison(ctx, condition, operand)
    if isinstance(condition, And | Or):
        return _combined(ctx, condition, operand)
    if isinstance(condition, Membership):
        return _membership(ctx, condition, operand)
    if isinstance(condition, NullTest):
        return _null_test(ctx, condition, operand)
    return _truth(ctx, condition, operand)


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """The conditions that must all hold: the parts of an `and`, else the condition alone."""
    return condition.operands if isinstance(condition, And) else (condition,)


def _combined(ctx: Context, condition: And | Or, operand: Operand) -> TypedCondition | None:
    parts = [check_condition(ctx, part, operand) for part in condition.operands]
    sound = tuple(part for part in parts if part is not None)
    if len(sound) < len(parts):
        return None
    return All(sound) if isinstance(condition, And) else Any(sound)


def _comparison(ctx: Context, written: Comparison, operand: Operand) -> TypedCondition | None:
    left, right = operand(written.left), operand(written.right)
    if left is None or right is None:
        return None
    left_type, right_type = type_of(left), type_of(right)
    if left_type is None or right_type is None:
        return _node_comparison(ctx, written, left, right)
    if written.op is CompareOp.CONTAINS:
        return _contains(ctx, written, (left, left_type), (right, right_type))
    if not (_is_plain(ctx, written.left, left_type) and _is_plain(ctx, written.right, right_type)):
        return None
    if written.op is CompareOp.STARTS_WITH:
        return _starts_with(ctx, written, (left, left_type), (right, right_type))
    if not scalars_compatible(left_type.scalar, right_type.scalar):
        return _mismatch(ctx, written.span, (written.left, left_type), (written.right, right_type))
    if written.op in _EQUALITY and not _in_enum(ctx, written, left, right):
        return None
    return Compare(_beside(left, right_type), TypedOp(written.op), _beside(right, left_type))


def _node_comparison(
    ctx: Context, written: Comparison, left: TypedExpr, right: TypedExpr
) -> Compare | None:
    """Two nodes of one type are equal when their ids are."""
    if (
        isinstance(left, NodeValue)
        and isinstance(right, NodeValue)
        and written.op in _EQUALITY
        and left.type_name == right.type_name
    ):
        return Compare(node_id(left), TypedOp(written.op), node_id(right))
    if isinstance(left, NodeValue) and isinstance(right, NodeValue) and written.op in _EQUALITY:
        message = f"a `{left.type_name}` is never a `{right.type_name}`"
        ctx.report("T7", message, written.span, hint="compare properties of the two")
        return None
    for expr, value in ((written.left, left), (written.right, right)):
        if type_of(value) is None:
            hint = "compare one of its properties, or two nodes with `=`"
            message = f"{ctx.written(expr.span)} is a node, not a value to compare"
            ctx.report("T7", message, expr.span, hint=hint)
    return None


def node_id(node: NodeValue) -> PropertyValue:
    """The id that stands for a node in conditions."""
    return PropertyValue(node.variable, "id", STRING.nullable(is_nullable=node.is_nullable))


def _is_plain(ctx: Context, expr: Expr, type: PropType) -> bool:
    """Whether a value is a single comparable scalar."""
    if not (type.is_list or type.is_vector or type.is_blob):
        return True
    hint = "rank vectors with `nearest`" if type.is_vector else "compare another property"
    if type.is_list:
        hint = "ask for a member with `contains`, or write the list after `in`"
    kind = "a list" if type.is_list else "a vector" if type.is_vector else "a Blob"
    message = f"{ctx.written(expr.span)} is {kind}, not a single value to compare"
    ctx.report("T7", message, expr.span, hint=hint)
    return False


def _mismatch(
    ctx: Context, span: Span, left: tuple[Expr, PropType], right: tuple[Expr, PropType]
) -> TypedCondition | None:
    sides = [f"{ctx.written(expr.span)} ({type})" for expr, type in (left, right)]
    hint = _mismatch_hint(left, right[1]) or _mismatch_hint(right, left[1])
    message = f"cannot compare {sides[0]} with {sides[1]}"
    ctx.report("T7", message, span, hint=hint or "compare values of one type")
    return None


def _mismatch_hint(side: tuple[Expr, PropType], other: PropType) -> str | None:
    """How a literal or parameter would have to be written to meet the other side."""
    expr, type = side
    if isinstance(expr, Variable):
        wanted = f"[{other.scalar}]" if type.is_list else other.scalar
        return f"declare it: `${expr.name}: {wanted}`"
    if isinstance(expr, Literal | TemporalLiteral):
        return temporal_hint(type.scalar, other.scalar)
    return None


def _in_enum(ctx: Context, written: Comparison, left: TypedExpr, right: TypedExpr) -> bool:
    """Whether a text literal beside an enum is one of its values."""
    return _allows(ctx, left, right, written.right) and _allows(ctx, right, left, written.left)


def _allows(ctx: Context, value: TypedExpr, other: TypedExpr, written: Expr) -> bool:
    type = type_of(value)
    if type is None or not isinstance(other, Constant):
        return True
    return is_allowed(ctx, other, type, written)


def _beside(value: TypedExpr, other: PropType) -> TypedExpr:
    return meet(value, other) if isinstance(value, Constant) else value


def _contains(
    ctx: Context,
    written: Comparison,
    left: tuple[TypedExpr, PropType],
    right: tuple[TypedExpr, PropType],
) -> TypedCondition | None:
    (whole, whole_type), (part, part_type) = left, right
    if not _is_plain(ctx, written.right, part_type):
        return None
    if whole_type.is_string:
        if part_type.is_string:
            return Compare(whole, TypedOp.HAS_TEXT, part)
        return _mismatch(ctx, written.span, (written.left, whole_type), (written.right, part_type))
    if not whole_type.is_list:
        message = f"{ctx.written(written.left.span)} is {whole_type}, it contains nothing"
        hint = "`contains` looks into a list or a String"
        ctx.report("T7", message, written.left.span, hint=hint)
        return None
    if isinstance(whole, Constant | ParamValue):
        return _is_in(ctx, written.span, (written.right, part), (written.left, whole))
    if not scalars_compatible(whole_type.scalar, part_type.scalar):
        return _mismatch(ctx, written.span, (written.left, whole_type), (written.right, part_type))
    return Compare(whole, TypedOp.HAS_MEMBER, _beside(part, whole_type.element))


def _starts_with(
    ctx: Context,
    written: Comparison,
    left: tuple[TypedExpr, PropType],
    right: tuple[TypedExpr, PropType],
) -> Compare | None:
    if left[1].is_string and right[1].is_string:
        return Compare(left[0], TypedOp.STARTS_WITH, right[0])
    for expr, (_, type) in ((written.left, left), (written.right, right)):
        if not type.is_string:
            message = f"`starts_with` compares Strings, {ctx.written(expr.span)} is {type}"
            ctx.report("T7", message, expr.span, hint="compare other types with `=` or `<`")
    return None


def _membership(ctx: Context, written: Membership, operand: Operand) -> TypedCondition | None:
    item, options = operand(written.item), operand(written.options)
    if item is None or options is None:
        return None
    if not isinstance(options, Constant | ParamValue) or not options.type.is_list:
        hint = 'write a list, like ["a", "b"], or a list parameter, like `$options: [String]`'
        message = (
            f"`in` takes a list literal or list parameter, not {ctx.written(written.options.span)}"
        )
        ctx.report("T7", message, written.options.span, hint=hint)
        return None
    return _is_in(ctx, written.span, (written.item, item), (written.options, options))


def _is_in(
    ctx: Context,
    span: Span,
    item: tuple[Expr, TypedExpr],
    options: tuple[Expr, Constant | ParamValue],
) -> TypedCondition | None:
    (item_written, value), (options_written, members) = item, options
    type = type_of(value)
    if type is None:
        message = f"{ctx.written(item_written.span)} is a node, not a value to compare"
        hint = "compare one of its properties, like its `id`"
        ctx.report("T7", message, item_written.span, hint=hint)
        return None
    if not _is_plain(ctx, item_written, type):
        return None
    if isinstance(members, Constant):
        members = meet(members, type)
        if not is_allowed(ctx, members, type, options_written):
            return None
    if not scalars_compatible(type.scalar, members.type.scalar):
        return _mismatch(ctx, span, (item_written, type), (options_written, members.type))
    return IsIn(_beside(value, members.type.element), members)


def _null_test(ctx: Context, written: NullTest, operand: Operand) -> IsNull | None:
    value = operand(written.operand)
    if value is None:
        return None
    if isinstance(value, NodeValue):
        if value.is_nullable:
            return IsNull(node_id(value), written.is_negated)
        hint = "only a variable of an `optional` block can be null"
    elif isinstance(value, PropertyValue | ParamValue | ColumnValue | Aggregate):
        if value.type is None or not value.type.is_blob:
            return IsNull(value, written.is_negated)
        hint = "Blobs are not read by queries"
    else:
        hint = "test a property or a parameter"
    message = f"{ctx.written(written.operand.span)} cannot be tested for null"
    ctx.report("T7", message, written.operand.span, hint=hint)
    return None


def _truth(ctx: Context, written: Truth, operand: Operand) -> Holds | None:
    value = operand(written.operand)
    if value is None:
        return None
    type = type_of(value)
    if type is not None and type.scalar is Scalar.BOOL and not type.is_list:
        return Holds(value)
    found = "a node" if type is None else str(type)
    message = f"{ctx.written(written.operand.span)} is {found}, not a condition"
    ctx.report("T7", message, written.operand.span, hint="compare it with something")
    return None
