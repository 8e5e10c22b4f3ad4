"""Records that are not one per line: pretty-printed objects one after the other, or an array.

Bytes come in, records go out with their places. After a broken record reading goes on at the next
line that begins as that record did; where none does, what follows cannot be told apart.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Final

from omnigraph_core.write.digest import BROKEN_FILE
from omnigraph_core.write.json_text import JsonProblem, parse_json, parse_json_at
from omnigraph_core.write.text_window import TextWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.write.sources import Source

_LONGEST_BROKEN: Final = 1 << 26
"""A broken record is not looked beyond further than that."""
_LONGEST_ATOM: Final = len("-Infinity, \\ud83d\\ude00")
"""What the end of a window may cut is no longer."""
_RECORD: Final = re.compile(r'\{\s*"(?:type|edge)"\s*:')


@dataclass(frozen=True, slots=True)
class Document:
    """One record of a text: its value, or why it has none.

    Without a line it is no record but something wrong with the whole.
    """

    line: int | None
    number: int
    text: str = ""
    value: object = None
    problem: str | None = None

    def place(self, unit: str) -> int | None:
        """Where it stands, counted in a unit that `unit_of` gave."""
        return self.line if self.line is None or unit == "line" else self.number


def is_document(stream: IO[bytes]) -> bool:
    """Whether a text is an array, or spreads its first record over several lines."""
    window = TextWindow(stream)
    first = window.skip()
    if first in ("", "["):
        return first == "["
    end = window.find("\n", window.place)
    line = window.text[window.place : end]
    if line.strip() == "{":
        return True
    try:
        parse_json(line)
    except JsonProblem:
        with suppress(JsonProblem):
            return _read_value(window)[1] > end
    return False


def unit_of(source: Source) -> str:
    """What places in JSON are counted in: lines, or records if some share a line."""
    with suppress(*BROKEN_FILE):
        with source.open(is_look=True) as stream:
            if not is_document(stream):
                return "line"
        with source.open() as stream:
            lines = (found.line for found in iter_documents(stream) if found.line is not None)
            return "record" if any(a == b for a, b in pairwise(lines)) else "line"
    return "line"


def iter_documents(stream: IO[bytes]) -> Iterator[Document]:
    """The records of a text in order."""
    return _Documents(TextWindow(stream)).read()


def encoded(text: str) -> str:
    """The text of a document, fit to be written."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class _Documents:
    """Where reading stands in a text of records."""

    def __init__(self, window: TextWindow) -> None:
        self._window = window
        self._count = 0
        self._is_array = False
        self._before = ""
        """What stood last in the array: its bracket, a record as `{}`, or a comma."""
        self._is_lost = False

    def read(self) -> Iterator[Document]:
        while not self._is_lost and (first := self._window.skip()):
            if self._is_array and first in (",", "]"):
                yield from self._separator(first)
            elif first == "[" and not self._is_array:
                self._is_array, self._before = True, first
                self._window.take(self._window.place + 1)
            else:
                if self._before == "{}":
                    yield self._malformed("expected `,` before the record")
                yield from self._record()
        if self._is_array and not self._is_lost:
            yield self._malformed("it does not end")

    def _separator(self, found: str) -> Iterator[Document]:
        if self._before == "," or (found == "," and self._before == "["):
            yield self._malformed(f"expected a record before `{found}`")
        self._is_array = found == ","
        self._before = "," if self._is_array else ""
        self._window.take(self._window.place + 1)

    def _malformed(self, what: str) -> Document:
        line = self._window.line
        return Document(None, 0, problem=f"the array of records, at line {line}: {what}")

    def _record(self) -> Iterator[Document]:
        self._count += 1
        self._before = "{}" if self._is_array else ""
        line = self._window.line
        try:
            value, end = _read_value(self._window)
        except JsonProblem as problem:
            yield from self._broken(line, self._described(problem))
        else:
            yield Document(line, self._count, self._window.take(end), value)

    def _described(self, problem: JsonProblem) -> str:
        if problem.at is None:
            return str(problem)
        line, column = self._window.position(problem.at)
        return f"{problem} at line {line}, column {column + 1}"

    def _broken(self, line: int, problem: str) -> Iterator[Document]:
        window = self._window
        if window.indent is not None:
            again = window.find(f"\n{window.indent}{{", window.place, _LONGEST_BROKEN)
            if again < len(window.text):
                yield Document(line, self._count, self._passed(again), problem=problem)
                self._before = "," if self._is_array else ""
                return
        yield from self._last(line, problem)

    def _passed(self, end: int) -> str:
        text = self._window.take(end).rstrip()
        return text.removesuffix(",") if self._is_array else text

    def _last(self, line: int, problem: str) -> Iterator[Document]:
        """A broken record nothing can be found behind; unless it is the last, all is wrong."""
        window = self._window
        while len(window.text) - window.place < _LONGEST_BROKEN and window.more():
            pass
        rest = window.text[window.place :]
        is_last = len(rest) < _LONGEST_BROKEN and not _RECORD.search(rest, 1)
        text = rest.rstrip() if is_last else rest.partition("\n")[0]
        if is_last and self._is_array and text.endswith("]"):
            text, self._is_array = text.removesuffix("]").rstrip(), False
        yield Document(line, self._count, text, problem=problem)
        window.take(len(window.text))
        if not is_last:
            self._is_lost = True
            what = f"no record can be made out behind the broken one at line {line}"
            yield Document(None, 0, problem=what)


def _read_value(window: TextWindow) -> tuple[object, int]:
    """The value at the place, however far it reaches, and its end.

    Raises:
        JsonProblem: no value begins there.
    """
    while True:
        try:
            value, end = parse_json_at(window.text, window.place)
        except JsonProblem as problem:
            if not _is_cut(window, problem) or not window.more():
                raise
        else:
            if end < len(window.text) or not window.more():  # a number may go on
                return value, end


def _is_cut(window: TextWindow, problem: JsonProblem) -> bool:
    """Whether a problem may only be that the window ends."""
    if problem.at is None:
        return False
    is_near = problem.at + _LONGEST_ATOM >= len(window.text)
    return is_near or str(problem).startswith("Unterminated string")
