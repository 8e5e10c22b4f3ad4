"""The engine beside the oracle: a query, a graph and a way come in, what is wrong goes out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph_core.diagnostics import Source
from omnigraph_core.errors import CompileError, DataError
from omnigraph_core.query.check import check_query
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.values import to_json
from tests.support.oracle_search import answer
from tests.support.read_contents import NOW, catalog, shown_contents
from tests.support.read_queries import random_read
from tests.support.result_halves import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    import pyarrow as pa

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.exec.result import QueryResult
    from omnigraph_core.plan.report import PlanReport
    from omnigraph_core.query.checked import CheckedQuery
    from omnigraph_core.topology.memory import ByteCache
    from tests.support.oracle_search import Answer
    from tests.support.read_queries import Sample
    from tests.support.read_ways import Way
    from tests.support.read_worlds import State

Rows = list[dict[str, Any]]


def random_question(rng: Random, state: State) -> tuple[Sample, Answer] | None:
    """A query and its answer, preferably one with rows; None if the checker refuses the query."""
    for is_last in (False, False, True):
        sample = random_read(rng, state.contents)
        wanted = expected(sample, state)
        if wanted is None or wanted.rows or is_last or rng.random() < 0.2:
            break
    return None if wanted is None else (sample, wanted)


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
    engine: str = "local"

    def problem(self, sample: Sample, state: State, wanted: Answer) -> str | None:
        """What is wrong with the engine's answer, in words; None if nothing is."""
        try:
            with self.way.taken(self.cache):
                result = self.graph.query(
                    state.target, sample.text, "q", sample.given, engine=self.engine
                )
                other = self._other_columns(result, sample, state)
                profile = self._profile(sample, state) if self.way.is_profiled else None
        except Exception as error:  # noqa: BLE001 - whatever it is, the query must be shown
            is_refused = isinstance(error, DataError) and _has_wide_sum(wanted)
            return None if is_refused else f"{type(error).__name__}: {error}"
        if profile is not None and profile.to_json()["rows"] != len(wanted.rows):
            return f"found {len(wanted.rows)} rows with another profile:\n{profile}"
        rows = shown(result.table)
        problem = other or _misplaced_null(result.table) or difference(rows, wanted)
        return problem or _json_problem(result)

    def _other_columns(self, result: QueryResult, sample: Sample, state: State) -> str | None:
        """Whether another engine gives columns of other names or types."""
        if self.engine == "local":
            return None
        usual = self.graph.query(state.target, sample.text, "q", sample.given)
        if result.table.schema.equals(usual.table.schema) and result.columns == usual.columns:
            return None
        return f"its columns are {result.table.schema}, not {usual.table.schema}"

    def _profile(self, sample: Sample, state: State) -> PlanReport:
        explained = self.graph.explain(state.target, sample.text, "q")
        assert str(explained)
        return self.graph.profile(state.target, sample.text, "q", sample.given)


def _has_wide_sum(wanted: Answer) -> bool:
    """Whether a number is more than its column can hold; such a sum is refused."""
    cells = (cell for row in wanted.everything for cell in row.values())
    return any(isinstance(cell, int) and not -(2**63) <= cell < 2**63 for cell in cells)


def _json_problem(result: QueryResult) -> str | None:
    """Whether the same rows as JSON are others."""
    found = result.to_pylist()
    wanted = [{n: _json(v) for n, v in row.items()} for row in shown(result.table)]
    for row, other in zip(found, wanted, strict=True):
        if not is_equal(row, other, 1e-6):  # fractions of 32 bits have fewer digits
            return f"as JSON it is {row}, not {other}"
    return None


def _json(value: Any) -> object:
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    return to_json(value)


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


def is_equal(one: Any, other: Any, tolerance: float = 1e-9) -> bool:
    """Equal values of one kind; fractions up to a rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(is_equal(one[n], other[n], tolerance) for n in one)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(
            is_equal(a, b, tolerance) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-12)
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
