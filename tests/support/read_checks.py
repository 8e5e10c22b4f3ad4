"""The engine beside the oracle: one query, the graph and a way, and what is wrong with the answer."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph_core.diagnostics import Source
from omnigraph_core.errors import CompileError
from omnigraph_core.query.check import check_query
from omnigraph_core.query.parse import parse_queries
from tests.support.oracle_search import answer
from tests.support.read_queries import random_read
from tests.support.read_worlds import NOW, catalog, shown_contents
from tests.support.result_halves import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    import pyarrow as pa

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.query.checked import CheckedQuery
    from omnigraph_core.topology.memory import ByteCache
    from tests.support.oracle_search import Answer
    from tests.support.read_queries import Sample
    from tests.support.read_ways import Way
    from tests.support.read_worlds import State

Rows = list[dict[str, Any]]


def random_question(rng: Random, state: State) -> tuple[Sample, Answer] | None:
    """A query and its answer, preferably one with rows; None if the checker refuses the query."""
    for _ in range(3):
        sample = random_read(rng, state.contents)
        wanted = expected(sample, state)
        if wanted is None:
            return None
        if wanted.rows or rng.random() < 0.2:
            break
    return sample, wanted


def try_check(sample: Sample) -> CheckedQuery | None:
    """The query as the checker has it; None if it refuses it."""
    text = sample.text
    try:
        return check_query(parse_queries(text).queries[0], catalog(), Source(text, "<random>"))
    except CompileError:
        return None


def expected(sample: Sample, state: State) -> Answer | None:
    """What must be found; None if the checker refuses the query."""
    checked = try_check(sample)
    return None if checked is None else answer(checked, state.contents, sample.params, NOW)


@dataclass(frozen=True)
class Reader:
    """One way of asking one graph."""

    graph: Omnigraph
    way: Way
    cache: ByteCache

    def problem(self, sample: Sample, state: State, wanted: Answer) -> str | None:
        """What is wrong with the engine's answer, in words; None if nothing is."""
        with self.way.taken(self.cache):
            try:
                table = self.graph.query(state.target, sample.text, "q", sample.given).to_arrow()
            except Exception as error:  # noqa: BLE001 - whatever it is, the query must be shown
                return f"{type(error).__name__}: {error}"
        return _misplaced_null(table) or difference(shown(table), wanted)


def _misplaced_null(table: pa.Table) -> str | None:
    for field, column in zip(table.schema, table.columns, strict=True):
        if column.null_count and not field.nullable:
            return f"column {field.name} is declared to be never null, and is"
    return None


def difference(found: Rows, wanted: Answer) -> str | None:
    """What tells an answer from the one wanted; without an order, any rows of the right number."""
    if wanted.is_ordered:
        is_same = len(found) == len(wanted.rows) and all(map(is_equal, found, wanted.rows))
        return None if is_same else _both(found, wanted.rows)
    if len(found) != len(wanted.rows):
        return _both(found, wanted.rows)
    extra = _without(found, wanted.everything)
    return f"rows that should not be there: {extra}\n{_both(found, wanted.rows)}" if extra else None


def _both(found: Sequence[object], wanted: Sequence[object]) -> str:
    texts = [
        "\n".join(f"  {row}" for row in rows[:20]) + ("\n  ..." if len(rows) > 20 else "")
        for rows in (found, wanted)
    ]
    return f"found {len(found)}:\n{texts[0]}\nwanted {len(wanted)}:\n{texts[1]}"


def _without(found: Rows, everything: Rows) -> Rows:
    """The rows that are not among the others, as often as they occur."""
    waiting = Counter(map(_key, everything))
    extra: Rows = []
    for row in found:
        if waiting[_key(row)]:
            waiting[_key(row)] -= 1
        else:
            extra.append(row)
    if not extra:
        return []
    left = [row for row in everything if waiting[_key(row)]]  # near to a border of rounding
    return [row for row in extra if not any(is_equal(row, other) for other in left)]


def _key(value: Any) -> object:
    """A value that is the same for numbers that are all but equal."""
    if isinstance(value, dict):
        return tuple((name, _key(item)) for name, item in value.items())
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"
    return type(value).__name__, value


def is_equal(one: Any, other: Any) -> bool:
    """Equal values of one kind; fractions up to a rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(is_equal(one[name], other[name]) for name in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(is_equal, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def report(seed: int, state: State, way: Way, sample: Sample, problem: str) -> str:
    """All that is needed to see the same again."""
    return "\n".join(
        (
            f"world {seed}, {state.name}, {way.name}",
            sample.text,
            f"parameters: {sample.given}",
            problem,
            "graph:",
            shown_contents(state.contents),
        )
    )
