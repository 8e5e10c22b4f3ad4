"""Every environment variable and tunable constant, in one typed table.

Nothing else in the project reads the environment. Each entry is documented in
docs/reference/settings.md, which a test compares with this table.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """An environment variable: its type is the type of its default."""

    name: str
    default: T
    parse: Callable[[str], T]
    about: str

    def read(self, environ: Mapping[str, str] | None = None) -> T:
        """The current value; unset or blank means the default.

        Raises:
            ConfigError: the text does not parse; names the variable and what it takes.
        """
        text = (os.environ if environ is None else environ).get(self.name, "").strip()
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError as problem:
            raise ConfigError(f"{self.name}={text!r}: {problem}", hint=self.about) from problem


@dataclass(frozen=True, slots=True)
class Constant(Generic[T]):
    """A figure the system is built around; changing it is a code change."""

    name: str
    value: T
    about: str


def _pairs(text: str) -> dict[str, str]:
    """`name=value; other=value` as a mapping."""
    pairs = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise ValueError(f"expected name=value, found {part!r}")
        pairs[name] = value
    return pairs


FAILPOINTS: Final[Setting[Mapping[str, str]]] = Setting(
    "OMNIGRAPH_FAILPOINTS",
    default={},
    parse=_pairs,
    about="Arms failpoints for fault tests: `name=crash; other=error*2; third=sleep(50)`.",
)

SETTINGS: Final[tuple[Setting[Mapping[str, str]], ...]] = (FAILPOINTS,)

RESERVED_PARAMETER: Final = Constant(
    "reserved_parameter",
    "__nanograph_now",
    "The parameter name queries may not declare: it carries the query's one timestamp.",
)
RRF_K: Final = Constant("rrf_k", 60, "The rank constant of `rrf` when a query does not give one.")
FUZZY_MAX_EDITS: Final = Constant(
    "fuzzy_max_edits", 2, "Edits `fuzzy` tolerates per word when a query does not say."
)

MAX_NESTING: Final = Constant(
    "max_nesting",
    64,
    "Levels of brackets in a query: later passes recurse, far from Python's own limit.",
)
MAX_DIGITS: Final = Constant(
    "max_digits",
    640,
    "Characters of a number literal: Python reads that many whatever limit is set on it.",
)
SCHEMA_DOCUMENT_VERSION: Final = Constant(
    "schema_document_version",
    2,
    "The format of persisted schema documents that this release writes.",
)

CONSTANTS: Final[tuple[Constant[str] | Constant[int], ...]] = (
    RESERVED_PARAMETER,
    RRF_K,
    FUZZY_MAX_EDITS,
    MAX_NESTING,
    MAX_DIGITS,
    SCHEMA_DOCUMENT_VERSION,
)
