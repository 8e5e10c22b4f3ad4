"""What is asked of every engine, and what our answer may cost.

A budget is a multiple of the floor plus what a query costs at all: compiling from the cache,
binding parameters, making a result. Besides, no peer may be faster.
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
"""Milliseconds."""


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
    of_floor: float = 2.0
    """How many times the floor ours may take, beside `PER_QUERY`."""


OPERATIONS: Final = (
    Operation("lookup", "point lookup by key"),
    Operation("lookups", "1 000 lookups in one call"),
    Operation("filter_count", "filter count (age, city)"),
    Operation("filter_top", "filter top 20"),
    Operation("hop_1", "1-hop distinct, names of <= 100"),
    Operation("hop_2", "2-hop"),
    Operation("hop_3", "3-hop"),
    Operation("hop_2_counts", "2-hop counts for 1 000 persons"),
    Operation("reachable", "reachable in 1..4"),
    Operation("triangles", "triangle count"),
    Operation("without_job", "persons without WorksAt"),
    Operation("edges_by_city", "edges grouped by city"),
    Operation("age_by_city", "avg neighbour age by city"),
    Operation("vector_exact", "vector top 10, exact"),
    Operation("vector_index", "vector top 10, index"),
    Operation("vector_hop_2", "vector top 10 in a 2-hop neighbourhood"),
    Operation("bm25_top", "BM25 top 10"),
    Operation("hybrid_top", "hybrid RRF top 10"),
    Operation("nothing", "a query that finds nothing: the overhead"),
)
