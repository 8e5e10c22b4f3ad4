"""The serving benchmark on a tiny graph: it runs, nothing fails, and no step is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.serve import stages
from benchmarks.serve.data import READS, WRITES, Scale
from benchmarks.serve.report import Plan, broken_budgets, measure, show

if TYPE_CHECKING:
    from benchmarks.serve.report import Report

pytestmark = pytest.mark.long("tests/integration/server shows it; this runs the benchmark")
TINY = Plan(
    Scale(500, 1_000),
    clients=6,
    warm_seconds=0.1,
    alone_seconds=0.2,
    mixed_seconds=1.5,
    requests=5,
    steps=3,
    is_long=False,
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return measure(tmp_path_factory.mktemp("serving"), TINY)


def test_every_stage_of_a_read_is_told(report: Report) -> None:
    assert set(report.overheads) == set(READS)
    for found in report.overheads.values():
        assert set(found.stages) == set(stages.STAGES)
        assert {len(times) for times in found.stages.values()} == {TINY.requests}
        assert all(ms > 0 for ms in found.added)


def test_no_request_fails_beside_writes(report: Report) -> None:
    for load in (report.alone, report.mixed, report.afterwards):
        assert load.problems == []
        assert set(load.statuses) <= {200, 409}
    assert set(report.alone.statuses) == {200}
    assert any(report.mixed.latencies[name] for name in WRITES)


def test_two_workers_lose_no_step(report: Report) -> None:
    assert report.counted.wanted == TINY.clients // 2 * TINY.steps
    assert report.counted.is_exact
    assert report.counted.failures == 0


def test_the_report_tells_all_of_it(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    show(report)
    told = capsys.readouterr().out
    for expected in (*stages.STAGES, "10% writes", "x alone", "9 of 9 steps counted"):
        assert expected in told
    assert not [line for line in broken_budgets(report) if "failed" in line or "steps" in line]
