"""A plan as people and programs read it: what each step does, the rows it expects and those it had.

The text is stable for one plan and the same counts; the JSON has the same facts under names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.plan.estimate import IndexFact
    from omnigraph_core.plan.steps import Step

_INDENT: Final = "  "


@dataclass(frozen=True, slots=True)
class Work:
    """What a step has done: rows it took and made, in so many portions, in seconds of its own."""

    rows_in: int
    rows_out: int
    seconds: float
    portions: int = 1

    def plus(self, other: Work) -> Work:
        return Work(
            self.rows_in + other.rows_in,
            self.rows_out + other.rows_out,
            self.seconds + other.seconds,
            self.portions + other.portions,
        )

    def to_json(self) -> dict[str, object]:
        return {
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "seconds": self.seconds,
            "portions": self.portions,
        }

    def __str__(self) -> str:
        portions = f"{self.portions} portion{'' if self.portions == 1 else 's'}"
        took = f"{self.seconds * 1000:.3f} ms"
        return f"{self.rows_out:,} rows of {self.rows_in:,} in {took}, {portions}"


class Measured(Protocol):
    """Who knows what was done: a step, or a part of the result by its name."""

    def work_of(self, part: Step | str) -> Work | None: ...


@dataclass(frozen=True, slots=True)
class IndexUse:
    """An index that is asked, and how much of the table it covers."""

    column: str
    fact: IndexFact
    rows: int

    @property
    def coverage(self) -> float:
        return min(1.0, self.fact.covered_rows / self.rows) if self.rows else 1.0

    def to_json(self) -> dict[str, object]:
        return {
            "column": self.column,
            "kind": self.fact.kind,
            "coverage": self.coverage,
            "covered_rows": self.fact.covered_rows,
            "rows": self.rows,
        }

    def __str__(self) -> str:
        return f"index {self.fact.kind}({self.column}), {self.coverage:.0%} covered"


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step, or one part of the result."""

    kind: str
    text: str
    estimated_rows: float
    notes: tuple[str, ...] = ()
    """How it is done."""
    pushed: tuple[str, ...] = ()
    """Conditions the storage is asked, where it may use an index."""
    indexes: tuple[IndexUse, ...] = ()
    inner: tuple[StepReport, ...] = ()
    work: Work | None = None

    def lines(self) -> Iterator[str]:
        yield f"{self.text}  [{'; '.join(self._facts())}]"
        for step in self.inner:
            yield from (f"{_INDENT}{line}" for line in step.lines())

    def _facts(self) -> Iterator[str]:
        yield f"~{_rounded(self.estimated_rows):,} rows"
        if self.work is not None:
            yield str(self.work)
        yield from self.notes
        yield from (f"asks the storage {condition}" for condition in self.pushed)
        yield from map(str, self.indexes)

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "kind": self.kind,
            "text": self.text,
            "estimated_rows": _rounded(self.estimated_rows),
            "notes": list(self.notes),
        }
        if self.pushed:
            found["pushed"] = list(self.pushed)
        if self.indexes:
            found["indexes"] = [index.to_json() for index in self.indexes]
        if self.inner:
            found["inner"] = [step.to_json() for step in self.inner]
        if self.work is not None:
            found["work"] = self.work.to_json()
        return found


@dataclass(frozen=True, slots=True)
class PlanReport:
    """How a read is carried out, or was: `explain` and `profile` give one."""

    query: str
    steps: tuple[StepReport, ...]
    result: tuple[StepReport, ...]
    total: Work | None = None
    """The whole run, if it was one."""
    engine: str | None = None
    """Where it runs and why, if there was a choice."""

    @property
    def lines(self) -> tuple[str, ...]:
        parts = (line for step in (*self.steps, *self.result) for line in step.lines())
        where = () if self.engine is None else (f"{_INDENT}{self.engine}",)
        done = () if self.total is None else (_done(self.total),)
        return (f"query {self.query}", *(f"{_INDENT}{line}" for line in parts), *where, *done)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def to_json(self) -> dict[str, object]:
        found: dict[str, object] = {
            "query": self.query,
            "steps": [step.to_json() for step in self.steps],
            "result": [part.to_json() for part in self.result],
        }
        if self.engine is not None:
            found["engine"] = self.engine
        if self.total is not None:
            found["rows"] = self.total.rows_out
            found["seconds"] = self.total.seconds
        return found

    def __str__(self) -> str:
        return self.text


def _done(total: Work) -> str:
    return f"{_INDENT}{total.rows_out:,} rows in {total.seconds * 1000:.3f} ms"


def _rounded(rows: float) -> int:
    """Two digits of an estimate are more than it knows."""
    if rows < 100:
        return max(round(rows), 0 if rows <= 0 else 1)
    return int(float(f"{rows:.1e}"))
