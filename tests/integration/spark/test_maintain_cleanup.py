"""Cleanup by executors: the report and the files of one process, whatever becomes of tasks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.cleanup import cleanup
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.optimize import optimize
from omnigraph_core.errors import StorageError
from omnigraph_core.history.retention import retention
from omnigraph_core.settings import PUBLISH_LEASE
from omnigraph_core.spark.maintain.workers import Executors
from omnigraph_core.spark.runner import InProcessRunner
from tests.integration.spark.conftest import ON_CLUSTERS, ON_THIS_MACHINE
from tests.support import spark_jobs
from tests.support.ageing import GRACE, clean_up, grow_old
from tests.support.damage import damages
from tests.support.spark import DoingTwice
from tests.support.upkeep_worlds import SCHEMA, docs, grown_graph, rows, twin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.spark.runner import Runner
    from tests.integration.spark.conftest import Mortal
    from tests.support.spark import Driver

PORTION = 7
MEMO = "node Memo { text: String }"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Old versions on two branches, one of them deleted, a tag, files that nobody names, and a
    type that is gone with its table."""
    root = tmp_path_factory.mktemp("worn") / "graph"
    og = grown_graph(root, docs_count=600, loads=3)
    og.tag_create("v1")
    og.optimize()
    og.branch_create("side")
    og.load(docs(9_000, 9_040), type="Doc", branch="side")
    og.branch_create("gone", source="side")
    og.load(docs(9_040, 9_050), type="Doc", branch="gone")
    og.branch_delete("gone")
    og.schema_apply(SCHEMA + MEMO)
    og.load(b'{"type": "Memo", "data": {"text": "first"}}', mode="append")
    og.schema_apply(SCHEMA)
    (root / "nodes" / "stray" / "data").mkdir(parents=True)
    (root / "nodes" / "stray" / "data" / "1.lance").write_bytes(b"nobody's")
    return root


def clean_by(og: Omnigraph, runner: Runner, *, is_preview: bool = False) -> dict[str, object]:
    grow_old()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PUBLISH_LEASE.name, str(GRACE.total_seconds() / 2))
        policy = retention(1, None, GRACE)
    workers = Executors(runner, portion_files=PORTION)
    return cleanup(og._context, policy, is_preview=is_preview, workers=workers).to_json()


def clean_there(runner: Runner, address: str, is_preview: bool) -> dict[str, object]:
    return clean_by(Omnigraph.open(address), runner, is_preview=is_preview)


def files(og: Omnigraph) -> set[str]:
    root = Path(og.uri)
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    return {path for path in found if not path.startswith("_graph_")}


@ON_THIS_MACHINE
def test_cleanup(driver: Driver, original: Path, tmp_path: Path) -> None:
    here, there = twin(original, tmp_path / "here"), twin(original, tmp_path / "there")
    before, found = files(there), rows(there)
    expected = clean_up(here, keep=1, is_preview=True).to_json()
    assert driver.call(clean_there, there.uri, True) == expected
    assert files(there) == before, "a preview removes nothing, and leaves nothing"
    expected = clean_up(here, keep=1).to_json()
    assert driver.call(clean_there, there.uri, False) == expected
    assert files(there) == files(here) < before
    assert rows(there) == found
    assert damages(there) == []
    assert damages(here) == []


def test_tasks_may_be_done_twice(original: Path, tmp_path: Path) -> None:
    here, there = twin(original, tmp_path / "here"), twin(original, tmp_path / "there")
    assert clean_by(there, DoingTwice()) == clean_up(here, keep=1).to_json()
    assert files(there) == files(here)
    assert damages(there) == []


class Remembering(InProcessRunner):
    """Knows which files, by location and path, its tasks have removed."""

    def __init__(self) -> None:
        self.removed: set[tuple[str, str]] = set()

    def map(self, work: Any, tasks: Sequence[Any], *, name: str, on_done: Any = None) -> list[Any]:
        if name == "sweep files":
            job = work.args[0]
            self.removed = {(at, path) for at, portion in tasks for path in job.files(portion)[0]}
        return super().map(work, tasks, name=name, on_done=on_done)


