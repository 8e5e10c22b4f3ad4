"""The benchmark as a whole: everything is measured, printed, and held against its budgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from benchmarks.serve import data, overhead, stages
from benchmarks.serve.clients import Load, Place, drive, percentile
from benchmarks.serve.counting import Count, count
from tests.support.server import server_process, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.serve.overhead import Overhead
    from tests.support.server import ServerProcess

MOST_ADDED_MS: Final = 1.5
"""That HTTP may add to a read, median."""
MOST_SLOWER: Final = 3.0
"""Times the 99th percentile of reads alone, that reads beside writes may have."""
MOST_GROWTH: Final = 0.05
"""Of the memory in the third quarter of the time, that it may be more in the last."""
_MORE_CHANCES: Final = 2
WRITE_SHARE: Final = 0.1
WORKERS: Final = 2
_CACHE: Final = {"OMNIGRAPH_CACHE_MEMORY": "256M"}
"""So small that it is full in the first half."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    scale: data.Scale
    clients: int
    warm_seconds: float
    alone_seconds: float
    mixed_seconds: float
    requests: int
    """For each query, of one client."""
    steps: int
    """Of each client that counts."""
    is_long: bool
    """Long enough to see whether memory grows."""


FULL: Final = Plan(data.FULL, 16, 2.0, 15.0, 30.0, 500, 25, is_long=True)
QUICK: Final = Plan(data.QUICK, 16, 1.0, 2.0, 4.0, 100, 5, is_long=False)


@dataclass(frozen=True, slots=True)
class Report:
    plan: Plan
    overheads: dict[str, Overhead]
    alone: Load
    mixed: Load
    afterwards: Load
    """Reads alone once more, on a graph with all those commits."""
    counted: Count

    @property
    def slower(self) -> float:
        return percentile(self.mixed.reads, 99) / percentile(self.alone.reads, 99)


def measure(directory: Path, plan: Plan) -> Report:
    """Everything, on a graph made below a directory."""
    config = data.build(directory / "served", plan.scale)
    return Report(plan, _overheads(config, plan), *_loads(config, plan), _counted(config, plan))


def _overheads(config: Path, plan: Plan) -> dict[str, Overhead]:
    """Measured again if it is too much: noise passes, and it only ever adds."""
    for _ in range(_MORE_CHANCES):
        found = overhead.measure(config, plan.scale, requests=plan.requests)
        if not any(_is_much(one) for one in found.values()):
            return found
    return overhead.measure(config, plan.scale, requests=plan.requests)


def _is_much(found: Overhead) -> bool:
    return percentile(found.added, 50) > MOST_ADDED_MS


def _loads(config: Path, plan: Plan) -> tuple[Load, Load, Load]:
    phases = (
        (plan.alone_seconds, 0.0),
        (plan.mixed_seconds, WRITE_SHARE),
        (plan.alone_seconds, 0.0),
    )
    env = {**tokens(**{data.ACTOR: data.TOKEN}), **_CACHE}
    with server_process("--config", config, env=env) as server:
        place = _place(server)
        _drive(place, plan, 0, plan.warm_seconds, 0.0)
        first, second, third = (
            _drive(place, plan, seed, seconds, share)
            for seed, (seconds, share) in enumerate(phases, start=1)
        )
    return first, second, third


def _drive(place: Place, plan: Plan, seed: int, seconds: float, write_share: float) -> Load:
    return drive(
        place,
        plan.scale,
        clients=plan.clients,
        seconds=seconds,
        write_share=write_share,
        seed=seed,
    )


def _counted(config: Path, plan: Plan) -> Count:
    env = tokens(**{data.ACTOR: data.TOKEN})
    with server_process("--config", config, "--workers", str(WORKERS), env=env) as server:
        return count(_place(server), clients=plan.clients // 2, steps=plan.steps)


def _place(server: ServerProcess) -> Place:
    url = urlsplit(server.url)
    assert url.hostname is not None
    assert url.port is not None
    return Place(url.hostname, url.port, server.process.pid)


def show(report: Report) -> None:
    _show_overheads(report.overheads)
    _show_loads(report)
    _show_count(report.counted)


def _show_overheads(overheads: dict[str, Overhead]) -> None:
    print(f"{'one client, milliseconds: p50 / p90':<44}", *(f"{name:>15}" for name in overheads))
    rows = {
        "added by the server": [found.added for found in overheads.values()],
        "  up to the headers, as it tells itself": [found.told for found in overheads.values()],
        "  with the network, as the client sees it": [
            found.outside for found in overheads.values()
        ],
        **{
            f"  {stage}": [found.stages[stage] for found in overheads.values()]
            for stage in stages.STAGES
        },
    }
    for name, columns in rows.items():
        print(f"{name:<44}", *(f"{_both(column):>15}" for column in columns))


def _both(values: list[float]) -> str:
    return f"{percentile(values, 50):.2f} / {percentile(values, 90):.2f}"


def _show_loads(report: Report) -> None:
    loads = {
        "reads alone": report.alone,
        f"{WRITE_SHARE:.0%} writes": report.mixed,
        "reads alone again": report.afterwards,
    }
    print(
        f"\n{f'{report.plan.clients} clients':<24}{'reads/s':>9}{'p50 ms':>9}{'p99 ms':>9}", end=""
    )
    print(f"{'writes/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'409':>6}{'5xx':>6}{'MB':>7}{'growth':>8}")
    for name, load in loads.items():
        print(
            f"{name:<24}{len(load.reads) / load.seconds:>9.0f}{_two(load.reads)}"
            f"{len(load.writes) / load.seconds:>10.1f}{_two(load.writes)}{load.statuses[409]:>6}"
            f"{load.failures:>6}{load.resident[-1] / 1e6:>7.0f}{load.growth:>8.1%}"
        )
    print(f"p99 of reads beside writes: {report.slower:.2f} x alone (budget {MOST_SLOWER})")


def _two(values: list[float]) -> str:
    return "".join(
        f"{percentile(values, share):>9.1f}" if values else " " * 9 for share in (50, 99)
    )


def _show_count(counted: Count) -> None:
    print(
        f"\n{counted.processes} workers: {counted.value} of {counted.wanted} steps counted, "
        f"{counted.statuses[409]} conflicts and {counted.late} late ones begun again, "
        f"{counted.failures} failures"
    )


def broken_budgets(report: Report) -> list[str]:
    return [*_broken(report)]


def _broken(report: Report) -> Iterator[str]:
    for name, found in report.overheads.items():
        if _is_much(found):
            added = percentile(found.added, 50)
            yield f"HTTP adds {added:.2f} ms to {name}, at most {MOST_ADDED_MS}"
    for load in (report.alone, report.mixed, report.afterwards):
        if load.problems:
            yield f"{len(load.problems)} requests failed: {load.problems[0]}"
    if report.slower > MOST_SLOWER:
        yield f"p99 of reads beside writes: {report.slower:.2f} x alone, at most {MOST_SLOWER}"
    if report.plan.is_long and report.mixed.growth > MOST_GROWTH:
        yield f"memory grew by {report.mixed.growth:.1%}, at most {MOST_GROWTH:.0%}"
    if report.counted.processes == 1:
        yield f"one worker of {WORKERS} did everything, so the count proves nothing"
    if not report.counted.is_exact or report.counted.failures:
        counted = report.counted
        yield f"{counted.value} of {counted.wanted} steps counted: {counted.problems}"
