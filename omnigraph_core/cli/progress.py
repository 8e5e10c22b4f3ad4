"""How far a long command is, on stderr: one line that changes on a terminal, and nothing elsewhere,
so that a log holds what was done alone.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from itertools import cycle
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from omnigraph_core.write.progress import Progress

_INTERVAL: Final = 0.1
ORDER: Final = ("read", "validated", "batched", "embedded", "staged")
"""Steps of a write, as its counts are shown."""
_CLEAR: Final = "\r\x1b[K"
_USUAL_WIDTH: Final = 80
PATIENCE: Final = 1.0
"""Seconds that pass before a person is told what is being waited for."""
_TURN: Final = 0.1
_WHEEL: Final = "|/-\\"


@contextmanager
def busy(doing: str, *, is_quiet: bool) -> Iterator[None]:
    """Run the block; if it takes long, a terminal shows what is being done, and since when."""
    stream = sys.stderr
    if is_quiet or stream is None or not stream.isatty():
        yield
        return
    is_done = Event()
    line = StatusLine(stream)
    turning = Thread(target=_turn, args=(line, doing, is_done), daemon=True)
    turning.start()
    try:
        yield
    finally:
        is_done.set()
        turning.join()
        line.clear()


def _turn(line: StatusLine, doing: str, is_done: Event) -> None:
    if is_done.wait(PATIENCE):
        return
    for spoke in cycle(_WHEEL):
        line.update(lambda seconds, spoke=spoke: f"{spoke} {doing} … {_elapsed(seconds)}")  # type: ignore[misc]
        if is_done.wait(_TURN):
            return


def _elapsed(seconds: float) -> str:
    """
    >>> _elapsed(9.7), _elapsed(70)
    ('9 s', '1 min 10 s')
    """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class StatusLine:
    """Shows texts as they come, as often as an eye can follow. A context manager.

    Args:
        stream: a terminal; whatever else it is gets nothing.
        patience: seconds in which nothing is shown; a command that ends in them shows nothing.
    """

    def __init__(
        self,
        stream: TextIO | None,
        *,
        patience: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._clock = clock
        self._started = clock()
        self._next = self._started + patience
        self._text: Callable[[float], str] | None = None

    @classmethod
    def on_stderr(cls, *, is_quiet: bool, patience: float = 0.0) -> StatusLine:
        return cls(None if is_quiet else sys.stderr, patience=patience)

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last text standing."""
        if self._text is not None:
            self._show(self._text)
            self._write("\n")

    @contextmanager
    def ticking(self, text: Callable[[float], str]) -> Iterator[None]:
        """Run the block and show the text every now and then, whether or not anything comes."""
        if self._stream is None:
            yield
            return
        is_done = Event()

        def tick() -> None:
            while not is_done.wait(PATIENCE):
                self.update(text)

        ticker = Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            is_done.set()
            ticker.join()

    def update(self, text: Callable[[float], str]) -> None:
        """Show a text, made from the seconds that have passed, if it is time for one."""
        if self._text is not None:
            self._text = text
        if self._clock() >= self._next:
            self._text = text
            self._show(text)

    def clear(self) -> None:
        """Leave nothing of it: what follows begins where it began."""
        if self._text is not None:
            self._write(_CLEAR)
            self._text = None

    def _show(self, text: Callable[[float], str]) -> None:
        now = self._clock()
        self._next = now + _INTERVAL
        line = text(now - self._started)
        self._write(f"{_CLEAR}{line[: _width(self._stream) - 1]}")

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._stream = None  # nobody looks any more; the work goes on


def _width(stream: TextIO | None) -> int:
    try:
        return (stream and os.get_terminal_size(stream.fileno()).columns) or _USUAL_WIDTH
    except OSError:
        return _USUAL_WIDTH


@contextmanager
def row_counts(doing: str, *, is_quiet: bool) -> Iterator[RowCounts]:
    """A listener for the block; as long as it hears nothing, what is being done is shown."""
    with StatusLine.on_stderr(is_quiet=is_quiet) as line:
        counts = RowCounts(line, doing)
        try:
            with line.ticking(counts.text):
                yield counts
        finally:
            if counts.is_empty:
                line.clear()


class RowCounts:
    """A listener of a write: rows that have passed each step, and how fast they come."""

    def __init__(self, line: StatusLine, doing: str = "waiting for rows") -> None:
        self._line = line
        self._doing = doing
        self._rows: dict[str, int] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no row has come yet."""
        return not self._rows

    def __call__(self, progress: Progress) -> None:
        self._rows = {**self._rows, progress.step: progress.rows}  # another thread may look
        self._line.update(self.text)

    def text(self, seconds: float) -> str:
        """How far it is."""
        rows = self._rows
        if not rows:
            return f"{self._doing} … {_elapsed(seconds)}"
        counts = [(step, rows[step]) for step in ORDER if step in rows]
        (first, most), *others = counts
        parts = [f"{most:,} rows {first}", *(f"{rows:,} {step}" for step, rows in others)]
        if seconds > 0:
            parts.append(f"{most / seconds:,.0f} rows/s")
        return ", ".join(parts)


class ByteCounts:
    """Told of more bytes that are written, and of the rows in them."""

    def __init__(self, line: StatusLine) -> None:
        self._line = line
        self.rows = 0
        self.size = 0

    def __call__(self, chunk: bytes) -> None:
        self.rows += chunk.count(b"\n")
        self.size += len(chunk)
        self._line.update(self._text)

    def _text(self, seconds: float) -> str:
        return f"{self.rows:,} rows written, {self.size / 2**20:,.1f} MiB … {_elapsed(seconds)}"


class FileCounts:
    """Told how many more rows of a file are embedded, and of how many."""

    def __init__(self, line: StatusLine) -> None:
        self._line = line
        self._done = 0

    def __call__(self, more: int, total: int) -> None:
        self._done += more
        done = self._done
        self._line.update(lambda _: f"{done:,} of {total:,} rows embedded")
