"""Builds the AST while the parser works: one method per terminal and per rule of grammar.lark.

Children come in as the parser has them: finished nodes, names, tokens for keywords and brackets.
What the grammar cannot see goes to the `PROBLEMS` of the parse under way; nothing is raised.
"""

from __future__ import annotations

import math
import re
from contextvars import ContextVar
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from lark import Token, Transformer

from omnigraph_core.constants import MAX_DIGITS
from omnigraph_core.diagnostics import Diagnostics, Name, Span
from omnigraph_core.query import ast
from omnigraph_core.syntax import bad_escapes, unescape
from omnigraph_core.types import Scalar

if TYPE_CHECKING:

    class Lexeme(Token):
        """A token of a text: its place is always known, which lark's types do not promise."""

        start_pos: int
        end_pos: int


PROBLEMS: ContextVar[Diagnostics] = ContextVar("PROBLEMS")
"""One parser serves every thread, so what a parse finds is kept beside the parser, not in it."""

CODE: Final = "Q000"
_ACCESS: Final = re.compile(r"\$(\w+)\s*\.\s*(\w+)")
_WORD: Final = re.compile(r"\w+")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*[\s\S]*?\*/")
_OPS: Final = {str(op): op for op in ast.CompareOp}
_TEMPORAL: Final = {"date": Scalar.DATE, "datetime": Scalar.DATETIME}

Children = list[Any]