def test_an_attempt_that_ends_much_later(original: Path, tmp_path: Path) -> None:
    """A table that was made anew at the same place has none of the names it removes."""
    og, runner = twin(original, tmp_path / "graph"), Remembering()
    clean_by(og, runner)
    og.schema_apply(SCHEMA + MEMO, branch="side")
    memo = og.snapshot("side").table("node:Memo").location
    assert memo in {location for location, _ in runner.removed}, "it is the same place"
    assert not [path for path in runner.removed if Path(og.uri, *path).exists()]
    assert damages(og) == []


def test_a_version_that_cannot_be_read_stops_it_before_anything_is_removed(
    original: Path, tmp_path: Path
) -> None:
    og = twin(original, tmp_path / "graph")
    entry = og.snapshot().table("edge:Cites")
    manifest = tmp_path / "graph" / entry.location / f"_versions/d{entry.physical_version}.manifest"
    manifest.unlink()
    before = files(og)
    with pytest.raises(StorageError):
        clean_by(og, InProcessRunner())
    assert {path for path in before - files(og) if not path.startswith("_refs/")} == set()


def fail_at_first(directory: str, name: str, work: Any, task: Any) -> Any:
    """Do a task; the first of a job that has a directory is lost with its executor when it is
    done, and the first of another job finds the store away for a moment."""
    if name == "mark files" and spark_jobs.leave_a_file(directory, "away-") == 0:
        raise StorageError("the store is away for a moment", retryable=True)
    done = work(task)
    if Path(directory, name).exists():
        spark_jobs.lose_its_executor(str(Path(directory, name)))
    return done


class Failing:
    """A runner whose tasks fail at first."""

    def __init__(self, runner: Runner, directory: str) -> None:
        self._runner, self._directory = runner, directory

    def map(self, work: Any, tasks: Sequence[Any], *, name: str, on_done: Any = None) -> list[Any]:
        failing = partial(fail_at_first, self._directory, name, work)
        return self._runner.map(failing, tasks, name=name, on_done=on_done)


def maintain_failing(runner: Runner, address: str, directory: str) -> list[Any]:
    og = Omnigraph.open(address)
    failing: Any = Failing(runner, directory)
    workers = Executors(failing, 400)
    done = optimize(og._context, "main", actor="ada", workers=workers)
    return [[item.to_json() for item in done], clean_by(og, failing)]


@pytest.mark.long("an executor is killed under a load, and one between the halves of an exchange")
@ON_CLUSTERS
def test_executors_that_are_killed_cost_time_alone(mortal: Mortal, tmp_path: Path) -> None:
    """Under compaction, under the making of indexes, and under cleanup when files are gone."""
    grown_graph(tmp_path / "original", docs_count=600, loads=3)
    here = twin(tmp_path / "original", tmp_path / "here")
    there = twin(tmp_path / "original", tmp_path / "there")
    before, marks = rows(there), tmp_path / "marks"
    deadly = [marks / name for name in ("compact", "index", "sweep files")]
    for directory in deadly:
        directory.mkdir(parents=True)
    done, report = mortal.driver.call(maintain_failing, there.uri, str(marks))
    assert done == [item.to_json() for item in here.optimize()]
    assert all(len(list(directory.glob("lost-*"))) > 1 for directory in deadly)
    assert len(list(marks.glob("away-*"))) > 2, "a task was tried again"
    assert report["branches"] == clean_up(here, keep=1).to_json()["branches"]
    assert [commit.operation for commit in there.list_commits()].count("optimize") == 1
    assert rows(there) == before
    assert clean_up(there, keep=1).bytes_removed == 0, "nothing is left to sweep"
    assert damages(there) == []
