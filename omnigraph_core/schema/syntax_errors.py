"""Says what a parser error means to the author: expected what, found what, and a likely fix.

A lark error and the part of the text it arose in come in; a message, the exact span and a hint go
out. Nothing here shows a terminal of the grammar to the author.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.diagnostics import Span
from omnigraph_core.syntax import Unexpected, last_string, unexpected
from omnigraph_core.types import SCALAR_NAMES

if TYPE_CHECKING:
    from lark import UnexpectedInput

Described: TypeAlias = tuple[str, Span, str | None]

DECLARING_WORDS: Final = {
    "type": "node", "class": "node", "table": "node", "entity": "node", "struct": "node",
    "record": "node", "model": "node", "vertex": "node", "Node": "node", "relation": "edge",
    "relationship": "edge", "rel": "edge", "link": "edge", "Edge": "edge", "trait": "interface",
    "abstract": "interface", "mixin": "interface", "Interface": "interface",
}  # fmt: skip
"""Words that declare a type elsewhere, and the keyword that does here."""

UNCLOSED_COMMENT: Final = "this comment is never closed"

_FOUND: Final = re.compile(r'"[^"\\]*(?:\\[\s\S][^"\\]*)*"|@?[A-Za-z0-9_]+|->|\.\.|/\*|\*/|[\s\S]')
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ANNOTATION: Final = re.compile(r"@[a-z_][A-Za-z0-9_]*")
_LAST_WORD: Final = re.compile(r"([a-z_][A-Za-z0-9_]*)\s*\Z")
_EXPONENT: Final = re.compile(r"\.|[eE][0-9]*")
_QUOTES: Final = frozenset("'`\u2018\u2019\u201c\u201d")
_CONTEXT: Final = 200
"""How much text before the failure is looked at; more tells nothing and costs time."""

_WORDS: Final = {
    frozenset({terminal}): word
    for terminal, word in {
        "TYPE_NAME": "a type name", "IDENT": "a property name", "RSQB": "`]`", "INT": "a number",
        "FLOAT": "a number", "MINUS": "a number", "STRING": "a text", "DOTS": "`..`",
        "AT_CONSTRAINT": "an annotation", "AT_NAME": "an annotation", "AT_CARD": "an annotation",
        "IMPLEMENTS": "`implements`", "NODE": "the next declaration", "COLON": "`:`",
        "COMMA": "`,`", "QUESTION": "`?`", "LPAR": "`(`", "RPAR": "`)`", "LBRACE": "`{`",
        "EQUAL": "`=`", "ARROW": "`->`",
    }.items()
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Failure:
    """Where the parser stopped, and the text just before."""

    stop: Unexpected
    before: str
    end: str
    """What follows the part, when it ended too early."""
    text_hint: str | None
    """Where the text just before began, when it runs over lines: perhaps by mistake."""

    @property
    def found(self) -> str:
        return self.stop.found

    @property
    def expected(self) -> frozenset[str]:
        return self.stop.expected

    def saying(self, expectation: str, hint: str | None = None) -> Described:
        """`expected …, found …`, in these words."""
        return self.stop.message({frozenset(): expectation}, self.end), self.stop.span, hint


def describe_syntax_error(error: UnexpectedInput, text: str, part: Span) -> Described:
    """Message, span and hint of an error raised while parsing a part of a text."""
    failure = _locate(error, text, part)
    for describe in (_unreadable, _missing_type, _declaration, _edge_header, _unclosed_body):
        if described := describe(failure):
            return described
    hint = _hint_by_place(failure) or _hint_by_found(failure) or failure.text_hint
    if expectation := _expectation(failure):
        return failure.saying(expectation, hint)
    return failure.stop.message(_WORDS, failure.end), failure.stop.span, hint


def _locate(error: UnexpectedInput, text: str, part: Span) -> _Failure:
    stop = unexpected(error, text, part)
    at = stop.span.start
    if stop.found and (found := _FOUND.match(text, at, part.end)):
        stop = Unexpected(found[0], Span(at, found.end()), stop.expected)
    end = "the end of the text" if part.end == len(text) else "the next declaration"
    before = text[max(part.start, at - _CONTEXT) : at]
    return _Failure(stop, before, end, _long_text_hint(text, Span(part.start, at)))


def _long_text_hint(text: str, before: Span) -> str | None:
    quoted = last_string(text, before)
    if quoted is None or "\n" not in text[quoted.start : quoted.end]:
        return None
    line = text.count("\n", 0, quoted.start) + 1
    return f"the text before it began in line {line}: is a closing quote missing there?"


def _unreadable(failure: _Failure) -> Described | None:
    """Text that is no token anywhere."""
    found, span = failure.found, failure.stop.span
    if found == "#":
        return "`#` does not start a comment", span, "comments start with //"
    if found == '"':
        return "this text is never closed", span, 'texts end with `"`'
    if found == "/*":
        return UNCLOSED_COMMENT, span, "block comments end with */"
    if found == "*/":
        return "no comment is open here", span, "block comments do not nest"
    if found == "@":
        return "a name must follow the `@`", span, "annotations are written `@name`"
    if found.startswith("@") and not _ANNOTATION.fullmatch(found):
        hint = f"names start with a lower-case letter: `{found.lower()}`"
        return f"`{found}` is not the name of an annotation", span, hint
    return None


def _missing_type(failure: _Failure) -> Described | None:
    """`a:` followed by `b: String`: the parser has taken `b` for the type of `a`."""
    if failure.found != ":":
        return None
    taken = re.search(r"([a-z_]\w*)\s*:\s*[a-z_]\w*\s*\Z", failure.before, re.ASCII)
    if not taken:
        return None
    start = failure.stop.span.start - len(failure.before) + taken.start(1)
    span = Span(start, start + len(taken[1]))
    return f"property `{taken[1]}` has no type", span, f"write `{taken[1]}: String`"


def _declaration(failure: _Failure) -> Described | None:
    """Between declarations."""
    found = failure.found
    is_word = bool(_WORD.fullmatch(found))
    if "NODE" not in failure.expected or ("LBRACE" in failure.expected and not is_word):
        return None
    hint = "declarations start with node, edge or interface"
    if found == "enum":
        hint = "an enum is written where it is used: `status: enum(open, closed)`"
    elif found == "}":
        hint = "no body is open here"
    elif found.startswith("@"):
        hint = "annotations stand in a header, before the body: `node Name @note { … }`"
    elif keyword := DECLARING_WORDS.get(found):
        hint = f"{hint}; write `{keyword}` instead of `{found}`"
    return failure.saying("a declaration", hint)


def _edge_header(failure: _Failure) -> Described | None:
    """`edge A -> B`, `edge Knows { … }` and their like."""
    named = re.search(r"edge\s+([A-Z]\w*)\s*\Z", failure.before, re.ASCII)
    if not named or failure.expected != {"COLON"}:
        return None
    hint = f"write `edge {named[1]}: Source -> Target`"
    if failure.found == "->":
        hint = f"an edge has a name of its own: write `edge Name: {named[1]} -> Target`"
    return failure.saying("`:` after the edge name", hint)


def _unclosed_body(failure: _Failure) -> Described | None:
    if failure.found or "RBRACE" not in failure.expected:
        return None
    return f"expected `}}` before {failure.end}", failure.stop.span, "the body is not closed"


def _expectation(failure: _Failure) -> str | None:
    """What the place calls for, where that says more than the terminals one by one."""
    expected = failure.expected
    if "TYPE_WORD" in expected:
        return "a type" if failure.before.rstrip().endswith("[") else "a property type"
    if "ENUM_VALUE" in expected:
        return "an enum value"
    if {"IDENT", "STRING"} <= expected:
        is_bounded = re.search(r"@\s*(range|check)\s*\([^()]*\Z", failure.before)
        return "an argument" if is_bounded else "a property name"
    if "WORD" in expected:
        return "a value or `]`" if "RSQB" in expected else "a value"
    if "RBRACE" in expected:
        return "a property, a constraint or `}`"
    if "COLON" in expected and (name := _LAST_WORD.search(failure.before)):
        return f"`:` after `{name[1]}`"
    return None


def _hint_by_place(failure: _Failure) -> str | None:
    expected, found, before = failure.expected, failure.found, failure.before.rstrip()
    if "LPAR" in expected and before.endswith("Vector"):
        return "a vector states its dimension: Vector(768)"
    if "LPAR" in expected and before.endswith("enum"):
        return "an enum states its values: enum(open, closed)"
    if re.search(r"@\s*card\s*\(\Z", before):
        return "write `@card(0..1)` or `@card(1..)`"
    if card := re.search(r"@\s*card\s*\(\s*([0-9]+)(\s*\.\.)?\Z", before):
        return f"for no upper limit write `@card({card[1]}..)`" if card[2] else _card_hint(card[1])
    if re.search(r"@\s*default\s*\(\s*-?[0-9]+\Z", before) and not _EXPONENT.fullmatch(found):
        return 'dates, and values that start with a digit, are quoted: `@default("2026-01-31")`'
    if expected == {"TYPE_NAME"} and found[:1].islower():
        return f"type names start with an upper-case letter: `{found[0].upper()}{found[1:]}`"
    if "IDENT" in expected and found in SCALAR_NAMES:
        return f"a property is written `name: {found}`"
    if "IDENT" in expected and found[:1].isupper():
        return f"property names start with a lower-case letter: `{found[0].lower()}{found[1:]}`"
    if "QUESTION" in expected and found in ("[", "<"):
        return "a list is written [String]"
    if expected == {"COLON"} and found == "?" and (name := _LAST_WORD.search(before)):
        return f"the `?` follows the type: `{name[1]}: String?`"
    if expected == {"COLON"} and (found == "=" or _WORD.fullmatch(found)):
        name = _LAST_WORD.search(before)
        return f"a property is written `{name[1]}: String`" if name else None
    return None


def _card_hint(count: str) -> str:
    return f"write `@card({count}..{count})` for exactly {count}, or `@card(0..{count})`"


def _hint_by_found(failure: _Failure) -> str | None:
    found = failure.found
    if found in _QUOTES:
        return 'texts are written in double quotes: "…"'
    if found == ";":
        return "properties are separated by line breaks or commas"
    if _EXPONENT.fullmatch(found) and not failure.before[-1:].isalpha():
        return "numbers are written like 12 or 0.5, without an exponent"
    if found == "→":
        return "write `->`"
    if found and not found.isprintable():
        return "words are separated by spaces, tabs and line breaks: put a space in its place"
    return None if found.isascii() else "names are ASCII letters, digits and _"
