"""Builds the AST while the parser reduces: one method per grammar rule.

Tokens come in, `ast` values with spans go out. What the grammar accepts only to say more about it
is reported to the `Diagnostics` of the parse under way, held per context: the parser is shared.
"""

from __future__ import annotations

import math
import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from lark import Token, Transformer

from omnigraph_core.diagnostics import Diagnostics, Name, Span
from omnigraph_core.schema import ast
from omnigraph_core.schema.assemble import (
    COLUMN_CONSTRAINTS,
    Block,
    BlockItem,
    Bounds,
    Comma,
    HeaderItem,
    Implements,
    RawConstraint,
    assemble_block,
    assemble_header,
)
from omnigraph_core.schema.type_names import enum_type, list_type, named_type, vector_type
from omnigraph_core.syntax import bad_escapes, unescape

if TYPE_CHECKING:
    from omnigraph_core.types import PropType

PROBLEMS: Final[ContextVar[Diagnostics]] = ContextVar("schema parse problems")

_IDENT: Final = re.compile(r"[a-z_][A-Za-z0-9_]*")
_ENUM_VALUE: Final = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_INT: Final = 20
_KIND_OF_NUMBER: Final = {"INT": ast.ArgumentKind.INT, "FLOAT": ast.ArgumentKind.FLOAT}


class TreeBuilder(Transformer[Token, ast.Schema]):
    """Called by the parser with the children of each rule as it is reduced."""

    def schema(self, children: list[ast.Declaration]) -> ast.Schema:
        return ast.Schema(tuple(children))

    def interface(self, children: list[Any]) -> ast.Interface:
        keyword, name, *items, block = children
        assemble_header("interface", items, PROBLEMS.get())
        body, end = self._body("interface", block)
        return ast.Interface(_name(name), body.properties, span=Span(keyword.start_pos, end))

    def node(self, children: list[Any]) -> ast.Node:
        keyword, name, *items, block = children
        header = assemble_header("node", items, PROBLEMS.get())
        body, end = self._body("node", block)
        return ast.Node(
            _name(name),
            header.annotations,
            header.implements,
            body.properties,
            body.constraints,
            span=Span(keyword.start_pos, end),
        )

    def edge(self, children: list[Any]) -> ast.Edge:
        keyword, name, source, target, *items = children
        blocks = [item for item in items if isinstance(item, tuple)]
        parts: list[HeaderItem] = [item for item in items if not isinstance(item, tuple)]
        header = assemble_header("edge", parts, PROBLEMS.get())
        end = parts[-1].span.end if parts else target.end_pos
        body, end = self._body("edge", blocks[0]) if blocks else (Block((), ()), end)
        return ast.Edge(
            _name(name),
            _name(source),
            _name(target),
            header.cardinality,
            header.annotations,
            body.properties,
            body.constraints,
            span=Span(keyword.start_pos, end),
        )

    def _body(self, kind: str, block: tuple[list[BlockItem], int]) -> tuple[Block, int]:
        items, end = block
        return assemble_block(kind, items, PROBLEMS.get()), end

    def implements(self, children: list[Token]) -> Implements:
        keyword, *names = children
        return Implements(tuple(map(_name, names)), _span(keyword, names[-1]))

    def cardinality(self, children: list[Token]) -> ast.Cardinality:
        span = _span(children[0], children[-1])
        numbers = [_natural(token) for token in children if token.type == "INT"]
        if not numbers:
            hint = "write `@card(0..1)` or `@card(1..)`"
            PROBLEMS.get().add("P1", "`@card` needs its bounds", span, hint=hint)
            return ast.Cardinality(span=span)
        return ast.Cardinality(numbers[0], numbers[1] if len(numbers) > 1 else None, span=span)

    def block(self, children: list[Any]) -> tuple[list[BlockItem], int]:
        *items, end = children
        return [Comma() if isinstance(item, Token) else item for item in items], end.end_pos

    def property(self, children: list[Any]) -> ast.Property:
        name, (type, span) = children
        return ast.Property(_name(name), type, type_span=span, span=Span(name.start_pos, span.end))

    def prop_type(self, children: list[Any]) -> tuple[PropType, Span]:
        type, span = children[0]
        if len(children) == 1:
            return type, span
        return type.nullable(), Span(span.start, children[1].end_pos)

    def named(self, children: list[Token]) -> tuple[PropType, Span]:
        word = _name(children[0])
        return named_type(word, PROBLEMS.get()), word.span

    def vector(self, children: list[Token]) -> tuple[PropType, Span]:
        keyword, dimension, end = children
        type = vector_type(_natural(dimension), _span(dimension, dimension), PROBLEMS.get())
        return type, _span(keyword, end)

    def list_of(self, children: list[Any]) -> tuple[PropType, Span]:
        start, (member, member_span), end = children
        return list_type(member, member_span, PROBLEMS.get()), _span(start, end)

    def enumeration(self, children: list[Token]) -> tuple[PropType, Span]:
        keyword, *values, end = children
        names = [_enum_value(value) for value in values]
        return enum_type(names, PROBLEMS.get()), _span(keyword, end)

    def constraint(self, children: list[Any]) -> RawConstraint | ast.Annotation:
        name = _annotation_name(children[0])
        if len(children) == 1:
            span = _span(children[0], children[0])
            if name in COLUMN_CONSTRAINTS:
                return ast.Annotation(name, span=span)
            return RawConstraint(name, (), span)
        _, *arguments, end = children
        checked = tuple(map(_constraint_argument, arguments))
        return RawConstraint(name, checked, _span(children[0], end))

    def bounds(self, children: list[Any]) -> Bounds:
        first, last = children[0], children[-1]
        return Bounds(
            None if isinstance(first, Token) else _bound(first),
            None if isinstance(last, Token) else _bound(last),
            _place(first).to(_place(last)),
        )

    def annotation(self, children: list[Any]) -> ast.Annotation:
        name = _annotation_name(children[0])
        if len(children) == 1:
            return ast.Annotation(name, span=_span(children[0], children[0]))
        _, *arguments, end = children
        values = [item for item in arguments if isinstance(item, ast.Argument)]
        keywords = [item for item in arguments if isinstance(item, tuple)]
        _check_arguments(name, arguments)
        return ast.Annotation(
            name, values[0] if values else None, tuple(keywords), span=_span(children[0], end)
        )

    def keyword(self, children: list[Any]) -> tuple[Name, ast.Argument]:
        key, value = children
        name = _name(key)
        if not _IDENT.fullmatch(name):
            PROBLEMS.get().add("P1", f"`{name}` cannot be a keyword argument", name.span)
        return name, value

    def members(self, children: list[Any]) -> ast.Argument:
        start, *items, end = children
        return ast.Argument(ast.ArgumentKind.LIST, "", tuple(items), span=_span(start, end))

    def text(self, children: list[Token]) -> ast.Argument:
        token = children[0]
        return ast.Argument(ast.ArgumentKind.STRING, _unescape(token), span=_span(token, token))

    def number(self, children: list[Token]) -> ast.Argument:
        digits = children[-1]
        text = "".join(children)
        if not math.isfinite(float(text)):
            span = _span(children[0], digits)
            PROBLEMS.get().add("P1", "number is too large", span)
        return ast.Argument(_KIND_OF_NUMBER[digits.type], text, span=_span(children[0], digits))

    def word(self, children: list[Token]) -> ast.Argument:
        token = children[0]
        return ast.Argument(ast.ArgumentKind.WORD, str(token), span=_span(token, token))

    def boolean(self, children: list[Token]) -> ast.Argument:
        token = children[0]
        return ast.Argument(ast.ArgumentKind.BOOL, str(token), span=_span(token, token))

    header_annotation = annotation
    header_constraint = constraint
    header_cardinality = cardinality


