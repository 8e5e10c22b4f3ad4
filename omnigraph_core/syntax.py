"""What the parsers of both languages share: text in, positions and words out.

String escapes, cutting a text into parts that can be parsed alone, nesting depth, and turning what
lark found into "expected …, found …". Nothing here knows a language; offsets are those of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from lark import UnexpectedToken

from omnigraph_core.diagnostics import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lark import UnexpectedInput

_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE: Final = re.compile(r"\\([\s\S])")
_NEEDS_ESCAPE: Final = re.compile(r'["\\\n\r\t]')
_ESCAPED: Final = {char: f"\\{letter}" for letter, char in _ESCAPES.items()}

# Strings and comments come first, so a bracket or a start inside one is never seen.
_QUIET: Final = r'"[^"\\]*(?:\\[\s\S][^"\\]*)*"|//[^\r\n]*|/\*[\s\S]*?\*/'
_QUIET_TEXT: Final = re.compile(_QUIET + r'|"[\s\S]*|/\*[\s\S]*')
_BRACKET: Final = re.compile(_QUIET_TEXT.pattern + r"|(?P<opening>[(\[{])|(?P<closing>[)\]}])")
_WORD: Final = re.compile(r"[@$]?\w+")


def unescape(quoted: str) -> str:
    """The text a string literal stands for; an escape that does not exist stands for itself."""
    inner = quoted[1:-1]
    if "\\" not in inner:
        return inner
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), inner)


def bad_escapes(quoted: str, start: int) -> Iterator[Span]:
    r"""Where a string literal starting at `start` holds an escape other than `\" \\ \n \r \t`."""
    for found in _ESCAPE.finditer(quoted, 1, len(quoted) - 1):
        if found[1] not in _ESCAPES:
            yield Span(start + found.start(), start + found.end())


def quote(text: str) -> str:
    """A string literal standing for the text, on one line.

    >>> print(quote('say "hi"'))
    "say \\"hi\\""
    """
    return f'"{_NEEDS_ESCAPE.sub(lambda found: _ESCAPED[found[0]], text)}"'


def lone_surrogate(text: str) -> Span | None:
    """Where a text, unescaped from JSON perhaps, is no Unicode and could not be stored as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        return Span(problem.start, problem.start + 1)
    return None


def chunks(text: str, start: re.Pattern[str]) -> Iterator[Span]:
    """The text cut before every match of `start` that lies outside strings and comments."""
    edges = sorted({0, *_landmarks(text, start), len(text)})
    for begin, end in pairwise(edges):
        yield Span(begin, end)


def _landmarks(text: str, start: re.Pattern[str]) -> Iterator[int]:
    """Where `start` matches, up to what is never closed.

    A quote too many hides nothing, since what follows it was meant as text; a comment does.
    """
    pattern = rf'{_QUIET}|(?P<open>"|/\*)|(?P<landmark>{start.pattern})'
    for found in re.compile(pattern, start.flags).finditer(text):
        if found["landmark"] is not None:
            yield found.start()
        elif found["open"] == '"':
            yield from (later.start() for later in start.finditer(text, found.end()))
            return
        elif found["open"] is not None:
            return


def nested_deeper_than(limit: int, text: str) -> Span | None:
    """The first bracket that opens below `limit` open ones, if any."""
    # Counting is many times quicker than scanning, and settles nearly every text.
    if text.count("(") + text.count("[") + text.count("{") <= limit:
        return None
    depth = 0
    for found in _BRACKET.finditer(text):
        if found["opening"]:
            depth += 1
            if depth > limit:
                return Span(found.start(), found.end())
        elif found["closing"]:
            depth = max(0, depth - 1)
    return None


def last_unclosed(text: str, part: Span) -> int | None:
    """Where the innermost bracket still open at the end of a part of the text was opened."""
    opened: list[int] = []
    for found in _BRACKET.finditer(text, part.start, part.end):
        if found["opening"]:
            opened.append(found.start())
        elif found["closing"] and opened:
            opened.pop()
    return opened[-1] if opened else None


def last_string(text: str, part: Span) -> Span | None:
    """The string literal that ends a part of the text, if one does."""
    last = None
    for found in _QUIET_TEXT.finditer(text, part.start, part.end):
        last = Span(found.start(), found.end())
    if last is None or text[last.start] != '"' or text[last.end : part.end].strip():
        return None
    return last


@dataclass(frozen=True, slots=True)
class Unexpected:
    """A place where the text leaves the grammar, and the terminals that could have stood there.

    `found` is empty at the end of the text.
    """

    found: str
    span: Span
    expected: frozenset[str]

    def message(self, words: Mapping[frozenset[str], str], end: str = "the end of the text") -> str:
        """`words` says what terminals are to a reader, larger groups of them first."""
        expected, left = [], self.expected
        for terminals, word in words.items():
            if terminals <= left:
                expected.append(word)
                left -= terminals
        shown = f"`{_shown(self.found)}`" if self.found else end
        return f"expected {one_of(expected)}, found {shown}" if expected else f"unexpected {shown}"


def unexpected(error: UnexpectedInput, text: str, part: Span) -> Unexpected:
    """What lark stumbled over in a part of the text."""
    expected = _accepted(error)
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        end = max(part.start, len(text[: part.end].rstrip()))
        return Unexpected("", Span(end, end), expected)
    start = error.pos_in_stream or 0
    if isinstance(error, UnexpectedToken):
        found = str(error.token)
    else:
        word = _WORD.match(text, start, part.end)
        found = word[0] if word else text[start]
    return Unexpected(found, Span(start, start + len(found)), expected)


def _accepted(error: UnexpectedInput) -> frozenset[str]:
    """Lark's own expectation is that of the parser's state; trying each leaves the true ones."""
    parser = error.interactive_parser
    return frozenset(parser.accepts()) if parser else frozenset()  # type: ignore[no-untyped-call]


def _shown(found: str) -> str:
    """Found text on one line and not too long; what cannot be seen is named by its code point."""
    line, newline, _ = found.partition("\n")
    if len(line) > 40 or newline:
        line = f"{line[:40].rstrip()}…"
    return "".join(char if char.isprintable() else f"U+{ord(char):04X}" for char in line)


def one_of(words: Iterable[str]) -> str:
    """Alternatives as a sentence has them, sorted, each once.

    >>> one_of(["`}`", "a name", "`,`"])
    '`,`, `}` or a name'
    """
    *most, last = sorted(set(words)) or [""]
    return f"{', '.join(most)} or {last}" if most else last