class TreeBuilder(Transformer[Token, ast.QueryFile]):
    """Keeps no state. Where a method is an alias of the grammar, several rules may share it."""

    # Terminals

    def IDENT(self, token: Lexeme) -> Name:
        return Name(token, Span(token.start_pos, token.end_pos))

    TYPE_NAME = IDENT

    def VAR(self, token: Lexeme) -> Name:
        return Name(token[1:], Span(token.start_pos, token.end_pos))

    ANNOTATION = VAR

    def ACCESS(self, token: Lexeme) -> ast.Access:
        found = _ACCESS.match(token) or _ACCESS.match(_without_comments(token))
        assert found
        start, (dot, end) = token.start_pos, found.span(2)
        return ast.Access(
            Name(found[1], Span(start, start + found.end(1))),
            Name(found[2], Span(start + dot, start + end)),
            Span(start, token.end_pos),
        )

    def STRING(self, token: Lexeme) -> ast.Literal:
        if "\\" in token:
            start = token.start_pos
            for span in bad_escapes(token, start):
                escape = token[span.start - start : span.end - start]
                _report(f"unknown escape `{escape}`", span, _ESCAPE_HINT)
        return ast.Literal(unescape(token), Span(token.start_pos, token.end_pos))

    def NUMBER(self, token: Lexeme) -> ast.Literal:
        value = _float(token) if "." in token else _int(token)
        return ast.Literal(value, Span(token.start_pos, token.end_pos))

    INTEGER = NUMBER

    def BOOL(self, token: Lexeme) -> ast.Literal:
        return ast.Literal(token == "true", Span(token.start_pos, token.end_pos))

    # Lists. The parser hands over a list of its own, which may be kept and appended to.

    same = itemgetter(0)

    def nothing(self, children: Children) -> Children:
        return children

    first = nothing
    block = nothing
    parts = nothing

    def more(self, children: Children) -> Children:
        items: Children = children[0]
        items.append(children[-1])
        return items

    def first_two(self, children: Children) -> Children:
        return [children[0], children[2]]

    # Queries

    def start(self, children: Children) -> ast.QueryFile:
        return ast.QueryFile(tuple(children[0]) if children else ())

    def query(self, children: Children) -> ast.Query:
        first, name, _, params, _, annotations, _, body, last = children
        span = Span(first.start_pos, last.end_pos)
        return ast.Query(name, tuple(params), tuple(annotations), body, span)

    def param(self, children: Children) -> ast.Param:
        name, _, type_ = children
        return ast.Param(name, type_, Span(name.span.start, type_.span.end))

    def type(self, children: Children) -> ast.TypeRef:
        return _type_ref(children, children[0].span.start, is_list=False)

    def list_type(self, children: Children) -> ast.TypeRef:
        return _type_ref(children[1:], children[0].start_pos, is_list=True)

    def annotation(self, children: Children) -> ast.QueryAnnotation:
        name, _, text, last = children
        return ast.QueryAnnotation(name, text.value, Span(name.span.start, last.end_pos))

    # Reads

    def read(self, children: Children) -> ast.Read:
        columns, brace, having, order, paging = children[-5:]
        end = paging[-1].span.end if paging else (order or having or [brace])[-1].end_pos
        paged = dict(zip((str(word) for word in paging[::2]), paging[1::2], strict=True))
        return ast.Read(
            match=tuple(children[2]),
            columns=tuple(columns),
            is_distinct=children[5].type == "DISTINCT",
            having=tuple(having[2]) if having else (),
            order=tuple(order[2]) if order else (),
            limit=paged.get("limit"),
            offset=paged.get("offset"),
            span=Span(children[0].start_pos, end),
        )

    def column(self, children: Children) -> ast.Column:
        expr, alias = children[0], children[2] if len(children) == 3 else None
        return ast.Column(expr, alias, Span(expr.span.start, (alias or expr).span.end))

    def sort_key(self, children: Children) -> ast.SortKey:
        expr = children[0]
        if len(children) == 1:
            return ast.SortKey(expr, None, expr.span)
        word = children[1]
        return ast.SortKey(expr, ast.SortDirection(word), Span(expr.span.start, word.end_pos))

    # Match clauses

    def negation(self, children: Children) -> ast.Negation:
        return ast.Negation(tuple(children[2]), Span(children[0].start_pos, children[3].end_pos))

    def optional(self, children: Children) -> ast.OptionalMatch:
        span = Span(children[0].start_pos, children[3].end_pos)
        return ast.OptionalMatch(tuple(children[2]), span)

    def binding(self, children: Children) -> ast.Binding:
        variable, type_name = children[0], children[2]
        if len(children) == 3:
            return ast.Binding(variable, type_name, (), variable.span.to(type_name.span))
        span = Span(variable.span.start, children[5].end_pos)
        return ast.Binding(variable, type_name, tuple(children[4]), span)

    def field(self, children: Children) -> ast.Assignment:
        name, _, value = children
        return ast.Assignment(name, value, Span(name.span.start, value.span.end))

    def traversal(self, children: Children) -> ast.Traversal:
        left, edge, right = children[0], children[1], children[-1]
        name, is_undirected = _edge(edge)
        bounds = children[2] if len(children) == 4 else None
        span = Span(left.span.start, right.span.end)
        return ast.Traversal(left, name, right, is_undirected, None, bounds, span)

    def edge_traversal(self, children: Children) -> ast.Traversal:
        left, variable, _, edge, right = *children[:4], children[-1]
        name, is_undirected = _edge(edge)
        bounds = children[4] if len(children) == 6 else None
        span = Span(left.span.start, right.span.end)
        return ast.Traversal(left, name, right, is_undirected, variable, bounds, span)

    def bounds(self, children: Children) -> ast.Bounds:
        maximum = _int(children[3]) if len(children) == 5 else None
        span = Span(children[0].start_pos, children[-1].end_pos)
        return ast.Bounds(_int(children[1]), maximum, span)

    def filter(self, children: Children) -> ast.Filter:
        return ast.Filter(children[0], children[0].span)

    def filter_all(self, children: Children) -> ast.Filter:
        return self.filter([self.all_of(children)])

    def filter_any(self, children: Children) -> ast.Filter:
        return self.filter([self.any_of(children)])

    # Conditions

    parenthesised = itemgetter(1)

    def all_of(self, children: Children) -> ast.And:
        operands: list[ast.Condition] = []
        for item in children[0]:
            operands.extend(item.operands if isinstance(item, ast.And) else (item,))
        return ast.And(tuple(operands), operands[0].span.to(operands[-1].span))

    def any_of(self, children: Children) -> ast.Or:
        operands: list[ast.Condition] = []
        for item in children[0]:
            operands.extend(item.operands if isinstance(item, ast.Or) else (item,))
        return ast.Or(tuple(operands), operands[0].span.to(operands[-1].span))

    def truth(self, children: Children) -> ast.Truth:
        return ast.Truth(children[0], children[0].span)

    def comparison(self, children: Children) -> ast.Comparison:
        left, op, right = _operand(children[0]), _OPS[children[1]], _operand(children[2])
        if isinstance(right, ast.Word) and right.name == "null":
            _report_null(op, right.span)
        return ast.Comparison(left, op, right, Span(left.span.start, right.span.end))

    def membership(self, children: Children) -> ast.Membership:
        item, options = _operand(children[0]), _operand(children[2])
        return ast.Membership(item, options, Span(item.span.start, options.span.end))

    def null_test(self, children: Children) -> ast.NullTest:
        operand = _operand(children[0])
        span = Span(operand.span.start, children[-1].end_pos)
        return ast.NullTest(operand, len(children) == 4, span)

    # Expressions

    def variable(self, children: Children) -> ast.Variable:
        return ast.Variable(children[0], children[0].span)

    def word(self, children: Children) -> ast.Word:
        return ast.Word(children[0], children[0].span)

    def call(self, children: Children) -> ast.Call | ast.TemporalLiteral:
        function, last = children[0], children[-1]
        arguments = children[-2] if len(children) > 3 else []
        span = Span(function.span.start, last.end_pos)
        if function in _TEMPORAL and len(children) == 4 and _is_one_string(arguments):
            return ast.TemporalLiteral(_TEMPORAL[function], arguments[0].value, span)
        return ast.Call(function, tuple(arguments), len(children) == 5, span)

    def list(self, children: Children) -> ast.ListLiteral:
        items = tuple(children[1]) if len(children) == 3 else ()
        return ast.ListLiteral(items, Span(children[0].start_pos, children[-1].end_pos))

    def listed_call(self, children: Children) -> ast.Expr:
        call: ast.Call | ast.TemporalLiteral = children[0]
        if isinstance(call, ast.Call):
            _report(f"`{call.function}(…)` cannot stand in a list", call.span, _LIST_HINT)
        return call

    # Mutations

    def mutation(self, children: Children) -> ast.Mutation:
        statements = tuple(children[0])
        return ast.Mutation(statements, statements[0].span.to(statements[-1].span))

    def insert(self, children: Children) -> ast.Insert:
        first, type_name, _, assignments, last = children
        return ast.Insert(type_name, tuple(assignments), Span(first.start_pos, last.end_pos))

    def update(self, children: Children) -> ast.Update:
        first, type_name, _, _, assignments, _, _, where = children
        span = Span(first.start_pos, where.span.end)
        return ast.Update(type_name, tuple(assignments), where, span)

    def delete(self, children: Children) -> ast.Delete:
        first, type_name, _, where = children
        return ast.Delete(type_name, where, Span(first.start_pos, where.span.end))


