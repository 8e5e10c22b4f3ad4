"""What the parsers of both languages share: text in, positions and words out.

String escapes, cutting a text into pieces that can be parsed alone, nesting depth, and turning what
lark found into "expected …, found …". Nothing here knows a language; offsets stay those of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lark import Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from omnigraph_core.diagnostics import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE: Final = re.compile(r"\\([\s\S])")
_NEEDS_ESCAPE: Final = re.compile(r'["\\\n\r\t]')
_ESCAPED: Final = {char: f"\\{letter}" for letter, char in _ESCAPES.items()}

# Strings and comments come first, so a bracket or a start inside one is never seen.
_QUIET: Final = r'"(?:\\[\s\S]|[^"\\])*+"|//[^\n]*|/\*[\s\S]*?\*/'
_BRACKET: Final = re.compile(_QUIET + r"|(?P<opening>[(\[{])|(?P<closing>[)\]}])")
_WORD: Final = re.compile(r"[@$]?\w+")


def unescape(quoted: str) -> str:
    """The text a string literal stands for; an escape that does not exist stands for itself."""
    inner = quoted[1:-1]
    if "\\" not in inner:
        return inner
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), inner)


def bad_escapes(quoted: str, start: int) -> Iterator[Span]:
    r"""Where a string literal that starts at `start` holds an escape other than `\" \\ \n \r \t`."""
    for found in _ESCAPE.finditer(quoted, 1, len(quoted) - 1):
        if found[1] not in _ESCAPES:
            yield Span(start + found.start(), start + found.end())


def quote(text: str) -> str:
    """A string literal standing for the text, on one line.

    >>> print(quote('say "hi"'))
    "say \\"hi\\""
    """
    return f'"{_NEEDS_ESCAPE.sub(lambda found: _ESCAPED[found[0]], text)}"'


def chunks(text: str, start: re.Pattern[str]) -> Iterator[Span]:
    """The text cut before every match of `start` that lies outside strings and comments."""
    landmark = re.compile(f"{_QUIET}|(?P<landmark>{start.pattern})", start.flags)
    found = [match.start() for match in landmark.finditer(text) if match["landmark"] is not None]
    edges = sorted({0, *found, len(text)})
    for begin, end in zip(edges, edges[1:], strict=False):
        yield Span(begin, end)


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


@dataclass(frozen=True, slots=True)
class Unexpected:
    """A place where the text leaves the grammar, and the terminals that could have stood there."""

    found: str
    span: Span
    expected: frozenset[str]

    @property
    def is_end(self) -> bool:
        return not self.found

    def message(self, words: Mapping[str, str]) -> str:
        """`words` says what each terminal is to a reader; terminals it leaves out are not named."""
        shown = f"`{_shown(self.found)}`" if self.found else "the end of the text"
        expected = one_of(words[name] for name in self.expected if name in words)
        return f"expected {expected}, found {shown}" if expected else f"unexpected {shown}"


def unexpected(error: UnexpectedInput, text: str, end: int) -> Unexpected:
    """What went wrong in the part of the text that stops at `end`."""
    if isinstance(error, UnexpectedToken):
        return _unexpected_token(error, text, end)
    assert isinstance(error, UnexpectedCharacters)
    start = error.pos_in_stream
    word = _WORD.match(text, start, end)
    span = Span(start, word.end() if word else start + 1)
    return Unexpected(text[start : span.end], span, _accepted(error))


def _unexpected_token(error: UnexpectedToken, text: str, end: int) -> Unexpected:
    token: Token = error.token
    if token.type == "$END":
        last = len(text[:end].rstrip())
        return Unexpected("", Span(last, last), _accepted(error))
    start = token.start_pos or 0
    return Unexpected(str(token), Span(start, start + len(token)), _accepted(error))


def _accepted(error: UnexpectedToken | UnexpectedCharacters) -> frozenset[str]:
    """Lark's own expectation names every terminal of the state; trying each leaves the true ones."""
    parser = error.interactive_parser
    return frozenset(parser.accepts()) if parser is not None else frozenset()


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
