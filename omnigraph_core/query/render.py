"""AST to canonical query text.

Parsing what is rendered gives the AST back. Parentheses appear only where leaving them out would
change the meaning; strings stay on one line; a block too long for a line takes one item per line.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from omnigraph_core.query import ast
from omnigraph_core.syntax import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH: Final = 100
_INDENT: Final = "  "

_OPERATOR_WORDS: Final = frozenset({ast.CompareOp.CONTAINS, ast.CompareOp.STARTS_WITH})
_TAKEN_AT_START: Final = frozenset(
    {"and", "or", "in", "is", "not", "optional", "as", "asc", "desc", "insert", "update", "delete"}
    | {str(op) for op in _OPERATOR_WORDS}
)
"""Names that, opening a condition of a block, could be read as a keyword."""


def render_queries(file: ast.QueryFile) -> str:
    """The text of a file, queries apart by an empty line; a file without queries is empty."""
    return "\n".join(render_query(query) for query in file.queries)


def render_query(query: ast.Query) -> str:
    """The text of one query, ending in a line break.

    >>> from omnigraph_core.query.parse import parse_queries
    >>> text = "query q() { match { $p: Person $p.age>3 } return { $p.name as n } }"
    >>> print(render_query(parse_queries(text).queries[0]), end="")
    query q() {
      match {
        $p: Person
        $p.age > 3
      }
      return { $p.name as n }
    }
    """
    *head, last = _signature(query)
    notes = [f"@{item.name}({quote(item.text)})" for item in query.annotations]
    opening = [last, *_indented(notes), "{"] if notes else [f"{last} {{"]
    body = _read(query.body) if isinstance(query.body, ast.Read) else _mutation(query.body)
    return "\n".join([*head, *opening, *_indented(body), "}", ""])


def _signature(query: ast.Query) -> list[str]:
    params = [f"${param.name}: {_type(param.type)}" for param in query.params]
    line = f"query {query.name}({', '.join(params)})"
    if len(line) <= _WIDTH or not params:
        return [line]
    *most, last = params
    return [f"query {query.name}(", *_indented([*(f"{item}," for item in most), last]), ")"]


def _type(type_: ast.TypeRef) -> str:
    name = type_.name if type_.dimension is None else f"{type_.name}({type_.dimension})"
    return (f"[{name}]" if type_.is_list else name) + ("?" if type_.is_nullable else "")


def _read(read: ast.Read) -> list[str]:
    lines = ["match {", *_indented(_clauses(read.match)), "}"]
    keyword = "return distinct" if read.is_distinct else "return"
    lines += _block(keyword, [_column(column) for column in read.columns])
    if read.having:
        conditions = [render_condition(condition) for condition in read.having]
        lines += ["having {", *_indented(_kept_apart(read.having, conditions)), "}"]
    if read.order:
        lines += _block("order", [_sort_key(key) for key in read.order])
    if read.limit:
        lines.append(f"limit {render_expr(read.limit)}")
    if read.offset:
        lines.append(f"offset {render_expr(read.offset)}")
    return lines


def _column(column: ast.Column) -> str:
    shown = render_expr(column.expr)
    return shown if column.alias is None else f"{shown} as {column.alias}"


def _sort_key(key: ast.SortKey) -> str:
    shown = render_expr(key.expr)
    return shown if key.direction is None else f"{shown} {key.direction}"


def _mutation(mutation: ast.Mutation) -> list[str]:
    return [line for statement in mutation.statements for line in _statement(statement)]


def _statement(statement: ast.Statement) -> list[str]:
    if isinstance(statement, ast.Delete):
        return [f"delete {statement.type_name} where {render_condition(statement.where)}"]
    assignments = [_assignment(item) for item in statement.assignments]
    if isinstance(statement, ast.Insert):
        return _block(f"insert {statement.type_name}", assignments)
    lines = _block(f"update {statement.type_name} set", assignments)
    return [*lines, f"{_INDENT}where {render_condition(statement.where)}"]


def _assignment(assignment: ast.Assignment) -> str:
    return f"{assignment.name}: {render_expr(assignment.value)}"


def _clauses(clauses: Sequence[ast.Clause]) -> list[str]:
    conditions = [
        clause.condition if isinstance(clause, ast.Filter) else None for clause in clauses
    ]
    shown = [_filter(item) if item else "" for item in conditions]
    kept_apart = _kept_apart(conditions, shown)
    lines: list[str] = []
    for clause, text in zip(clauses, kept_apart, strict=True):
        lines += [text] if isinstance(clause, ast.Filter) else _pattern(clause)
    return lines


def _pattern(clause: ast.Binding | ast.Traversal | ast.Negation | ast.OptionalMatch) -> list[str]:
    match clause:
        case ast.Binding():
            start = f"${clause.variable}: {clause.type_name}"
            return _block(start, [_assignment(item) for item in clause.fields], shows_empty=False)
        case ast.Traversal():
            return [_traversal(clause)]
        case ast.Negation():
            return ["not {", *_indented(_clauses(clause.clauses)), "}"]
        case ast.OptionalMatch():
            return ["optional {", *_indented(_clauses(clause.clauses)), "}"]


def _traversal(traversal: ast.Traversal) -> str:
    edge = f"<{traversal.edge}>" if traversal.is_undirected else str(traversal.edge)
    if traversal.edge_binding is not None:
        edge = f"${traversal.edge_binding}:{edge}"
    if bounds := traversal.bounds:
        maximum = "" if bounds.maximum is None else bounds.maximum
        edge += f"{{{bounds.minimum},{maximum}}}"
    return f"${traversal.left} {edge} ${traversal.right}"


def _filter(condition: ast.Condition) -> str:
    shown = render_condition(condition)
    return f"({shown})" if _looks_like_traversal(condition) else shown


def _looks_like_traversal(condition: ast.Condition) -> bool:
    """As a clause, `$a contains $b` follows an edge; in parentheses it compares."""
    match condition:
        case ast.Comparison(ast.Variable(), op, ast.Variable()):
            return op in _OPERATOR_WORDS
        case ast.Membership(ast.Variable(), ast.Variable()):
            return True
        case _:
            return False


def _kept_apart(conditions: Sequence[ast.Condition | None], shown: Sequence[str]) -> list[str]:
    """Conditions that follow one another unseparated, in parentheses where they would merge.

    A name that ends one and a parenthesis that opens the next would together be a call.
    """
    texts: list[str] = []
    following = ""
    for condition, text in zip(reversed(conditions), reversed(shown), strict=True):
        if condition and (
            _first_name(condition) in _TAKEN_AT_START
            or (following.startswith("(") and _ends_in_word(condition))
        ):
            text = f"({text})"
        texts.append(text)
        following = text
    return texts[::-1]


def _first_name(condition: ast.Condition) -> str | None:
    match condition:
        case ast.And(operands) | ast.Or(operands):
            is_enclosed = isinstance(condition, ast.And) and isinstance(operands[0], ast.Or)
            return None if is_enclosed else _first_name(operands[0])
        case ast.Comparison(first) | ast.Membership(first) | ast.NullTest(first) | ast.Truth(first):
            match first:
                case ast.Word(name) | ast.Call(name):
                    return name
    return None


def _ends_in_word(condition: ast.Condition) -> bool:
    match condition:
        case ast.And(operands):
            return not isinstance(operands[-1], ast.Or) and _ends_in_word(operands[-1])
        case ast.Or(operands):
            return _ends_in_word(operands[-1])
        case ast.Comparison():
            return isinstance(condition.right, ast.Word)
    return False


def render_condition(condition: ast.Condition) -> str:
    """A condition on one line, with parentheses only around an `or` inside an `and`."""
    match condition:
        case ast.Comparison(left, op, right):
            return f"{render_expr(left)} {op} {render_expr(right)}"
        case ast.Membership(item, options):
            return f"{render_expr(item)} in {render_expr(options)}"
        case ast.NullTest(operand, is_negated):
            return f"{render_expr(operand)} {'is not null' if is_negated else 'is null'}"
        case ast.Truth(operand):
            return render_expr(operand)
        case ast.Or(operands):
            return " or ".join(map(render_condition, operands))
        case ast.And(operands):
            return " and ".join(map(_conjunct, operands))


def _conjunct(condition: ast.Condition) -> str:
    shown = render_condition(condition)
    return f"({shown})" if isinstance(condition, ast.Or) else shown


def render_expr(expr: ast.Expr) -> str:
    """An expression on one line."""
    match expr:
        case ast.Literal(value):
            return _literal(value)
        case ast.TemporalLiteral(scalar, text):
            return f"{scalar.lower()}({quote(text)})"
        case ast.ListLiteral(items):
            return f"[{', '.join(map(render_expr, items))}]"
        case ast.Variable(name):
            return f"${name}"
        case ast.Access(variable, property_):
            return f"${variable}.{property_}"
        case ast.Word(name):
            return str(name)
        case ast.Call(function, arguments, is_distinct):
            shown = ", ".join(map(render_expr, arguments))
            return f"{function}({'distinct ' if is_distinct else ''}{shown})"


def _literal(value: str | float | bool) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case float():
            return _fraction(value)
    return str(value)


def _fraction(value: float) -> str:
    """The shortest digits that give the value back; the language has no exponents."""
    digits = format(Decimal(repr(value)), "f")
    return digits if "." in digits else f"{digits}.0"


def _block(start: str, items: Sequence[str], *, shows_empty: bool = True) -> list[str]:
    if not items:
        return [f"{start} {{}}" if shows_empty else start]
    line = f"{start} {{ {', '.join(items)} }}"
    if len(line) <= _WIDTH:
        return [line]
    return [f"{start} {{", *_indented([f"{item}," for item in items]), "}"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"{_INDENT}{line}" for line in lines]
