"""Schema text to whatever can be read of it: an AST and the problems found on the way.

One pass of an LALR parser over the whole text; when that fails, every declaration is parsed on its
own, so each broken one is reported once. No lark exception leaves this module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, cast

from lark import Lark, TextSlice, UnexpectedInput

from omnigraph_core.diagnostics import Diagnostics, Source
from omnigraph_core.schema import ast
from omnigraph_core.schema.syntax_errors import (
    DECLARING_WORDS,
    UNCLOSED_COMMENT,
    describe_syntax_error,
)
from omnigraph_core.schema.tree import PROBLEMS, TreeBuilder
from omnigraph_core.syntax import chunks, lone_surrogate
from omnigraph_core.types import Scalar

_TYPE_WORD: Final = rf"(?:{'|'.join(Scalar)})(?![A-Za-z0-9_])"
_DECLARATION: Final = re.compile(
    r"(?<![A-Za-z0-9_@])(?:"
    rf"(?:node|edge|interface)\s+(?!{_TYPE_WORD}(?!\s*[{{:]))[A-Z]"
    rf"|(?:{'|'.join(DECLARING_WORDS)})\s+[A-Z][A-Za-z0-9_]*(?=\s*(?:[{{:]|->)|\s+implements\b)"
    r")"
)
"""Starts a declaration, or what its author took for one; a valid body never holds it.

`type String` and `node String` are properties whose `:` was forgotten.
"""


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """What could be read of a text. With problems, `schema` serves only to find more of them."""

    schema: ast.Schema
    problems: Diagnostics
    is_complete: bool


def read_schema(text: str, name: str) -> ParsedSchema:
    """Parse without raising; not complete when some text fits no declaration."""
    source = Source(text, name)
    problems = Diagnostics(source)
    if broken := lone_surrogate(text):
        problems.add("P1", "half of a surrogate pair", broken, hint="send the text as UTF-8")
        return ParsedSchema(ast.Schema(), problems, is_complete=False)
    try:
        schema = _parse(TextSlice(text, 0, len(text)), problems)
    except UnexpectedInput:
        return ParsedSchema(ast.Schema(), _problems_by_chunk(source), is_complete=False)
    return ParsedSchema(schema, problems, is_complete=True)


def _parse(text: TextSlice[str], problems: Diagnostics) -> ast.Schema:
    token = PROBLEMS.set(problems)
    try:
        # Lark's signature promises a tree; with a transformer it returns what the start rule built.
        return cast("ast.Schema", _parser().parse(text))
    finally:
        PROBLEMS.reset(token)


@cache
def _parser() -> Lark:
    grammar = resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar, parser="lalr", lexer="contextual", start="schema", transformer=TreeBuilder()
    )


def _problems_by_chunk(source: Source) -> Diagnostics:
    problems = Diagnostics(source)
    for part in chunks(source.text, _DECLARATION):
        try:
            _parse(TextSlice(source.text, part.start, part.end), problems)
        except UnexpectedInput as error:
            message, span, hint = describe_syntax_error(error, source.text, part)
            problems.add("P1", message, span, hint=hint)
            if message == UNCLOSED_COMMENT:
                break  # what follows is comment, as far as anyone can tell
    return problems
