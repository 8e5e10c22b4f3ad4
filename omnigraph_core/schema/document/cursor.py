"""A place in a JSON value that knows its path: typed reads that say what is wrong and where.

Every read either returns the type it names or raises ConfigError with the path of the bad value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import StrEnum

    _Member = TypeVar("_Member", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Cursor:
    value: object
    path: str

    def fields(self, *names: str) -> Mapping[str, Cursor]:
        """An object with exactly these fields."""
        found = self._mapping()
        problems = [f"missing field `{name}`" for name in names if name not in found]
        problems += [f"unknown field `{name}`" for name in found if name not in names]
        if problems:
            raise self.problem(", ".join(problems))
        return {name: Cursor(found[name], f"{self.path}.{name}") for name in names}

    def only_field(self) -> tuple[str, Cursor]:
        """An object with one field, as an externally tagged value is written."""
        found = self._mapping()
        if len(found) != 1:
            raise self.problem(f"expected an object with one field, found {len(found)}")
        ((name, value),) = found.items()
        return name, Cursor(value, f"{self.path}.{name}")

    def _mapping(self) -> dict[str, object]:
        if not isinstance(self.value, dict):
            raise self._expected("an object")
        return self.value

    def items(self) -> tuple[Cursor, ...]:
        if not isinstance(self.value, list):
            raise self._expected("an array")
        return tuple(Cursor(item, f"{self.path}[{i}]") for i, item in enumerate(self.value))

    @property
    def is_null(self) -> bool:
        return self.value is None

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self._expected("text")
        return self.value

    def optional_text(self) -> str | None:
        return None if self.is_null else self.text()

    def whole(self) -> int:
        """A whole number, zero or more."""
        if type(self.value) is not int or self.value < 0:
            raise self._expected("a whole number")
        return self.value

    def integer(self) -> int:
        if type(self.value) is not int:
            raise self._expected("an integer")
        return self.value

    def number(self) -> float:
        if type(self.value) not in (int, float):
            raise self._expected("a number")
        return float(self.value)  # type: ignore[arg-type]

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self._expected("true or false")
        return self.value

    def member(self, kind: type[_Member]) -> _Member:
        """One of the spellings of an enumeration."""
        for candidate in kind:
            if self.value == candidate.value:
                return candidate
        raise self._expected(" | ".join(kind))

    def _expected(self, what: str) -> ConfigError:
        return self.problem(f"expected {what}, found {self.value!r:.60}")

    def problem(self, text: str) -> ConfigError:
        """The error to raise about this place."""
        return ConfigError(f"{self.path}: {text}")
