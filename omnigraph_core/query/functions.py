"""The functions of the query language in one table: what they take, where they may stand.

Checks, hints and the reference pages read from here, so none can promise what another refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Place(StrEnum):
    """Where an expression stands; the value is how messages name the place."""

    MATCH = "a match condition"
    VALUE = "a field or assignment"
    RETURN = "return"
    ARGUMENT = "an aggregate"
    HAVING = "having"
    ORDER = "order"
    WHERE = "where"


class FunctionKind(StrEnum):
    AGGREGATE = "aggregate"
    TEXT = "text"
    RANK = "rank"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    kind: FunctionKind
    signature: str
    summary: str
    minimum: int
    maximum: int
    places: frozenset[Place]

    @property
    def arity(self) -> str:
        """How many arguments, in words: `1 argument`, `2 or 3 arguments`."""
        if self.minimum == self.maximum:
            return f"{self.minimum} argument{'' if self.minimum == 1 else 's'}"
        return f"{self.minimum} or {self.maximum} arguments"


_AFTER_GROUPING: Final = frozenset({Place.RETURN, Place.HAVING, Place.ORDER})
_ON_ROWS: Final = frozenset({Place.MATCH, Place.RETURN, Place.ARGUMENT})
_RANKING: Final = frozenset({Place.RETURN, Place.ORDER})


def _aggregate(name: str, summary: str) -> Function:
    signature = "count([distinct] value)" if name == "count" else f"{name}(value)"
    return Function(name, FunctionKind.AGGREGATE, signature, summary, 1, 1, _AFTER_GROUPING)


def _text(name: str, signature: str, summary: str, *, maximum: int = 2) -> Function:
    return Function(name, FunctionKind.TEXT, signature, summary, 2, maximum, _ON_ROWS)


def _rank(name: str, signature: str, summary: str, *, maximum: int = 2) -> Function:
    return Function(name, FunctionKind.RANK, signature, summary, 2, maximum, _RANKING)


def _literal(name: str, example: str) -> Function:
    summary = f"`{name}({example})`"
    return Function(name, FunctionKind.VALUE, f'{name}("…")', summary, 1, 1, frozenset(Place))


FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        function.name: function
        for function in (
            _aggregate("count", "rows of the group where the value is not null"),
            _aggregate("sum", "sum of the numbers of the group"),
            _aggregate("avg", "mean of the numbers of the group"),
            _aggregate("min", "least value of the group"),
            _aggregate("max", "greatest value of the group"),
            _text("search", "search($x.p, text)", "the text shares a word with the query"),
            _text(
                "fuzzy",
                "fuzzy($x.p, text[, edits])",
                "as search, allowing misspelt words",
                maximum=3,
            ),
            _text("match_text", "match_text($x.p, text)", "the text holds the query as a phrase"),
            _rank("nearest", "nearest($x.p, vector or text)", "distance to a vector"),
            _rank("bm25", "bm25($x.p, text)", "relevance of a text to a query"),
            _rank(
                "rrf",
                "rrf(rank, rank[, k])",
                "two rankings fused by their ranks",
                maximum=3,
            ),
            Function(
                "now",
                FunctionKind.VALUE,
                "now()",
                "the one timestamp of the query",
                0,
                0,
                frozenset(Place) - {Place.ORDER},
            ),
            _literal("date", '"2026-01-31"'),
            _literal("datetime", '"2026-01-31T10:00:00Z"'),
        )
    }
)
