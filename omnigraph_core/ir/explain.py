"""The intermediate form as text: one line per operator, indented by nesting, stable across runs.

Conditions are written as the query language writes them; edges show their direction as an arrow.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from omnigraph_core.ir.nodes import (
    AntiJoin,
    Delete,
    Expand,
    Filter,
    Insert,
    MutationIR,
    NodeScan,
    OptionalJoin,
    Update,
)
from omnigraph_core.query.checked import Direction
from omnigraph_core.query.typed import (
    TARGET,
    Aggregate,
    All,
    Any,
    Bm25,
    ColumnValue,
    Compare,
    Constant,
    Holds,
    IsIn,
    IsNull,
    Nearest,
    NodeValue,
    NowValue,
    ParamValue,
    PropertyValue,
    Rrf,
    TextMatch,
    TypedOp,
)
from omnigraph_core.types import Scalar
from omnigraph_core.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.ir.nodes import MutationOp, Op, Pipeline, QueryIR, ReturnColumn
    from omnigraph_core.query.checked import CheckedParam
    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value

_INDENT: Final = "  "
_ARROWS: Final = {
    Direction.OUT: ("-", "->"),
    Direction.IN: ("<-", "-"),
    Direction.BOTH: ("<-", "->"),
}
_OPERATORS: Final = {TypedOp.HAS_MEMBER: "contains", TypedOp.HAS_TEXT: "contains"}


def explain(ir: QueryIR | MutationIR) -> str:
    """The query as indented text."""
    if isinstance(ir, MutationIR):
        lines = [f"mutation {ir.name}({_params(ir.params)})", *map(_statement, ir.ops)]
    else:
        head = f"query {ir.name}({_params(ir.params)})"
        lines = [head, *explain_pipeline(ir.pipeline), *_result(ir)]
    return f"\n{_INDENT}".join(lines)


def _params(params: Iterable[CheckedParam]) -> str:
    return ", ".join(f"${param.name}: {param.type}" for param in params)


def explain_pipeline(pipeline: Pipeline) -> Iterator[str]:
    """One line per operator, those inside joins indented below them."""
    for op in pipeline:
        yield explain_op(op)
        if isinstance(op, AntiJoin | OptionalJoin):
            yield from (f"{_INDENT}{line}" for line in explain_pipeline(op.inner))


def explain_op(op: Op) -> str:
    """One operator as a line, without what is inside a join."""
    match op:
        case NodeScan():
            return f"scan ${op.variable}: {op.type_name}{_where(op.filters)}"
        case Expand(is_closing=True):
            return f"close {_path(op)} ${op.dst_var}"
        case Expand():
            return f"expand {_path(op)} ${op.dst_var}: {op.dst_type}{_where(op.dst_filters)}"
        case Filter(condition=condition):
            return f"filter {explain_condition(condition)}"
        case AntiJoin():
            return f"anti-join on {_variables(op.outer_vars)}"
        case OptionalJoin():
            introduced = _variables(op.introduced)
            return f"optional join on {_variables(op.outer_vars)} introducing {introduced}"


def _path(op: Expand) -> str:
    start, end = _ARROWS[op.direction]
    edge = op.edge_type if op.edge_binding is None else f"${op.edge_binding}:{op.edge_type}"
    hops = "" if op.max_hops == 1 else f"{{{op.min_hops},{op.max_hops}}}"
    return f"${op.src_var} {start}{edge}{hops}{end}"


def _where(conditions: tuple[TypedCondition, ...]) -> str:
    if not conditions:
        return ""
    whole = conditions[0] if len(conditions) == 1 else All(conditions)
    return f" where {explain_condition(whole)}"


def _variables(names: Iterable[str]) -> str:
    return ", ".join(f"${name}" for name in names) or "nothing"


def _result(ir: QueryIR) -> Iterator[str]:
    words = ["return", *(["distinct"] if ir.is_distinct else [])]
    words += ["grouped"] if ir.is_grouped else []
    if ir.columns:
        yield " ".join(words)
    for column in ir.columns:
        yield f"{_INDENT}{column.name}: {_column_type(column)} = {explain_expr(column.expr)}"
    for condition in ir.having:
        yield f"having {explain_condition(condition)}"
    if ir.order_by:
        keys = (
            f"{explain_expr(k.expr)} {'desc' if k.is_descending else 'asc'}" for k in ir.order_by
        )
        yield f"order by {', '.join(keys)}"
    if ir.offset is not None:
        yield f"offset {explain_expr(ir.offset)}"
    if ir.limit is not None:
        yield f"limit {explain_expr(ir.limit)}"


def _column_type(column: ReturnColumn) -> str:
    if isinstance(column.expr, NodeValue):
        return f"{column.expr.type_name}?" if column.expr.is_nullable else column.expr.type_name
    return str(column.type)


def _statement(op: MutationOp) -> str:
    match op:
        case Insert():
            return f"insert {op.kind} {op.type_name} {_assignments(op.assignments)}"
        case Update():
            where = explain_condition(op.where)
            sets = _assignments(op.assignments)
            return f"update {op.kind} {op.type_name} set {sets} where {where}"
        case Delete():
            return f"delete {op.kind} {op.type_name} where {explain_condition(op.where)}"


def _assignments(assignments: tuple[tuple[str, TypedExpr], ...]) -> str:
    inside = ", ".join(f"{name}: {explain_expr(value)}" for name, value in assignments)
    return f"{{ {inside} }}" if inside else "{}"


def explain_condition(condition: TypedCondition) -> str:
    """A condition as the query language would write it; the empty junctions are true and false."""
    match condition:
        case Compare(left, op, right):
            return f"{explain_expr(left)} {_OPERATORS.get(op, str(op))} {explain_expr(right)}"
        case IsIn(item, options):
            return f"{explain_expr(item)} in {explain_expr(options)}"
        case IsNull(operand, is_negated):
            return f"{explain_expr(operand)} is {'not null' if is_negated else 'null'}"
        case Holds(operand):
            return explain_expr(operand)
        case All(operands):
            return " and ".join(map(_operand_of_and, operands)) or "true"
        case Any(operands):
            return " or ".join(map(explain_condition, operands)) or "false"


def _operand_of_and(condition: TypedCondition) -> str:
    text = explain_condition(condition)
    return f"({text})" if isinstance(condition, Any) and len(condition.operands) > 1 else text


def explain_expr(expr: TypedExpr) -> str:
    """An expression as the query language would write it."""
    match expr:
        case Constant(value, type):
            return _literal(value, type)
        case ParamValue(name):
            return f"${name}"
        case NowValue():
            return "now()"
        case PropertyValue(variable, name):
            return name if variable == TARGET else f"${variable}.{name}"
        case NodeValue(variable):
            return f"${variable}"
        case ColumnValue(name=name):
            return name
        case Aggregate():
            inside = f"{'distinct ' if expr.is_distinct else ''}{explain_expr(expr.argument)}"
            return f"{expr.function}({inside})"
        case _:
            return _search(expr)


def _search(expr: TextMatch | Nearest | Bm25 | Rrf) -> str:
    match expr:
        case TextMatch(function, field, query, max_edits):
            arguments = (field, query) if max_edits is None else (field, query, max_edits)
            return _call(str(function), arguments)
        case Nearest(field, query):
            return _call("nearest", (field, query))
        case Bm25(field, query):
            return _call("bm25", (field, query))
        case Rrf(arms, k):
            return _call("rrf", (*arms, k))


def _call(function: str, arguments: Iterable[TypedExpr]) -> str:
    return f"{function}({', '.join(map(explain_expr, arguments))})"


def _literal(value: Value, type: PropType) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_literal(item, type.element) for item in value)}]"
    text = json.dumps(to_json(value), ensure_ascii=False)
    if type.scalar in (Scalar.DATE, Scalar.DATETIME):
        return f"{type.scalar.lower()}({text})"
    return text
