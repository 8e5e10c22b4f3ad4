"""Embedding a seed file without a graph: lines in, the same lines with vectors out.

The whole input is checked before anything is asked for; the output appears whole or not at all.
"""

from __future__ import annotations

import os
import secrets
import shutil
from codecs import BOM_UTF8
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from omnigraph_core.embedding.client import Task
from omnigraph_core.embedding.config import GEMINI_MODEL, MOCK_MODEL
from omnigraph_core.embedding.seed_rows import (
    SeedRow,
    Selector,
    is_encodable,
    parse_row,
    source_text,
)
from omnigraph_core.errors import ConfigError, RecordError
from omnigraph_core.violations import Rule, Violation, Violations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.embedding.spec import EmbedSpec, TypeSpec

_WINDOW: Final = 1024
"""Rows in memory at one time."""


class EmbedFileMode(StrEnum):
    FILL_MISSING = "fill_missing"
    REEMBED_SELECTED = "reembed_selected"
    REEMBED_ALL = "reembed_all"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class EmbedJob:
    """One run. `types` and `selectors` narrow the rows it may change; empty means all."""

    input: Path
    output: Path
    spec: EmbedSpec
    types: tuple[str, ...] = ()
    selectors: tuple[Selector, ...] = ()
    is_clean: bool = False
    is_reembed_all: bool = False

    @property
    def mode(self) -> EmbedFileMode:
        if self.is_clean:
            return EmbedFileMode.CLEAN
        if self.is_reembed_all:
            return EmbedFileMode.REEMBED_ALL
        return EmbedFileMode.REEMBED_SELECTED if self.selectors else EmbedFileMode.FILL_MISSING

    def selects(self, row: SeedRow) -> bool:
        if row.type_name is None or (self.types and row.type_name not in self.types):
            return False
        return not self.selectors or any(item.matches(row) for item in self.selectors)

    def target_type(self, row: SeedRow) -> TypeSpec | None:
        """How to embed the row, if this run is to change its vector."""
        spec = None if row.type_name is None else self.spec.types.get(row.type_name)
        if spec is None or not self.selects(row):
            return None
        is_present = spec.target in row.data
        is_empty = row.data.get(spec.target) in (None, [])
        wanted = {
            EmbedFileMode.FILL_MISSING: is_empty,
            EmbedFileMode.CLEAN: is_present,
        }
        return spec if wanted.get(self.mode, True) else None


@dataclass(frozen=True, slots=True)
class EmbedSummary:
    """What a run did. `selected_rows` counts rows of types the spec does not know, too."""

    input: str
    output: str
    rows: int
    selected_rows: int
    embedded_rows: int
    cleaned_rows: int
    mode: EmbedFileMode
    dimension: int
    model: str

    def to_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__} | {"mode": str(self.mode)}

    def render(self) -> str:
        return (
            f"{self.input} -> {self.output}: {self.rows} rows, {self.selected_rows} selected, "
            f"{self.embedded_rows} embedded, {self.cleaned_rows} cleaned "
            f"({self.mode}, {self.model}, dimension {self.dimension})"
        )


def embed_file(
    job: EmbedJob, embedder: Embedder, *, on_done: Callable[[int, int], None] | None = None
) -> EmbedSummary:
    """Write the output; an existing one, which may be the input, is replaced.

    Args:
        on_done: told how many more rows are embedded, and of how many in all.

    Raises:
        RecordError: lines of the input are malformed; lists them. Nothing was asked for. Or the
            input has changed meanwhile. The output is as it was.
        ConfigError: the files or flags cannot be used, or the provider's settings.
        EmbeddingError: the provider failed. The output is as it was.
    """
    if job.is_clean and job.is_reembed_all:
        raise ConfigError("expected one of clean and reembed-all, found both")
    tally = _tally(job)
    model = _model(job, embedder)
    is_clean = job.mode is EmbedFileMode.CLEAN

    def report(count: int) -> None:
        if on_done is not None:
            on_done(count, tally.changed)

    with _written_whole(job.output) as output:
        for window in _windows(_rows(job, tally)):
            lines = _cleaned(job, window) if is_clean else _embedded(job, window, embedder, report)
            output.writelines(f"{line}\n".encode(errors="surrogateescape") for line in lines)
    return EmbedSummary(
        input=str(job.input),
        output=str(job.output),
        rows=tally.rows,
        selected_rows=tally.selected,
        embedded_rows=0 if is_clean else tally.changed,
        cleaned_rows=tally.changed if is_clean else 0,
        mode=job.mode,
        dimension=job.spec.dimension,
        model=model,
    )


@dataclass(slots=True)
class _Tally:
    rows: int = 0
    selected: int = 0
    changed: int = 0

    def add(self, job: EmbedJob, row: SeedRow) -> None:
        self.rows += not row.is_comment
        self.selected += job.selects(row)
        self.changed += job.target_type(row) is not None


