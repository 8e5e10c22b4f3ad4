"""tests/corpus/check: schema --- query file --- `ok` and the checked queries, or the problems.

An empty schema section means the schema of the case above it. A title starts with the code it is
about; `T7 ok` marks the accepted neighbour of what `T7` refuses.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Source
from omnigraph_core.query.check import check_queries
from omnigraph_core.query.checked import (
    CheckedBinding,
    CheckedDelete,
    CheckedFilter,
    CheckedInsert,
    CheckedNegation,
    CheckedRead,
    CheckedTraversal,
    Direction,
)
from omnigraph_core.query.codes import QUERY_CODES
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.typed import (
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
)
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.values import to_json
from tests.support.cases import each
from tests.support.corpus import Case, check_case, load_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.query.checked import CheckedClause, CheckedQuery, CheckedStatement
    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.schema.catalog import Catalog

_CODES_OF_OTHER_PASSES = {"Q000"}
_ARROWS = {Direction.OUT: ("-", "->"), Direction.IN: ("<-", "-"), Direction.BOTH: ("-", "-")}


def _with_schemas() -> list[tuple[Case, str]]:
    """Every case beside its schema, written there or above."""
    found = []
    schema, file = "", None
    for case in load_cases("check"):
        written = case.sections[0]
        schema = written or (schema if case.file == file else "")
        file = case.file
        found.append((case, schema))
    return found


CASES = _with_schemas()


@cache
def _catalog(schema: str) -> Catalog:
    return compile_schema(schema)


@each(("case", "schema"), CASES, ids=[str(case) for case, _ in CASES])
def test_case(case: Case, schema: str) -> None:
    assert len(case.sections) == 3
    text = case.sections[1]
    file = check_queries(parse_queries(text, "q.gq"), _catalog(schema), Source(text, "q.gq"))
    problems = [item.render() for result in file.results for item in result.diagnostics]
    checked = [result.checked for result in file.results if result.checked is not None]
    actual = problems or ["ok", *(line for query in checked for line in _dump(query))]
    check_case(case, "\n".join(actual))


def test_every_code_is_refused_somewhere() -> None:
    shown = {code for case, _ in CASES for code in re.findall(r" error (\w+): ", case.expected)}
    assert shown == _checker_codes()


def test_every_code_has_an_accepted_neighbour() -> None:
    accepted = {
        case.title.split()[0]
        for case, _ in CASES
        if case.title.split()[1] == "ok" and case.expected.startswith("ok\n")
    }
    assert accepted == _checker_codes()


def test_titles_say_what_is_expected() -> None:
    for case, _ in CASES:
        code, word = case.title.split()[:2]
        if word == "ok":
            assert case.expected.startswith("ok\n"), case
        else:
            assert f" error {code}: " in case.expected, case


def _checker_codes() -> set[str]:
    return {code for code in QUERY_CODES if code[0] != "L"} - _CODES_OF_OTHER_PASSES


def _dump(query: CheckedQuery) -> Iterator[str]:
    params = ", ".join(f"${param.name}: {param.type}" for param in query.params)
    yield f"{query.kind} {query.name}({params})"
    for name, text in (("description", query.description), ("instruction", query.instruction)):
        if text is not None:
            yield f"  {name} {text!r}"
    if not isinstance(query.body, CheckedRead):
        yield from (f"  {_statement(statement)}" for statement in query.body.statements)
        return
    read = query.body
    yield from _clauses(read.clauses, "  ")
    words = " distinct" * read.is_distinct + " grouped" * read.is_grouped
    yield f"  return{words}"
    for column in read.columns:
        shown = column.type if column.type is not None else "node"
        yield f"    {column.name} = {_expr(column.expr)} :: {shown}"
    yield from (f"  having {_condition(condition)}" for condition in read.having)
    if read.order:
        yield "  order " + ", ".join(f"{_expr(k.expr)} {k.direction}" for k in read.order)
    for word, count in (("limit", read.limit), ("offset", read.offset)):
        if count is not None:
            yield f"  {word} {_expr(count)}"
    yield "  nodes " + ", ".join(f"{name}: {type}" for name, type in query.node_types)


def _clauses(clauses: tuple[CheckedClause, ...], indent: str) -> Iterator[str]:
    for clause in clauses:
        if isinstance(clause, CheckedBinding):
            fields = " where " * bool(clause.conditions)
            fields += " and ".join(map(_condition, clause.conditions))
            yield f"{indent}{clause.variable}: {clause.type_name}{fields}"
        elif isinstance(clause, CheckedTraversal):
            yield indent + _traversal(clause)
        elif isinstance(clause, CheckedFilter):
            yield f"{indent}filter {_condition(clause.condition)}"
        elif isinstance(clause, CheckedNegation):
            yield f"{indent}not ({', '.join(clause.outer)})"
            yield from _clauses(clause.clauses, indent + "  ")
        else:
            introduced = ", ".join(clause.introduced)
            yield f"{indent}optional ({', '.join(clause.outer)}) introduces ({introduced})"
            yield from _clauses(clause.clauses, indent + "  ")


def _traversal(clause: CheckedTraversal) -> str:
    tail, head = _ARROWS[clause.direction]
    edge = f"{clause.edge_binding}:{clause.edge_type}" if clause.edge_binding else clause.edge_type
    hops = (clause.min_hops, clause.max_hops)
    bounds = "" if hops == (1, 1) else f"{{{hops[0]},{hops[1]}}}"
    left = f"{clause.left}: {clause.left_type}"
    return f"({left}) {tail}[{edge}{bounds}]{head} ({clause.right}: {clause.right_type})"


def _statement(statement: CheckedStatement) -> str:
    if isinstance(statement, CheckedDelete):
        target = f"delete {statement.kind} {statement.type_name}"
        return f"{target} where {_condition(statement.where)}"
    values = ", ".join(f"{name}: {_expr(value)}" for name, value in statement.assignments)
    if isinstance(statement, CheckedInsert):
        return f"insert {statement.kind} {statement.type_name} {{{values}}}"
    where = _condition(statement.where)
    return f"update {statement.kind} {statement.type_name} {{{values}}} where {where}"


def _condition(condition: TypedCondition) -> str:
    match condition:
        case Compare():
            return f"{_expr(condition.left)} {condition.op} {_expr(condition.right)}"
        case IsIn():
            return f"{_expr(condition.item)} in {_expr(condition.options)}"
        case IsNull():
            return f"{_expr(condition.operand)} is {'not ' * condition.is_negated}null"
        case Holds():
            return _expr(condition.operand)
        case All():
            return f"all({', '.join(map(_condition, condition.operands))})"
        case Any():
            return f"any({', '.join(map(_condition, condition.operands))})"


def _expr(expr: TypedExpr) -> str:
    match expr:
        case Constant():
            return f"{to_json(expr.value)!r}:{expr.type}"
        case ParamValue():
            return f"${expr.name}"
        case NowValue():
            return "now()"
        case PropertyValue():
            return f"{expr.variable}.{expr.property}"
        case NodeValue():
            return expr.variable + "?" * expr.is_nullable
        case TextMatch():
            edits = f", {_expr(expr.max_edits)}" if expr.max_edits is not None else ""
            return f"{expr.function}({_expr(expr.field)}, {_expr(expr.query)}{edits})"
        case Nearest() | Bm25():
            return f"{type(expr).__name__.lower()}({_expr(expr.field)}, {_expr(expr.query)})"
        case Rrf():
            return f"rrf({_expr(expr.arms[0])}, {_expr(expr.arms[1])}, {_expr(expr.k)})"
        case Aggregate():
            return f"{expr.function}({'distinct ' * expr.is_distinct}{_expr(expr.argument)})"
        case ColumnValue():
            return f"#{expr.column} {expr.name}"
