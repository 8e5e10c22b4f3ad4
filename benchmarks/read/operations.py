"""What is asked of every engine, and what our answer may cost.

Targets are ratios to the best peer of the same run, and to the floor where that is long enough to
mean something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.read.data import Case

    Rows = Sequence[tuple[Any, ...]]
    Ask = Callable[[Case], Any]

PER_QUERY: Final = 0.15
"""Milliseconds a query may cost at all: compiling from the cache, parameters, the result."""
OF_FLOOR: Final = 5.0
LEAST_FLOOR: Final = 0.5
"""Milliseconds below which the floor says nothing about an engine."""
FAR_AHEAD: Final = 0.3


class Engine(Protocol):
    """One engine with the graph in it."""

    @property
    def asks(self) -> Mapping[str, Ask]:
        """What it can answer, by name of the operation; this is what is timed."""

    def rows(self, answer: Any) -> Rows:
        """An answer as plain values, to be compared."""


@dataclass(frozen=True, slots=True)
class Operation:
    """How answers are compared is said by `benchmarks.read.answers`."""

    name: str
    title: str
    of_peer: float = 1.0
    """What ours may take of the best peer's time."""


OPERATIONS: Final = (
    Operation("lookup", "point lookup by key", 1.5),
    Operation("lookups", "1 000 lookups in one call", FAR_AHEAD),
    Operation("filter_count", "filter count (age, city)"),
    Operation("filter_top", "filter top 20"),
    Operation("hop_1", "1-hop distinct, names of <= 100"),
    Operation("hop_2", "2-hop", FAR_AHEAD),
    Operation("hop_3", "3-hop", FAR_AHEAD),
    Operation("hop_2_counts", "2-hop counts for 1 000 persons", FAR_AHEAD),
    Operation("reachable", "reachable in 1..4", FAR_AHEAD),
    Operation("triangles", "triangle count", FAR_AHEAD),
    Operation("without_job", "persons without WorksAt", FAR_AHEAD),
    Operation("edges_by_city", "edges grouped by city", FAR_AHEAD),
    Operation("age_by_city", "avg neighbour age by city", FAR_AHEAD),
    Operation("vector_exact", "vector top 10, exact"),
    Operation("vector_index", "vector top 10, index"),
    Operation("vector_hop_2", "vector top 10 in a 2-hop neighbourhood"),
    Operation("bm25_top", "BM25 top 10"),
    Operation("hybrid_top", "hybrid RRF top 10"),
    Operation("nothing", "a query that finds nothing: the overhead"),
)