def _span(first: Token, last: Token) -> Span:
    return Span(_at(first.start_pos), _at(last.end_pos))


def _place(child: Token | ast.Argument) -> Span:
    return _span(child, child) if isinstance(child, Token) else child.span


def _at(position: int | None) -> int:
    assert position is not None, "the lexer gives every token its place"
    return position


def _name(token: Token) -> Name:
    return Name(token, _span(token, token))


def _annotation_name(token: Token) -> Name:
    """The name of `@name`, without the sign and any space after it."""
    text = token[1:].lstrip()
    end = _at(token.end_pos)
    return Name(text, Span(end - len(text), end))


def _natural(token: Token) -> int:
    """The value of digits; beyond what any check accepts only their being too many counts."""
    digits = token.lstrip("0") or "0"
    return int(digits) if len(digits) <= _LONGEST_INT else 10**_LONGEST_INT


def _enum_value(token: Token) -> Name:
    if token.type == "ENUM_VALUE":
        return _name(token)
    span = _span(token, token)
    text = _unescape(token)
    hint = f"write {text}" if _ENUM_VALUE.fullmatch(text) else "values are letters, digits, _ and -"
    PROBLEMS.get().add("P1", "enum values are not quoted", span, hint=hint)
    return Name(text, span)


def _constraint_argument(child: Token | ast.Argument | Bounds) -> Name | ast.Argument | Bounds:
    if not isinstance(child, Token):
        return child
    if child.type == "IDENT":
        return _name(child)
    return ast.Argument(ast.ArgumentKind.WORD, str(child), span=_span(child, child))


def _bound(argument: ast.Argument) -> int | float:
    if argument.kind is ast.ArgumentKind.FLOAT:
        return float(argument.text)
    digits = argument.text.lstrip("-").lstrip("0") or "0"
    value = int(digits) if len(digits) <= _LONGEST_INT else 10**_LONGEST_INT
    return -value if argument.text.startswith("-") else value


def _check_arguments(name: Name, arguments: list[ast.Argument | tuple[Name, ast.Argument]]) -> None:
    seen: set[str] = set()
    for position, argument in enumerate(arguments):
        if isinstance(argument, tuple):
            key = argument[0]
            if key in seen:
                PROBLEMS.get().add("P1", f"keyword `{key}` is given twice", key.span)
            seen.add(key)
        elif position:
            message = f"`@{name}` takes one value; what follows is written `key=value`"
            PROBLEMS.get().add("P1", message, argument.span)


def _unescape(token: Token) -> str:
    """The text between the quotes; an escape that means nothing is reported where it stands."""
    start = _at(token.start_pos)
    for span in bad_escapes(token, start):
        escape = token[span.start - start : span.end - start]
        hint = 'escapes are \\" \\\\ \\n \\r \\t; write \\\\ for a backslash'
        PROBLEMS.get().add("P1", f"unknown escape `{escape}`", span, hint=hint)
    return unescape(token)
