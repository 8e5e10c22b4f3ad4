"""What a check of a graph found: findings, what was looked at, and one report of both.

Only an error makes a graph unsound; a warning is something that still works, and the rest is good
to know.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(StrEnum):
    """What can be wrong; rules that rows break are `rows.` and the rule. The spelling is stable."""

    REF_DAMAGED = "ref.damaged"
    REF_DANGLING = "ref.dangling"
    CATALOG_UNREADABLE = "catalog.unreadable"
    CATALOG_HISTORY = "catalog.history"
    SCHEMA_DAMAGED = "schema.damaged"
    LOG_DAMAGED = "log.damaged"
    LOG_DISAGREES = "log.disagrees"
    TABLE_UNREADABLE = "table.unreadable"
    TABLE_COUNTS = "table.counts"
    TABLE_COLUMNS = "table.columns"
    FILE_MISSING = "file.missing"
    FILE_SIZE = "file.size"
    INDEX_DAMAGED = "index.damaged"
    GARBAGE = "garbage"


RESTORE = "restore it from a copy of the graph"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be, where, and what to do about it."""

    severity: Severity
    code: str
    place: str
    message: str
    hint: str | None = None

    def render(self) -> str:
        hint = "" if self.hint is None else f"; {self.hint}"
        return f"{self.severity} {self.code} {self.place}: {self.message}{hint}"

    def to_json(self) -> dict[str, object]:
        return {
            "severity": str(self.severity),
            "code": str(self.code),
            "place": self.place,
            "message": self.message,
            "hint": self.hint,
        }


def error(code: str, place: str, message: str, hint: str | None = RESTORE) -> Finding:
    """A finding that makes the graph unsound."""
    return Finding(Severity.ERROR, code, place, message, hint)


def unreadable(code: str, place: str, problem: StorageError) -> Finding:
    """The finding that a failure of the store stands for.

    Raises:
        StorageError: that one, if the store does not answer or refuses: it says nothing of a graph.
    """
    if problem.retryable or problem.is_refused:
        raise problem
    return error(code, place, problem.message, problem.hint)


@dataclass(frozen=True, slots=True)
class Checked:
    """How much was looked at; `rows` are those whose values were read."""

    branches: int = 0
    tags: int = 0
    catalog_versions: int = 0
    table_versions: int = 0
    files: int = 0
    indexes: int = 0
    rows: int = 0

    def plus(self, other: Checked) -> Checked:
        """Both together."""
        mine, others = asdict(self), asdict(other)
        return replace(self, **{name: mine[name] + others[name] for name in mine})


_NOUNS: Final = {
    "branches": "branch",
    "tags": "tag",
    "catalog_versions": "catalog version",
    "table_versions": "table version",
    "files": "file",
    "indexes": "index",
    "rows": "row",
}


@dataclass(frozen=True, slots=True)
class Part:
    """What one step has found."""

    findings: tuple[Finding, ...] = ()
    checked: Checked = Checked()


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a check of a graph has found, the worst first."""

    branch: str | None
    is_deep: bool
    checked: Checked
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    def require_sound(self) -> VerifyReport:
        """This report.

        Raises:
            StorageError: the graph is damaged; tells everything that was found.
        """
        if not self.is_sound:
            raise StorageError(f"the graph is damaged\n{self.render()}")
        return self

    def render(self) -> str:
        """For people: one line for each finding, and one that sums up."""
        return "\n".join(self._lines())

    def to_json(self) -> dict[str, object]:
        return {
            "branch": self.branch,
            "is_deep": self.is_deep,
            "is_sound": self.is_sound,
            "checked": asdict(self.checked),
            "findings": [finding.to_json() for finding in self.findings],
        }

    def _lines(self) -> Iterator[str]:
        for finding in self.findings:
            yield finding.render()
        counts = Counter(finding.severity for finding in self.findings)
        told = ", ".join(
            f"{counts[kind]} {kind}{'' if counts[kind] == 1 else 's'}"
            for kind in (Severity.ERROR, Severity.WARNING)
            if counts[kind]
        )
        looked_at = ", ".join(
            f"{number} {_NOUNS[name] if number == 1 else name.replace('_', ' ')}"
            for name, number in asdict(self.checked).items()
            if number
        )
        yield f"{'sound' if self.is_sound else 'damaged'}{f': {told}' if told else ''}"
        yield f"checked {looked_at}"


def report(branch: str | None, parts: list[Part], *, is_deep: bool) -> VerifyReport:
    """The report of all steps."""
    order = list(Severity)
    findings = sorted(
        (finding for part in parts for finding in part.findings),
        key=lambda finding: (order.index(finding.severity), finding.place, finding.code),
    )
    checked = Checked()
    for part in parts:
        checked = checked.plus(part.checked)
    return VerifyReport(branch, is_deep, checked, tuple(dict.fromkeys(findings)))
