"""Positions in source text and the one renderer of compile problems.

Passes collect `Diagnostic` values in a `Diagnostics` list and raise once, so one compile reports
every independent problem. Offsets count characters; lines and columns are 1-based, found on demand.
"""

from __future__ import annotations

import difflib
from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of character offsets in one source text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of the other."""
        return Span(self.start, other.end)


NO_SPAN = Span(0, 0)
_SHOWN = 240
"""Characters of a source line that a report shows at most."""


class Name(str):
    """An identifier that remembers where it was written; compares as plain text."""

    __slots__ = ("span",)
    span: Span

    def __new__(cls, text: str, span: Span = NO_SPAN) -> Self:
        name = super().__new__(cls, text)
        name.span = span
        return name


@dataclass(frozen=True)
class Source:
    """A named text; knows where its lines start."""

    text: str
    name: str = "<input>"

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        starts.extend(i + 1 for i, char in enumerate(self.text) if char == "\n")
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column of an offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, without its end."""
        start = self._line_starts[line - 1]
        end = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: what, where, and how to fix it."""

    code: str
    message: str
    file: str
    line: int
    column: int
    span: Span
    line_text: str = field(repr=False)
    hint: str | None = None
    severity: Severity = Severity.ERROR

    def render(self) -> str:
        """The problem as a person reads it: place, message, source line, caret, hint.

        >>> source = Source("node Person { age: Int }", "people.pg")
        >>> problem = diagnose(source, "P1", "unknown type `Int`", Span(19, 22), hint="use I64")
        >>> print(problem.render())
        people.pg:1:20: error P1: unknown type `Int`
          node Person { age: Int }
                             ^^^
          hint: use I64
        """
        rows = [
            f"{self.file}:{self.line}:{self.column}: {self.severity} {self.code}: {self.message}"
        ]
        if self.line_text.strip():
            shown, column = _window(self.line_text, self.column - 1)
            width = max(1, min(self.span.end - self.span.start, len(shown) - column))
            rows += [f"  {shown}", f"  {' ' * column}{'^' * width}"]
        if self.hint:
            rows.append(f"  hint: {self.hint}")
        return "\n".join(rows)

    def to_json(self) -> dict[str, object]:
        """The same facts for machines."""
        return {
            "severity": str(self.severity),
            "code": self.code,
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "span": {"start": self.span.start, "end": self.span.end},
            "hint": self.hint,
        }


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a line to show and where a column stands in it.

    Every character takes one cell, so that the caret stays under its place; a line from a file
    without line ends is cut around the caret.
    """
    start = 0 if len(line) <= _SHOWN else max(0, column - _SHOWN // 2)
    part = line[start : start + _SHOWN]
    cells = "".join(char if char.isprintable() else " " if char == "\t" else "·" for char in part)
    before, after = "…" if start else "", "…" if start + _SHOWN < len(line) else ""
    return f"{before}{cells}{after}", column - start + len(before)


def diagnose(
    source: Source,
    code: str,
    message: str,
    span: Span,
    *,
    hint: str | None = None,
    severity: Severity = Severity.ERROR,
) -> Diagnostic:
    """A diagnostic at a span of a source; an empty span is widened to one character."""
    start = min(span.start, len(source.text))
    line, column = source.position(start)
    return Diagnostic(
        code=code,
        message=message,
        file=source.name,
        line=line,
        column=column,
        span=Span(start, max(min(span.end, len(source.text)), start + 1)),
        line_text=source.line_text(line),
        hint=hint,
        severity=severity,
    )


class Diagnostics:
    """Collects the problems of one compile in the order they are found."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._found: dict[Diagnostic, None] = {}

    def add(self, code: str, message: str, span: Span, *, hint: str | None = None) -> None:
        """Record an error. An equal problem at an equal place is recorded once."""
        self._found[diagnose(self.source, code, message, span, hint=hint)] = None

    def extend(self, found: Iterable[Diagnostic]) -> None:
        self._found.update(dict.fromkeys(found))

    @property
    def found(self) -> tuple[Diagnostic, ...]:
        """Everything recorded, in source order."""
        return tuple(
            sorted(self._found, key=lambda item: (item.span.start, item.span.end, item.code))
        )

    def __bool__(self) -> bool:
        return bool(self._found)


def nearest_name(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate a reader most likely meant, or None when nothing is close.

    Case differences count as close, whatever the length: `formspattern` is `formsPattern`.

    >>> nearest_name("nmae", ["age", "name"])
    'name'
    >>> nearest_name("FORMSPATTERN", ["formsPattern"])
    'formsPattern'
    """
    names = sorted(set(candidates))
    folded = {name.replace("_", "").casefold(): name for name in reversed(names)}
    if exact := folded.get(word.replace("_", "").casefold()):
        return exact
    matches = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if not matches:
        matches = difflib.get_close_matches(word.casefold(), [n.casefold() for n in names], n=1)
        return next((n for n in names if n.casefold() == matches[0]), None) if matches else None
    return matches[0]


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """A hint naming the closest candidate, for `Diagnostics.add`."""
    name = nearest_name(word, candidates)
    return f"did you mean `{name}`?" if name else None
