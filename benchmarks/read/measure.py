"""Times of every engine for one operation, taken in turns; first its answers are compared.

A busy moment of the machine hits all engines, so only times of one run are compared.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.read.operations import LEAST_FLOOR, OF_FLOOR, PER_QUERY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.read.answers import Judge
    from benchmarks.read.data import Case
    from benchmarks.read.operations import Operation
    from benchmarks.read.worker import Worker

_MORE_CHANCES: Final = 2
_SLOW: Final = 2_000.0
"""Milliseconds from which an engine is asked only once more."""
_PER_TURN: Final = 25.0
_MOST_PER_TURN: Final = 16


class WrongAnswer(Exception):
    """Engines differ: their times mean nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """Median milliseconds by engine."""

    operation: Operation
    ms: dict[str, float]

    @property
    def ours(self) -> float:
        return self.ms["ours"]

    @property
    def floor(self) -> float | None:
        return self.ms.get("floor")

    @property
    def best_peer(self) -> tuple[str, float] | None:
        peers = {name: ms for name, ms in self.ms.items() if name not in ("ours", "floor")}
        if not peers:
            return None
        name = min(peers, key=peers.__getitem__)
        return name, peers[name]

    @property
    def target(self) -> float:
        """Milliseconds ours may take, by the best peer and by a floor that means something."""
        limits = [PER_QUERY] if self.operation.name == "nothing" else []
        if self.best_peer is not None:
            limits.append(self.operation.of_peer * self.best_peer[1])
        if self.floor is not None and self.floor > LEAST_FLOOR:
            limits.append(OF_FLOOR * self.floor)
        return min(limits, default=math.inf)

    @property
    def is_missed(self) -> bool:
        return self.ours > self.target


def measure(
    operation: Operation,
    workers: Sequence[Worker],
    judge: Judge,
    cases: Sequence[Case],
    rounds: int,
) -> Row:
    """Raises WrongAnswer if any engine's answer is not the right one."""
    able = [worker for worker in workers if operation.name in worker.operations]
    expected = {worker.name: _checked(operation, worker, judge, cases) for worker in able}
    for _ in range(_MORE_CHANCES):
        row = _measured(operation, able, expected, rounds)
        if not row.is_missed:
            return row
    return _measured(operation, able, expected, rounds)


def _checked(operation: Operation, worker: Worker, judge: Judge, cases: Sequence[Case]) -> float:
    """Compare answers; about how many milliseconds one takes."""
    times = []
    for number, case in enumerate(cases):
        answer = worker.answer(operation.name, number)
        problem = judge.problem(operation.name, case, answer.rows)
        if problem:
            raise WrongAnswer(f"{operation.title}, {worker.name}, case {number}: {problem}")
        times.append(answer.ms)
        if answer.ms > _SLOW:
            break
    return min(times)


def _measured(
    operation: Operation, workers: Sequence[Worker], expected: dict[str, float], rounds: int
) -> Row:
    times: dict[str, list[float]] = {worker.name: [] for worker in workers}
    for number in range(rounds):
        for worker in workers if number % 2 else reversed(workers):
            if expected[worker.name] > _SLOW and number:
                continue
            count = int(min(max(_PER_TURN / expected[worker.name], 1), _MOST_PER_TURN))
            times[worker.name] += worker.times(operation.name, count)
    return Row(operation, {name: statistics.median(taken) for name, taken in times.items()})
