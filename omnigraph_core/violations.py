"""What is wrong with given rows: one value per problem, collected without bound on the count.

Every check of every write path reports here, so one error can name all problems with their places.
The list is bounded, the counts are exact.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_LISTED: Final = 100
"""Violations a collector spells out unless told otherwise."""
UNBOUNDED: Final = 2**62
"""For those who need every one: a reject file lists all records, an error only so many."""


class Rule(StrEnum):
    """What a row can break; the spelling is stable."""

    JSON = "json"
    RECORD = "record"
    UNKNOWN_TYPE = "unknown_type"
    UNKNOWN_FIELD = "unknown_field"
    VALUE = "value"
    ID_MISMATCH = "id_mismatch"
    REQUIRED = "required"
    ENUM = "enum"
    RANGE = "range"
    CHECK = "check"
    UNIQUE = "unique"
    KEY = "key"
    ENDPOINT = "endpoint"
    ORPHAN = "orphan"
    CARDINALITY = "cardinality"
    EMBEDDING = "embedding"


@dataclass(frozen=True, slots=True)
class Violation:
    """One problem. `unit` says what `line` counts from 1: lines, rows, records or statements."""

    rule: Rule
    message: str
    type_name: str | None = None
    property: str | None = None
    value: object = None
    id: str | None = None
    file: str | None = None
    line: int | None = None
    unit: str = "line"

    def place(self) -> str | None:
        """Where it stands, as messages begin with it: `people.jsonl:12`, `statement 2`."""
        if self.line is None:
            return self.file
        if self.file is not None and self.unit == "line":
            return f"{self.file}:{self.line}"
        where = f"{self.unit} {self.line}"
        return where if self.file is None else f"{self.file}, {where}"

    def render(self) -> str:
        place = self.place()
        return self.message if place is None else f"{place}: {self.message}"

    def to_json(self) -> dict[str, object]:
        """The same on every surface; members without a value are left out."""
        members = {
            "rule": str(self.rule),
            "message": self.message,
            "type": self.type_name,
            "property": self.property,
            "value": self.value,
            "id": self.id,
            "file": self.file,
            self.unit: self.line,
        }
        return {name: value for name, value in members.items() if value is not None}


class Violations:
    """A bounded list of problems and exact counts of all of them."""

    def __init__(self, limit: int = MAX_LISTED) -> None:
        self._limit = limit
        self._listed: list[Violation] = []
        self._counts: Counter[Rule] = Counter()

    @classmethod
    def together(cls, *parts: Violations) -> Violations:
        """The problems of several collectors; what each had no room for is counted."""
        whole = cls(sum(len(part._listed) for part in parts))
        for part in parts:
            whole._listed += part._listed
            whole._counts += part._counts
        return whole

    def add(self, violation: Violation) -> None:
        self._counts[violation.rule] += 1
        if len(self._listed) < self._limit:
            self._listed.append(violation)

    def add_part(self, part: Violations, *, lines_before: int) -> None:
        """Add the problems of a part of a source, with places in the whole of it."""
        listed = Counter(violation.rule for violation in part._listed)
        for violation in part.listed:
            at = None if violation.line is None else violation.line + lines_before
            self.add(replace(violation, line=at))
        for rule, count in part.counts.items():
            self.count(rule, count - listed[rule])

    def count(self, rule: Rule, unlisted: int) -> None:
        """Count problems that are not worth a value each: the list is full."""
        if unlisted:
            self._counts[rule] += unlisted

    @property
    def room(self) -> int:
        """How many more will be listed; a check need not describe more rows than that."""
        return max(0, self._limit - len(self._listed))

    @property
    def total(self) -> int:
        return self._counts.total()

    @property
    def counts(self) -> Mapping[Rule, int]:
        """By rule, in the order of the rules: the same however they were found."""
        return {rule: self._counts[rule] for rule in Rule if self._counts[rule]}

    @property
    def listed(self) -> tuple[Violation, ...]:
        """In the order of the input, as far as places are known."""
        return tuple(sorted(self._listed, key=lambda item: (item.file or "", item.line or 0)))
