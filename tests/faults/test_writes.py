"""Loads that something happens to: interruption, full disks, stores and sources that fail."""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, DataError, OmnigraphError, StorageError
from omnigraph_core.failpoints import Failpoint, arm
from omnigraph_core.write.progress import Step
from tests.faults.crashes import crash_at
from tests.faults.states import state_of
from tests.faults.writes import SOME, records
from tests.support.processes import say, spawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.write.progress import Progress
    from tests.faults.conftest import Copies

INGEST_POINTS = (
    "branch.after_catalog",
    "branch.after_ref",
    "stage.before_files",
    "stage.after_files",
    "stage.after_version",
    "publish.before_image",
    "image.after_files",
    "image.after_commit",
    "publish.after_image",
)
LANDED = "image.after_commit"
_LONG = pytest.mark.long("a kill at the same point shows what is left")
FULL = "free some space and try again; nothing was published"


def ingest(address: str) -> None:
    """Into a branch that is not there yet."""
    og = Omnigraph.open(address)
    og.ingest(records(["new"]), branch="review", idempotency_key="k", actor="tester")


def fork(address: str) -> None:
    Omnigraph.open(address).branch_create("review")


def test_the_points_an_ingest_passes(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    address = copies.of("written")
    passed: set[str] = set()
    monkeypatch.setattr(Failpoint, "hit", lambda point: passed.add(point.name))
    ingest(address)
    assert passed == set(INGEST_POINTS)


@pytest.mark.parametrize("point", INGEST_POINTS)
def test_a_killed_ingest(point: str, copies: Copies) -> None:
    address = copies.of("written")
    crash_at(point, ingest, address)
    check_ingest(address, point, copies)


@pytest.mark.parametrize(
    "point",
    [pytest.param(point, marks=() if point == LANDED else _LONG) for point in INGEST_POINTS],
)
def test_an_error_in_an_ingest(point: str, copies: Copies) -> None:
    address = copies.of("written")
    with arm(point, "error"):
        if point == LANDED:
            ingest(address)
        else:
            with pytest.raises(OmnigraphError, match=point):
                ingest(address)
    check_ingest(address, point, copies)


def check_ingest(address: str, point: str, copies: Copies) -> None:
    """No branch, a branch as it was forked, or one with everything; the same again completes it."""
    done: list[Callable[[str], None]] = []
    if INGEST_POINTS.index(point) >= INGEST_POINTS.index(LANDED):
        done = [ingest]
    elif point != INGEST_POINTS[0]:
        done = [fork]
    assert state_of(address) == expected(copies, *done)
    ingest(address)
    assert state_of(address) == expected(copies, ingest)
    ingest(address)
    assert state_of(address) == expected(copies, ingest)


@cache
def expected(copies: Copies, *done: Callable[[str], None]) -> dict[str, Any]:
    address = copies.of("written")
    for act in done:
        act(address)
    return state_of(address)


def load_until_interrupted(address: str, source: str, step: str) -> None:
    """Says when the load has come to the step, and is slow enough there to be interrupted."""
    is_said = False

    def on_progress(progress: Progress) -> None:
        nonlocal is_said
        if progress.step == step and not is_said:
            is_said = True
            say("there")

    og = Omnigraph.open(address)
    try:
        og.load(source, progress=on_progress, actor="tester")
    except KeyboardInterrupt:
        say("interrupted")


@pytest.mark.parametrize("step", [Step.READ, Step.STAGED])
def test_an_interrupted_load(step: Step, tmp_path: Path, copies: Copies) -> None:
    """Whoever presses Ctrl-C finds the graph as it was, and the same load works later."""
    address = copies.of("written")
    source = tmp_path / "many.jsonl"
    source.write_bytes(records([f"n{number}" for number in range(40_000)]))
    before = state_of(address)
    points = "stage.before_files=sleep(300); publish.before_image=sleep(30000)"
    with spawn(
        f"{__name__}:load_until_interrupted",
        address,
        str(source),
        str(step),
        env={"OMNIGRAPH_FAILPOINTS": points},
    ) as worker:
        assert worker.next_line() == "there"
        os.kill(worker.pid, signal.SIGINT)
        assert worker.next_line() == "interrupted"
        assert worker.wait().returncode == 0
    assert state_of(address) == before
    og = Omnigraph.open(address)
    assert og.load(source).nodes_loaded == 80_000
    assert og.snapshot().table("node:Part").row_count == 40_000 + len(SOME)


def write_to_full_disk(address: str, limit: int) -> list[list[object]]:
    """Every kind of write on a disk that is full after so many bytes of each file; then a load."""
    og = Omnigraph.open(address)
    many = records([f"{number:05d}" for number in range(1000)])
    names = "query rename($name: String) { update Part set { name: $name } where stock = 0 }"
    writes: list[Callable[[], object]] = [
        lambda: og.load(many, mode="append"),
        lambda: og.load(many),
        lambda: og.load(many, mode="overwrite"),
        lambda: og.mutate(names, {"name": "n" * 30_000}),
    ]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    told = [_told(write) for write in writes]
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return [*told, _told(lambda: og.load(many, mode="append").commit is not None)]


def _told(write: Callable[[], object]) -> list[object]:
    try:
        return ["done", write()]
    except OmnigraphError as error:
        return [type(error).__name__, error.message, error.hint, error.retryable]


@pytest.mark.parametrize("limit", [64, 4_000])
def test_a_full_disk(limit: int, copies: Copies) -> None:
    address = copies.of("written")
    *told, later = spawn(f"{__name__}:write_to_full_disk", address, limit).wait().result()
    for kind, message, hint, is_retryable in told:
        assert (kind, hint, is_retryable) == ("StorageError", FULL, False), message
        assert address in message
    assert later == ["done", True]
    og = Omnigraph.open(address)
    assert [commit.operation for commit in og.list_commits()] == ["load", "load", "init"]
    assert og.snapshot().table("node:Part").row_count == 1000 + len(SOME)


def test_a_store_that_is_gone(copies: Copies) -> None:
    """A handle outlives its graph, as on a disk that was taken out."""
    address = copies.of("written")
    og = Omnigraph.open(address)
    og.snapshot()
    Path(address).rename(f"{address} elsewhere")
    Path(address).write_text("not a directory")
    with pytest.raises(StorageError):
        og.load(records(["new"]))
    Path(address).unlink()
    Path(f"{address} elsewhere").rename(address)
    assert og.load(records(["new"])).nodes_loaded == 2


@pytest.fixture(scope="module")
def packed() -> bytes:
    """More than is read at once."""
    return gzip.compress(records([f"n{number}" for number in range(20_000)]), compresslevel=1)


@pytest.mark.parametrize("is_early", [True, False], ids=["early", "late"])
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_truncated_archive(
    mode: str, is_early: bool, packed: bytes, tmp_path: Path, copies: Copies
) -> None:
    address = copies.of("written")
    before = state_of(address)
    source = tmp_path / "many.jsonl.gz"
    source.write_bytes(packed[: 200 if is_early else -20])
    with pytest.raises(DataError) as told:
        Omnigraph.open(address).load(source, mode=mode)
    assert str(source) in told.value.message
    assert len(told.value.message.splitlines()) <= 2
    assert state_of(address) == before


def test_a_damaged_archive(packed: bytes, tmp_path: Path, copies: Copies) -> None:
    address = copies.of("written")
    before = state_of(address)
    source = tmp_path / "many.jsonl.gz"
    middle = len(packed) // 2
    source.write_bytes(packed[:middle] + b"\0" * 64 + packed[middle + 64 :])
    with pytest.raises(DataError, match=r"many\.jsonl\.gz"):
        Omnigraph.open(address).load(source)
    assert state_of(address) == before


@pytest.mark.parametrize("name", ["second.jsonl", "Part.csv", "Part.parquet"])
def test_a_source_that_vanishes(name: str, tmp_path: Path, copies: Copies) -> None:
    """It was there when the load began; the source before it is read by the time it goes."""
    address = copies.of("written")
    before = state_of(address)
    first, second = tmp_path / "first.jsonl", tmp_path / name
    first.write_bytes(records([f"n{number}" for number in range(5_000)]))
    second.write_text(json.dumps({"type": "Crate", "data": {"label": "c"}}))

    def vanish(progress: Progress) -> None:
        second.unlink(missing_ok=True)

    with pytest.raises((ConfigError, DataError), match=rf"{name}.*No such file"):
        Omnigraph.open(address).load([first, second], progress=vanish)
    assert not second.exists()
    assert state_of(address) == before
