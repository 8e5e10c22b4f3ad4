"""What is shown, and how often, on a terminal and in a log."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from omnigraph_core.cli import progress
from omnigraph_core.cli.progress import (
    ByteCounts,
    FileCounts,
    RowCounts,
    StatusLine,
    row_counts,
)
from omnigraph_core.write.progress import Progress, Step
from tests.support.waiting import wait_until


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_log_gets_nothing(clock: Clock) -> None:
    log = io.StringIO()
    with StatusLine(log, clock=clock) as line:
        for second in range(60):
            clock.now = 100 + second
            RowCounts(line)(Progress(Step.READ, second))
    assert log.getvalue() == ""


def test_what_is_over_before_patience_is_shows_nothing(clock: Clock) -> None:
    terminal = Terminal()
    with StatusLine(terminal, patience=1, clock=clock) as line:
        ByteCounts(line)(b"a\n")
        clock.now += 0.9
        ByteCounts(line)(b"b\n")
    assert terminal.getvalue() == ""


def test_bytes_that_are_written(clock: Clock) -> None:
    terminal = Terminal()
    with StatusLine(terminal, patience=1, clock=clock) as line:
        counts = ByteCounts(line)
        counts(b"a\n" * 1000)
        clock.now += 1
        counts(b"b" * 2**20)
        counts(b"b\n")  # too soon to show
        clock.now += 61
    assert terminal.getvalue() == (
        "\r\x1b[K1,000 rows written, 1.0 MiB … 1 s\r\x1b[K1,001 rows written, 1.0 MiB … 1 min 2 s\n"
    )
    assert (counts.rows, counts.size) == (1001, 2000 + 2**20 + 2)


def test_a_terminal_has_one_line_that_ends_with_the_last_counts(clock: Clock) -> None:
    terminal = Terminal()
    with StatusLine(terminal, clock=clock) as line:
        counts = RowCounts(line)
        counts(Progress(Step.READ, 10))
        counts(Progress(Step.VALIDATED, 10))  # too soon to show
        clock.now += 0.5
        counts(Progress(Step.EMBEDDED, 3))
        counts(Progress(Step.STAGED, 10))
        clock.now += 1.5
    assert terminal.getvalue() == (
        "\r\x1b[K10 rows read"
        "\r\x1b[K10 rows read, 10 validated, 3 embedded, 20 rows/s"
        "\r\x1b[K10 rows read, 10 validated, 3 embedded, 10 staged, 5 rows/s\n"
    )


def test_a_terminal_line_ends_before_an_error_is_shown(clock: Clock) -> None:
    terminal = Terminal()
    line = StatusLine(terminal, clock=clock)
    RowCounts(line)(Progress(Step.READ, 1))
    line.__exit__(ValueError, ValueError("stop"), None)
    assert terminal.getvalue().endswith("1 rows read\n")


def test_nothing_is_shown_where_nothing_happened_or_nobody_looks(clock: Clock) -> None:
    terminal = Terminal()
    with StatusLine(terminal, clock=clock):
        pass
    with StatusLine(None, clock=clock) as line:
        RowCounts(line)(Progress(Step.READ, 1))
        clock.now += 60
        RowCounts(line)(Progress(Step.READ, 2))
    assert terminal.getvalue() == ""


class Hung(Terminal):
    """A terminal whose other end is gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(text)


def test_work_goes_on_when_nobody_looks_any_more(clock: Clock) -> None:
    with StatusLine(Hung(), clock=clock) as line:
        RowCounts(line)(Progress(Step.READ, 1))
        clock.now += 1
        RowCounts(line)(Progress(Step.READ, 2))


def test_a_line_fits_the_terminal(clock: Clock) -> None:
    terminal = Terminal()
    with StatusLine(terminal, clock=clock) as line:
        line.update(lambda _: "x" * 200)
    _, *shown = terminal.getvalue().split("\r\x1b[K")
    assert {text.rstrip("\n") for text in shown} == {"x" * 79}


def test_rows_of_a_file(clock: Clock) -> None:
    terminal = Terminal()
    with StatusLine(terminal, clock=clock) as line:
        counts = FileCounts(line)
        counts(64, 1500)
        counts(1436, 1500)
    assert terminal.getvalue() == (
        "\r\x1b[K64 of 1,500 rows embedded\r\x1b[K1,500 of 1,500 rows embedded\n"
    )


def test_a_terminal_is_told_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 0.001)
    with progress.busy("merging a into b", is_quiet=False):
        while "merging a into b … 0 s" not in terminal.getvalue():
            pass
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_nobody_waits_for_what_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.busy("merging", is_quiet=False):
        pass
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None, Terminal()])
def test_who_is_not_told(stream: io.StringIO | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0)
    threads = threading.active_count()
    with progress.busy("merging", is_quiet=isinstance(stream, Terminal)):
        assert threading.active_count() == threads
    assert stream is None or stream.getvalue() == ""


def test_a_failure_clears_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 0.001)

    def fail() -> None:
        with progress.busy("merging", is_quiet=False):
            wait_until(terminal.getvalue, "the first sign of it")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_load_that_has_no_rows_yet_is_seen_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Watched(Terminal):
        def __init__(self) -> None:
            super().__init__()
            self.shown = threading.Event()

        def write(self, text: str) -> int:
            if text.startswith("\r\x1b[Kloading"):
                self.shown.set()
            return super().write(text)

    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    empty, filled = Watched(), Watched()
    monkeypatch.setattr(sys, "stderr", empty)
    with row_counts("loading on Spark", is_quiet=False):
        assert empty.shown.wait(120)
    assert empty.getvalue().startswith("\r\x1b[Kloading on Spark … 0 s")
    assert empty.getvalue().endswith("\r\x1b[K"), "nothing of it is left"
    monkeypatch.setattr(sys, "stderr", filled)
    with row_counts("loading", is_quiet=False) as counts:
        assert filled.shown.wait(120)
        counts(Progress(Step.READ, 12))
    assert "12 rows read" in filled.getvalue().splitlines()[-1]
    assert filled.getvalue().endswith("\n")
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with row_counts("loading", is_quiet=False) as counts:
        counts(Progress(Step.READ, 12))
    assert log.getvalue() == ""