def _tally(job: EmbedJob) -> _Tally:
    """What the run will do, once every line is known to be good."""
    tally = _Tally()
    violations = Violations()
    for row in _checked(job):
        if isinstance(row, Violation):
            violations.add(row)
        else:
            tally.add(job, row)
    _refuse(violations)
    return tally


def _checked(job: EmbedJob) -> Iterator[SeedRow | Violation]:
    """Every line that is not blank, as a row that can be written or as what is wrong with it."""
    for number, row in _numbered(job.input):
        problem = row if isinstance(row, Violation) else _problem(job, row)
        yield row if problem is None else replace(problem, file=str(job.input), line=number)


def _problem(job: EmbedJob, row: SeedRow) -> Violation | None:
    spec = job.target_type(row)
    if spec is None:
        return None
    name = row.repeated
    if name is not None:
        message = f"member `{name}` is given twice"
        return Violation(Rule.RECORD, message, type_name=row.type_name, property=name)
    if job.is_clean or is_encodable(source_text(row, spec)):
        return None
    message = "expected text, found half of a surrogate pair"
    return Violation(Rule.VALUE, message, type_name=row.type_name)


def _refuse(violations: Violations) -> None:
    if not violations.total:
        return
    listed = violations.listed
    lines = [violation.render() for violation in listed]
    if violations.total > len(listed):
        lines.append(f"and {violations.total - len(listed)} more")
    raise RecordError(
        "\n".join(lines),
        hint="nothing was written",
        line=listed[0].line,
        violations=listed,
        counts=violations.counts,
    )


def _model(job: EmbedJob, embedder: Embedder) -> str:
    """The model to report. Cleaning must do without a provider, and the mock has no model."""
    named = job.spec.model or GEMINI_MODEL
    if job.mode is EmbedFileMode.CLEAN:
        return named
    used = embedder.model_for(job.spec.model)
    return named if used == MOCK_MODEL else used


def _cleaned(job: EmbedJob, window: Sequence[SeedRow]) -> Iterator[str]:
    for row in window:
        spec = job.target_type(row)
        if spec is not None:
            del row.data[spec.target]
        yield row.text if spec is None else row.render()


def _embedded(
    job: EmbedJob,
    window: Sequence[SeedRow],
    embedder: Embedder,
    report: Callable[[int], None],
) -> Iterator[str]:
    specs = [job.target_type(row) for row in window]
    vectors = iter(
        embedder.embed(
            [source_text(row, spec) for row, spec in zip(window, specs, strict=True) if spec],
            dimension=job.spec.dimension,
            task=Task.DOCUMENT,
            model=job.spec.model,
            on_done=report,
        )
    )
    for row, spec in zip(window, specs, strict=True):
        if spec is not None:
            row.data[spec.target] = next(vectors).tolist()
        yield row.text if spec is None else row.render()


def _windows(rows: Iterator[SeedRow]) -> Iterator[list[SeedRow]]:
    while window := list(islice(rows, _WINDOW)):
        yield window


def _rows(job: EmbedJob, expected: _Tally) -> Iterator[SeedRow]:
    """The rows once more, if they are still those that were counted."""
    found = _Tally()
    for row in _checked(job):
        if isinstance(row, Violation):
            raise _changed_meanwhile(job, row.render(), row.line)
        found.add(job, row)
        yield row
    if found != expected:
        counts = [f"{tally.rows} rows, {tally.changed} to change" for tally in (expected, found)]
        raise _changed_meanwhile(job, f"expected {counts[0]}, found {counts[1]}")


def _changed_meanwhile(job: EmbedJob, what: str, line: int | None = None) -> RecordError:
    message = f"{job.input} has changed while it was read: {what}"
    return RecordError(message, hint="nothing was written", line=line)


def _numbered(path: Path) -> Iterator[tuple[int, SeedRow | Violation]]:
    """Every line that is not blank, with its number."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"cannot read {path}: expected a file, which can be read twice")
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                row = parse_row(line.removeprefix(BOM_UTF8) if number == 1 else line)
                if row is not None:
                    yield number, row
    except OSError as problem:
        raise ConfigError(f"cannot read {path}: {problem.strerror}") from problem


@contextmanager
def _written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file beside the output that takes its place at the end, or is gone."""
    target = Path(os.path.realpath(path))  # a link stays one
    # No other run has this name, and no file there is: it might be the input.
    draft = target.with_name(f".embed-{secrets.token_hex(8)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_file():
            raise ConfigError(f"cannot write {path}: expected a file")
        output = draft.open("xb")
        with _removed(draft):
            with output:
                if target.exists():
                    shutil.copymode(target, draft)
                yield output
            draft.replace(target)
    except OSError as problem:
        raise ConfigError(f"cannot write {path}: {problem.strerror}") from problem


@contextmanager
def _removed(draft: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
