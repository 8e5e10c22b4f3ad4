"""Cleanup, ended at every point: what is kept is whole, and the next one finishes the work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine import upkeep
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import SnapshotNotFound, StorageError
from omnigraph_core.failpoints import Failpoint, arm
from omnigraph_core.spark.maintain.workers import Executors
from omnigraph_core.spark.runner import InProcessRunner
from tests.faults.crashes import crash_at
from tests.faults.states import Contents, check_actors, state_of
from tests.faults.writes import records

if TYPE_CHECKING:
    from tests.faults.conftest import Copies

POINTS = (
    "log.before_append",
    "log.after_append",
    "cleanup.after_intent",
    "sweep.after_some",
    "cleanup.after_trim",
    "cleanup.after_table",
)
LEASE = 0.001
"""With a grace of twice this, everything a prepared graph holds is old enough to be swept."""


def clean(address: str) -> None:
    """Also in a process of its own, which a failpoint may end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_PUBLISH_LEASE", str(LEASE))
        Omnigraph.open(address).cleanup(keep=2, grace=timedelta(seconds=2 * LEASE))


def clean_by_tasks(address: str) -> None:
    """The same as executors do it, whose driver may be killed."""
    with pytest.MonkeyPatch.context() as patch:
        workers = Executors(InProcessRunner(), portion_files=3)
        patch.setattr(upkeep, "workers_for", lambda *_: workers)
        clean(address)


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What a cleanup that nothing disturbs comes from and leads to; users see no difference."""

    before: dict[tuple[str, int], Any]
    after: dict[tuple[str, int], Any]
    files: set[str]
    state: dict[str, Any]


@pytest.fixture(scope="module")
def undisturbed(copies: Copies) -> Undisturbed:
    untouched, cleaned = copies.of("worn"), copies.of("worn")
    clean(cleaned)
    done = Undisturbed(
        versions_of(untouched), versions_of(cleaned), files_of(cleaned), state_of(cleaned)
    )
    assert done.after.keys() < done.before.keys(), "there was something to remove"
    assert done.files < files_of(untouched)
    assert done.state == state_of(untouched)
    return done


def test_the_points_it_passes(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    address = copies.of("worn")
    passed: set[str] = set()
    monkeypatch.setattr(Failpoint, "hit", lambda point: passed.add(point.name))
    clean(address)
    assert passed == set(POINTS)


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_process(point: str, copies: Copies, undisturbed: Undisturbed) -> None:
    address = copies.of("worn")
    crash_at(point, clean, address)
    check_nothing_kept_is_harmed(address, undisturbed)


@pytest.mark.parametrize("point", ["cleanup.after_trim", "cleanup.after_table"])
def test_a_killed_driver_of_tasks(point: str, copies: Copies, undisturbed: Undisturbed) -> None:
    address = copies.of("worn")
    crash_at(point, clean_by_tasks, address)
    assert list(Path(address, "_scratch").glob("*/*")), "what tasks left for each other"
    check_nothing_kept_is_harmed(address, undisturbed)
    assert not list(Path(address, "_scratch").glob("*/*"))


@pytest.mark.long("a kill at the same points shows what is left")
@pytest.mark.parametrize("point", POINTS)
def test_an_error(point: str, copies: Copies, undisturbed: Undisturbed) -> None:
    address = copies.of("worn")
    with arm(point, "error"), pytest.raises(StorageError, match=point):
        clean(address)
    check_nothing_kept_is_harmed(address, undisturbed)


def check_nothing_kept_is_harmed(address: str, undisturbed: Undisturbed) -> None:
    versions = versions_of(address)
    assert versions.items() <= undisturbed.before.items(), "a version that is there is whole"
    assert undisturbed.after.items() <= versions.items(), "and what is to be kept is there"
    assert state_of(address) == undisturbed.state
    clean(address)
    assert files_of(address) == undisturbed.files
    assert state_of(address) == undisturbed.state
    Omnigraph.open(address).load(records(["afterwards"]), actor="tester")
    Omnigraph.open(address).list_commits()
    check_actors(address)
    Omnigraph.open(address).verify(is_deep=True).require_sound()


def versions_of(address: str) -> dict[tuple[str, int], Any]:
    """The rows of every version of every branch that can be opened."""
    og = Omnigraph.open(address)
    contents = Contents(og)
    found = {}
    for branch in og.branch_list():
        for version in range(1, og.snapshot(branch).manifest_version + 1):
            try:
                snapshot = og.snapshot_at_version(version, branch=branch)
            except SnapshotNotFound:
                continue
            found[branch, version] = contents.of(snapshot)
    return found


def files_of(address: str) -> set[str]:
    """Files of tables and catalogs; the commit log and old announcements are not swept."""
    root = Path(address)
    every = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    swept = ("nodes/", "edges/", "__manifest/", "_refs/manifests/", "_refs/deleted/")
    return {path for path in every if path.startswith(swept)}