_ESCAPE_HINT: Final = r"escapes are \" \\ \n \r \t; write \\ for a backslash"
_LIST_HINT: Final = "a list holds literals; pass other values as a list parameter"


def _report(message: str, span: Span, hint: str | None = None) -> None:
    PROBLEMS.get().add(CODE, message, span, hint=hint)


def _report_null(op: ast.CompareOp, span: Span) -> None:
    test = "is not null" if op is ast.CompareOp.NE else "is null"
    _report("there is no `null` value to compare with", span, f"write `{test}`")


def _without_comments(token: str) -> str:
    return _COMMENT.sub(lambda found: " " * len(found[0]), token)


def _int(token: Lexeme) -> int:
    if len(token) > MAX_DIGITS.value:
        _report(f"number of {len(token)} digits", Span(token.start_pos, token.end_pos))
        return 0
    return int(token)


def _float(token: Lexeme) -> float:
    value = float(token)
    if math.isinf(value):
        _report("number too large for F64", Span(token.start_pos, token.end_pos))
        return 0.0
    return value


def _type_ref(children: Children, start: int, *, is_list: bool) -> ast.TypeRef:
    name, last = children[0], children[-1]
    dimension = children[2] if len(children) > 3 and children[1].type == "LPAR" else None
    return ast.TypeRef(
        name,
        None if dimension is None else _int(dimension),
        is_list,
        len(children) > 1 and last.type == "QUESTION",
        Span(start, name.span.end if last is name else last.end_pos),
    )


def _edge(edge: Name | Lexeme) -> tuple[Name, bool]:
    """The edge word of a traversal and whether it stood in angle brackets."""
    if isinstance(edge, Name):
        name, is_undirected = edge, False
    elif edge.type == "UNDIRECTED":
        found = _WORD.search(_without_comments(edge))
        assert found
        start = edge.start_pos
        name = Name(found[0], Span(start + found.start(), start + found.end()))
        is_undirected = True
    else:
        name, is_undirected = Name(edge, Span(edge.start_pos, edge.end_pos)), False
    if name == "not":
        _report("an edge cannot be called `not`", name.span, "negation is `not { … }`")
    return name, is_undirected


def _operand(child: ast.Expr | Name) -> ast.Expr:
    """Where the grammar must tell a bare variable from other operands it arrives as its name."""
    return ast.Variable(child, child.span) if isinstance(child, Name) else child


def _is_one_string(arguments: Children) -> bool:
    return len(arguments) == 1 and isinstance(getattr(arguments[0], "value", None), str)
