"""What goes wrong on a live platform: real run workers, a real daemon, and processes that die.

The graph shows the old or the new, Dagster tells what is so, the next look of a sensor mends it,
and nothing is loaded twice.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_assets.loads.run_records import staged_runs
from omnigraph_core.history.runs import RunStatus
from tests.support.faulty_platform import RUNS_AT_ONCE, WIDER, FaultyPlatform, people
from tests.support.live_platform import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = [
    pytest.mark.long("test_load and test_sensors show each decision; the live platform runs them"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
    # Dagster's own, as it begins a backfill.
    pytest.mark.filterwarnings("ignore:Function `AssetSelection.sources`:DeprecationWarning"),
]

NAMES = ["ann", "bob", "cid"]
KILLED: Final[Mapping[str, Mapping[str, Any]]] = {
    # The run of the graph has begun, and nothing is read. Dagster repeats the load.
    "planned": {"killed_after": "plan"},
    # Rows are written that no version names. The sensor plans the file again.
    "read": {"killed_after": "read", "is_repeated": False},
    # The first type is being staged: none of its rows can be seen. Dagster repeats the load.
    "staging": {"points": {"stage.after_files": "crash"}},
    # All types are staged, and not audited.
    "edges": {"killed_after": "stage_edge"},
    # All is audited, and the step is not over: the guard publishes it.
    "audited": {"killed_after": "audit", "is_repeated": False},
    # It is about to be published: the guard does it.
    "staged": {"points": {"publish.before_image": "crash"}, "is_repeated": False},
    # The rows can be seen; that they were published is not recorded yet. The guard records it.
    "committing": {"points": {"run.after_merge": "crash"}, "is_repeated": False},
    # It is recorded, and Dagster was not told. The guard tells it.
    "telling": {"points": {"run.after_end": "crash"}, "is_repeated": False},
}
"""Branches, and where the run that loads each of them is killed: once in every step."""
BOTH = ["left", "right"]


@dataclass(frozen=True, slots=True)
class Begun:
    """What was launched at once, for more runs than the platform has places for."""

    platform: FaultyPlatform
    killed: dict[str, str]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    """A platform, and work for it: most of these tests wait, and so they wait together."""
    platform = FaultyPlatform(tmp_path_factory.mktemp("faulty"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in platform.environment.items():
            patch.setenv(name, value)
        with platform:
            yield Begun(platform, _begin(platform))


def _begin(faulty: FaultyPlatform) -> dict[str, str]:
    killed = {}
    for branch, how in KILLED.items():
        faulty.branch(branch)
        faulty.drop_people(branch, *NAMES)
        killed[branch] = faulty.launch(branch, **how)
    faulty.branch("mixed")
    faulty.drop_people("mixed", *NAMES)
    faulty.drop("mixed", "bad.jsonl", *people("eve"), '{"type": "Person", "data": {"na')
    faulty.drop_people("mixed", "dan")
    return killed


@pytest.fixture(scope="module")
def faulty(begun: Begun) -> FaultyPlatform:
    return begun.platform


def assert_loaded_once(faulty: FaultyPlatform, branch: str, names: list[str] = NAMES) -> None:
    """Each record is there once, by one publish, and Dagster tells of this one and no other."""
    assert faulty.names(branch) == names
    (commit,) = faulty.published(branch)
    told = faulty.told(branch)
    assert told.keys() >= {"nodes/Person", "edges/Knows", "manifest"}
    assert set().union(*told.values()) == {commit}
    assert faulty.live(branch) == []


def test_a_run_worker_may_die_anywhere(begun: Begun) -> None:
    faulty, killed = begun.platform, begun.killed
    seen: dict[str, set[tuple[str, ...]]] = {branch: set() for branch in KILLED}

    def have_all_died() -> bool:
        for branch, found in seen.items():
            found.add(tuple(faulty.names(branch)))
        return all(faulty.status(run_id) == "FAILURE" for run_id in killed.values())

    def is_mended() -> bool:
        return all(
            faulty.put_away("_loaded", branch) == {"ann.jsonl"}
            and not faulty.live(branch)
            and "manifest" in faulty.told(branch)
            for branch in KILLED
        )

    until(have_all_died, "the end of the runs")
    until(is_mended, "what was left to be mended")
    for branch, run_id in killed.items():
        assert seen[branch] <= {(), tuple(NAMES)}
        # Its fork server reports it, or run monitoring, or the guard: whoever looks first.
        reports = ("terminated by signal 9", "Detected run worker status", "Its process is gone")
        assert any(report in faulty.reason(run_id) for report in reports)
        assert_loaded_once(faulty, branch)
    left = faulty.graph.list_runs(status=RunStatus.RUNNING)
    assert [run for run in left if run.target_branch in KILLED] == []  # others may be at work
    # There were more runs than places for them: they have waited for one.
    spans = [span for branch in (*KILLED, "mixed") for span in faulty.spans(branch)]
    assert most_at_once(spans) == RUNS_AT_ONCE


def test_a_malformed_file_does_not_hold_up_the_good_ones(faulty: FaultyPlatform) -> None:
    branch = "mixed"
    until(
        lambda: (
            faulty.put_away("_loaded", branch) == {"ann.jsonl", "dan.jsonl"}
            and not faulty.live(branch)
        ),
        "the good files",
    )
    assert faulty.put_away("_quarantine", branch) == {"bad.jsonl", "bad.jsonl.reason.json"}
    reason = faulty.places.drops / "_quarantine" / branch / "bad.jsonl.reason.json"
    assert "bad.jsonl:2" in reason.read_text()
    assert_loaded_once(faulty, branch, ["ann", "bob", "cid", "dan"])
    (good, bad) = faulty.runs(branch)
    assert (good.status.value, bad.status.value) == ("SUCCESS", "FAILURE")
    assert faulty.failed_checks(bad.run_id) == {"people/manifest:staged_records"}


def test_two_launches_and_a_backfill_follow_one_another(faulty: FaultyPlatform) -> None:
    for branch in BOTH:
        faulty.branch(branch)
        faulty.drop_people(branch, *NAMES)
    faulty.launch("left")
    faulty.launch("left")
    faulty.backfill(BOTH)
    until(lambda: len(faulty.runs("left")) >= 3 and faulty.runs("right"), "the backfill")
    until(lambda: not faulty.live(*BOTH), "the end of all runs")
    until(
        lambda: all(faulty.put_away("_loaded", name) == {"ann.jsonl"} for name in BOTH),
        "the files to be put away",
    )
    for branch in BOTH:
        assert {run.status.value for run in faulty.runs(branch)} == {"SUCCESS"}
        assert_loaded_once(faulty, branch)
    assert most_at_once(faulty.spans("left")) == 1


def most_at_once(spans: list[tuple[float, float]]) -> int:
    return max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)


def test_runs_wait_for_the_daemon_and_for_branches_that_are_gone_they_fail(
    faulty: FaultyPlatform, tmp_path: Path
) -> None:
    carried, waiting, doomed = (faulty.branch(name) for name in ("carried", "waiting", "doomed"))
    faulty.drop_people(carried, *NAMES)
    started = faulty.launch(carried, held_after=("stage_node", tmp_path))
    until((tmp_path / "held").exists, "a load that has staged its nodes", tell=faulty.said)
    faulty.kill("daemon")
    (tmp_path / "released").touch()
    for branch in (waiting, doomed):
        faulty.drop_people(branch, *NAMES)
    queued, lost = faulty.launch(waiting), faulty.launch(doomed)
    faulty.graph.branch_delete(doomed)
    until(lambda: faulty.status(started) == "SUCCESS", "a run that needs no daemon")
    assert faulty.names(carried) == NAMES
    assert (faulty.status(queued), faulty.status(lost)) == ("QUEUED", "QUEUED")
    faulty.start("daemon")
    until(lambda: not faulty.live(waiting, doomed), "the end of the runs")
    assert (faulty.status(queued), faulty.status(lost)) == ("SUCCESS", "FAILURE")
    assert "no branch `doomed`" in faulty.problem(lost)
    until(lambda: doomed not in faulty.partitions(), "the partition of a deleted branch to go")
    until(
        lambda: faulty.put_away("_loaded", carried) and faulty.put_away("_loaded", waiting),
        "the files to be put away",
    )
    assert_loaded_once(faulty, carried)
    assert_loaded_once(faulty, waiting)
    # Its file stays, for a branch of that name that may come.
    assert (faulty.places.drops / doomed / "ann.jsonl").exists()
    assert faulty.told(doomed) == {}


def test_the_code_server_may_die_under_a_load(faulty: FaultyPlatform, tmp_path: Path) -> None:
    """The run goes on without it; what is dropped meanwhile waits until there is one again."""
    carried, dropped = faulty.branch("uncoded"), faulty.branch("recoded")
    faulty.drop_people(carried, *NAMES)
    run_id = faulty.launch(carried, held_after=("stage_node", tmp_path))
    until((tmp_path / "held").exists, "a load that has staged its nodes", tell=faulty.said)
    faulty.kill("code-server")
    faulty.drop_people(dropped, *NAMES)
    assert faulty.names(carried) == []
    (tmp_path / "released").touch()
    until(lambda: faulty.status(run_id) == "SUCCESS", "a run that needs no code server")
    assert_loaded_once(faulty, carried)
    assert (faulty.names(dropped), faulty.runs(dropped)) == ([], [])
    faulty.start("code-server")
    until(
        lambda: faulty.put_away("_loaded", dropped) and not faulty.live(carried, dropped),
        "the file that waited",
        tell=faulty.said,
    )
    assert_loaded_once(faulty, carried)
    assert_loaded_once(faulty, dropped)
    assert [run.status.value for run in faulty.runs(dropped)] == ["SUCCESS"]


def test_a_schema_that_changes_under_a_load(faulty: FaultyPlatform) -> None:
    faulty.drop_people("main", *NAMES)
    run_id = faulty.launch("main", points={"stage.before_files": "sleep(3000)*1"})
    until(lambda: faulty.graph.list_runs(target_branch="main"), "the load to be planned")
    faulty.graph.schema_apply(WIDER)
    until(lambda: not faulty.live("main"), "the end of the run")
    assert faulty.status(run_id) == "FAILURE"
    assert "planned under the schema" in faulty.problem(run_id)
    assert faulty.names("main") == []
    until(faulty.has_refreshed, "the definitions of the new schema")
    faulty.reload()
    until(lambda: faulty.put_away("_loaded", "main"), "the file to be loaded")
    until(lambda: not faulty.live("main"), "the end of the run")
    assert faulty.names("main") == NAMES
    (commit,) = faulty.published("main")
    assert commit in faulty.told("main")["nodes/Person"]
    assert [run.status.value for run in faulty.runs("main")] == ["SUCCESS", "FAILURE"]


def test_the_fork_server_may_die_with_its_runs_and_spark_under_one(faulty: FaultyPlatform) -> None:
    until(lambda: not faulty.live(*faulty.partitions()), "the end of all runs")
    orphaned, sparked = faulty.branch("orphaned"), faulty.branch("sparked")
    added = ["flo", "gus", "hal"]
    loaded = sorted({*faulty.names("main"), *added})
    faulty.drop_people(orphaned, *added)
    lost = faulty.launch(
        orphaned, points={"publish.before_image": "sleep(600000)"}, is_repeated=False
    )
    until(lambda: staged_runs(faulty.graph), "the load to be staged")
    faulty.kill("fork-server")
    faulty.start(
        "fork-server", OMNIGRAPH_PLATFORM_ENGINE="spark", OMNIGRAPH_SPARK_MASTER="local[1]"
    )
    faulty.drop_people(sparked, *added)
    run_id = faulty.launch(sparked)
    until(faulty.spark_at_work, "a job of Spark")
    java = faulty.spark_at_work()
    assert java is not None
    os.kill(java, signal.SIGKILL)
    until(
        lambda: faulty.put_away("_loaded", orphaned) and faulty.put_away("_loaded", sparked),
        "the files to be put away",
    )
    until(lambda: not faulty.live(orphaned, sparked), "the end of the runs")
    assert faulty.status(lost) == "FAILURE"
    # Found out by the sensor, or by Dagster's run monitoring if that looks first.
    assert re.search("Its process is gone|process [0-9]+ is gone", faulty.reason(lost))
    assert faulty.status(run_id) == "SUCCESS"
    assert "Spark could not run" in faulty.retried(run_id)
    assert_loaded_once(faulty, orphaned, loaded)
    assert_loaded_once(faulty, sparked, loaded)
