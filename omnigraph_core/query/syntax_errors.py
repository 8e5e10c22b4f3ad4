"""Says what a parser error means to the author: expected what, found what, a likely fix.

A lark error and the part of the text it arose in come in; a message, exact span and hint go out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import Span
from omnigraph_core.query.syntax_hints import BARE_VALUE, find_hint
from omnigraph_core.syntax import Unexpected, last_string, last_unclosed, unexpected

if TYPE_CHECKING:
    from lark import UnexpectedInput

_LAST_WORD: Final = re.compile(r"\w+(?=\s*\Z)")
_ONLY_CALL: Final = frozenset({"LPAR"})


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    message: str
    span: Span
    hint: str | None = None


def describe(error: UnexpectedInput, text: str, part: Span) -> SyntaxProblem:
    """The problem in the part of the text that was being parsed."""
    found = unexpected(error, text, part)
    return (
        _unclosed_token(found, text)
        or _bare_value(found, text, part)
        or _unclosed_block(found, text, part)
        or _plain(found, text, part)
    )


def _unclosed_token(found: Unexpected, text: str) -> SyntaxProblem | None:
    if found.found == '"':
        return SyntaxProblem("string without a closing quote", found.span)
    if text.startswith("/*", found.span.start):
        opening = Span(found.span.start, found.span.start + 2)
        return SyntaxProblem("comment without a closing `*/`", opening)
    return None


def _bare_value(found: Unexpected, text: str, part: Span) -> SyntaxProblem | None:
    """A word meant as a value looks like the start of a call, so the parser stops one too late."""
    if found.expected != _ONLY_CALL:
        return None
    before = text[part.start : found.span.start]
    word = _LAST_WORD.search(before)
    if word is None or not BARE_VALUE.search(before[: word.start()]):
        return None
    span = Span(part.start + word.start(), part.start + word.end())
    if word[0] != "null":
        hint = f'text is quoted: `"{word[0]}"`'
    elif before[: word.start()].rstrip().endswith(":"):
        hint = "there is no `null` literal: leave the property out, or pass a nullable parameter"
    else:
        hint = "there is no `null` literal: test for it with `is null`"
    return SyntaxProblem(f"expected a value, found `{word[0]}`", span, hint)


def _unclosed_block(found: Unexpected, text: str, part: Span) -> SyntaxProblem | None:
    opened = None if found.found else last_unclosed(text, part)
    if opened is None:
        return None
    message = found.message(_WORDS, _end(text, part))
    line = text.count("\n", 0, opened) + 1
    return SyntaxProblem(message, found.span, f"`{text[opened]}` of line {line} is not closed")


def _plain(found: Unexpected, text: str, part: Span) -> SyntaxProblem:
    before = Span(part.start, found.span.start)
    hint = find_hint(found, text, before)
    string = last_string(text, before)
    if hint is None and string and "\n" in text[string.start : string.end]:
        line = text.count("\n", 0, string.start) + 1
        hint = f"the string before it began in line {line}: is a closing quote missing there?"
    return SyntaxProblem(found.message(_WORDS, _end(text, part)), found.span, hint)


def _end(text: str, part: Span) -> str:
    return "the end of the text" if part.end == len(text) else "the next query"


_ITEM: Final = frozenset({"IDENT", "STRING", "NUMBER", "BOOL", "LSQB"})
_EXPRESSION: Final = _ITEM | {"VAR", "ACCESS"}

_WORDS: Final = {
    _EXPRESSION | {"LPAR", "NOT", "OPTIONAL"}: "a clause",
    _EXPRESSION | {"LPAR"}: "a condition",
    _EXPRESSION: "an expression",
    _ITEM | {"VAR"}: "a value",
    _ITEM: "a literal",
    frozenset({"SYMBOL", "TEXT_OPERATOR", "IN", "IS"}): "a comparison",
    frozenset({"INSERT", "UPDATE", "DELETE"}): "a statement",
    frozenset({"IDENT", "TYPE_NAME"}): "a type",
    **{
        frozenset({terminal}): word
        for terminal, word in {
            "AND": "`and`",
            "ANNOTATION": "an annotation",
            "AS": "`as`",
            "COLON": "`:`",
            "COMMA": "`,`",
            "DIGITS": "a whole number",
            "DIRECTION": "`asc` or `desc`",
            "DISTINCT": "`distinct`",
            "HAVING": "`having`",
            "IDENT": "a name",
            "IN": "`in`",
            "INTEGER": "a whole number",
            "IS": "`is`",
            "LBRACE": "`{`",
            "LIMIT": "`limit`",
            "LPAR": "`(`",
            "LSQB": "`[`",
            "MATCH": "`match`",
            "NOT": "`not`",
            "NULL": "`null`",
            "OFFSET": "`offset`",
            "OPTIONAL": "`optional`",
            "OR": "`or`",
            "ORDER": "`order`",
            "QUERY": "`query`",
            "QUESTION": "`?`",
            "RBRACE": "`}`",
            "RETURN": "`return`",
            "RPAR": "`)`",
            "RSQB": "`]`",
            "SET": "`set`",
            "STRING": "a string",
            "SYMBOL": "a comparison",
            "TYPE_NAME": "a type name",
            "VAR": "a variable",
            "WHERE": "`where`",
        }.items()
    },
}
"""What terminals are to a reader; a group stands before its parts."""
