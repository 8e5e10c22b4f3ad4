"""Typed reads of what a catalog holds: a row's columns, or the JSON inside one.

Every read returns the type it names or raises the error that says what is damaged, and where.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import StrEnum

    _Member = TypeVar("_Member", bound=StrEnum)

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))  # made once: half of the cost
_U64: Final = 2**64
_DECIMAL: Final = re.compile(r"[1-9][0-9]{0,19}")


def damaged(where: str, what: str) -> StorageError:
    """The error to raise about a catalog that cannot be what was written."""
    return StorageError(
        f"the catalog at {where} is damaged: {what}", hint="restore it from a copy of the graph"
    )


def json_text(values: Mapping[str, object]) -> str:
    """An object as JSON, without what is None."""
    given = {name: value for name, value in values.items() if value is not None}
    return _ENCODER.encode(given)


@dataclass(frozen=True, slots=True)
class Fields:
    """Named values; `label` says in messages whose they are."""

    values: Mapping[str, object]
    label: str
    where: str

    def text(self, name: str) -> str:
        value = self._given(name)
        if not isinstance(value, str):
            raise self._expected(name, "text")
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.text(name)

    def whole(self, name: str, *, least: int = 0) -> int:
        """A whole number that fits 64 bits."""
        value = self._given(name)
        if type(value) is not int or not least <= value < _U64:
            raise self._expected(name, f"a whole number from {least}")
        return value

    def decimal(self, name: str) -> int:
        """A number above zero written as text: readers of JSON round big numbers."""
        text = self.text(name)
        if not _DECIMAL.fullmatch(text) or int(text) >= _U64:
            raise self._expected(name, "a number in decimal digits")
        return int(text)

    def member(self, name: str, kind: type[_Member]) -> _Member:
        """One of the spellings of an enumeration."""
        text = self.text(name)
        for candidate in kind:
            if candidate.value == text:
                return candidate
        raise self._expected(name, " | ".join(kind))

    def json(self, name: str) -> Fields:
        """The object written as JSON in a text."""
        try:
            values = json.loads(self.text(name))
        except (ValueError, RecursionError) as problem:
            raise self.damaged(f"{name} of {self.label} is not JSON: {problem}") from problem
        if not isinstance(values, dict):
            raise self._expected(name, "an object")
        return Fields(values, f"{name} of {self.label}", self.where)

    def check(self, name: str, expected: str) -> None:
        """Refuse a text other than the expected one."""
        if self.text(name) != expected:
            raise self._expected(name, f"`{expected}`")

    def damaged(self, what: str) -> StorageError:
        return damaged(self.where, what)

    def _given(self, name: str) -> object:
        value = self.values.get(name)
        if value is None:
            raise self.damaged(f"{self.label} has no {name}")
        return value

    def _expected(self, name: str, what: str) -> StorageError:
        found = f"{self.values[name]!r:.60}"
        return self.damaged(f"{name} of {self.label} is {found}, expected {what}")
