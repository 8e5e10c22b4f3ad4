"""What the tests of a run cost: tables of folders and tiers at its end.

CPU-seconds are those of the process that runs a test and of the processes it started and waited
for, forked ones too. Services that the tests of a worker share end after its last test and have a
line of their own. Only the total of the run has the seconds of collection.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.warm import WarmProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

_CPU: Final = "cpu_seconds"
_SERVICES: Final = "services"
_TIER: Final = "tier"
_LINE: Final = "{:<28} {:>7} {:>9} {:>9}"
_COSTLIEST: Final = 25
"""Tests that are named, those with the most CPU-seconds."""


@dataclass(slots=True)
class Cost:
    nodeid: str
    wall: float = 0.0
    cpu: float = 0.0
    tier: str = ""

    @property
    def folder(self) -> str:
        """Two levels below `tests`, where a folder has that many."""
        return "/".join(self.nodeid.partition("::")[0].split("/")[:-1][:3])


def tier_of(item: pytest.Item) -> str:
    """The smallest tier that has a test."""
    if item.get_closest_marker("long") is not None:
        return "long"
    return "quick" if item.get_closest_marker("quick") is not None else "usual"


class CostReport:
    """A plugin: every process measures its tests, the controlling one adds up and prints."""

    def __init__(self) -> None:
        self._costs: dict[str, Cost] = {}
        self._started = time.monotonic()
        self._cpu_before = 0.0
        self._cpu_before_services: float | None = None
        self._services = 0.0

    def pytest_runtest_logstart(self) -> None:
        self._cpu_before = _cpu_seconds()
        self._cpu_before_services = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> None:
        if nextitem is None:
            self._cpu_before_services = _cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        if call.when == "teardown":
            now = _cpu_seconds()
            ended = now if self._cpu_before_services is None else self._cpu_before_services
            item.user_properties.append((_CPU, ended - self._cpu_before))
            item.user_properties.append((_SERVICES, now - ended))
            item.user_properties.append((_TIER, tier_of(item)))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cost = self._costs.setdefault(report.nodeid, Cost(report.nodeid))
        cost.wall += report.duration
        if report.when == "teardown":
            found = dict(report.user_properties)
            cost.cpu, cost.tier = float(str(found[_CPU])), str(found[_TIER])
            self._services += float(str(found[_SERVICES]))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._costs:
            return
        write = terminalreporter.write_line
        terminalreporter.section("costs")
        for title, key in (("folder", lambda cost: cost.folder), ("tier", lambda cost: cost.tier)):
            write(_LINE.format(title, "tests", "CPU s", "wall s"))
            for name, costs in sorted(_grouped(self._costs.values(), key).items()):
                write(_line(name, costs))
        write(_LINE.format(_SERVICES, "", f"{self._services:.0f}", ""))
        wall = time.monotonic() - self._started
        write(_LINE.format("whole run", len(self._costs), f"{_cpu_seconds():.0f}", f"{wall:.0f}"))
        terminalreporter.section("most CPU seconds")
        costliest = sorted(self._costs.values(), key=lambda cost: cost.cpu, reverse=True)
        for cost in costliest[:_COSTLIEST]:
            write(f"{cost.cpu:6.1f} {cost.nodeid}")


def _grouped(costs: Iterable[Cost], key: Callable[[Cost], str]) -> dict[str, list[Cost]]:
    found: defaultdict[str, list[Cost]] = defaultdict(list)
    for cost in costs:
        found[key(cost)].append(cost)
    return found


def _line(name: str, costs: list[Cost]) -> str:
    cpu, wall = sum(cost.cpu for cost in costs), sum(cost.wall for cost in costs)
    return _LINE.format(name, len(costs), f"{cpu:.0f}", f"{wall:.0f}")


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for, or has had forked. Whoever forks them is
    waited for at the end: nothing counts twice.
    """
    return sum(os.times()[:4]) + WarmProcess.cpu_seconds
