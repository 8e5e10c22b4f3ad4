"""The commit log and its map of actors: real files, several processes, crashes."""

from __future__ import annotations

import dataclasses
import itertools
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest

from omnigraph_core.errors import PublishContention, StorageError
from omnigraph_core.failpoints import arm
from omnigraph_core.history import appends
from omnigraph_core.history.actors import project_actors
from omnigraph_core.history.log import COMMITS_SCHEMA, CommitLog
from omnigraph_core.manifest.layout import GRAPH_COMMIT_ACTORS, GRAPH_COMMITS
from omnigraph_core.storage.log import (
    Log,
    open_log,
    read,
)
from omnigraph_core.storage.session import Store, open_store
from tests.integration.history.growing import SCHEMA, grown, numbers_in, rows
from tests.support.processes import hear, say, spawn
from tests.unit.history.commits import make_commit

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import GraphCommit


def lineage(count: int, incarnation: str = "main", actor: str | None = None) -> list[GraphCommit]:
    return [
        make_commit(
            f"{incarnation}-{version}",
            *([f"{incarnation}-{version - 1}"] if version > 1 else []),
            version=version,
            at=1_700_000_000_000_000 + version,
            incarnation=incarnation,
            actor=actor,
        )
        for version in range(1, count + 1)
    ]


def actor_rows(store: Store) -> list[dict[str, object]]:
    log = open_log(store, GRAPH_COMMIT_ACTORS)
    return [] if log is None else read(log).to_pylist()


def test_a_graph_without_a_commit_log(local: Store) -> None:
    log = CommitLog(local)
    assert log.commits() == ()
    assert log.find("01HZ") is None
    assert log.known_version("main") == 0
    log.record([])
    assert open_log(local, GRAPH_COMMITS) is None


def test_commits_are_recorded_once(store: Store) -> None:
    log = CommitLog(store)
    main, review = lineage(5, actor="dana"), lineage(3, "01J0")
    merged = dataclasses.replace(main[4], merged_parent_commit_id="01J0-3")
    main[4] = merged
    log.record(main[:3])
    log.record([*main, main[1]])
    log.record(review)
    log.record(main)
    assert log.commits() == (*main, *review)
    assert CommitLog(store).commits() == (*main, *review)
    assert log.find("main-5") == merged
    assert log.find("main-6") is None
    assert [log.known_version(incarnation) for incarnation in ("main", "01J0", "01J1")] == [5, 3, 0]
    stored = lance.dataset(commits_uri(store), storage_options=store.options).to_table()
    assert stored.schema == COMMITS_SCHEMA
    assert stored["graph_commit_id"].to_pylist() == [c.graph_commit_id for c in log.commits()]


def test_the_dataset_has_the_documented_columns(local: Store) -> None:
    CommitLog(local).record(lineage(1))
    columns = {field.name: str(field.type) for field in lance.dataset(commits_uri(local)).schema}
    assert columns == {
        "graph_commit_id": "string",
        "manifest_branch": "string",
        "manifest_version": "uint64",
        "parent_commit_id": "string",
        "merged_parent_commit_id": "string",
        "created_at": "timestamp[us]",
        "incarnation": "string",
        "operation": "string",
        "actor_id": "string",
        "idempotency_key": "string",
        "request_digest": "string",
        "summary": "string",
    }
    assert lance.dataset(commits_uri(local)).has_stable_row_ids


def commits_uri(store: Store) -> str:
    return store.uri(GRAPH_COMMITS)


def test_what_was_read_is_kept_and_extended(local: Store) -> None:
    reader, writer = CommitLog(local), CommitLog(local)
    assert reader.commits() == ()
    commits = lineage(6)
    writer.record(commits[:2])
    assert reader.find("main-2") == commits[1]
    writer.record(commits[2:])
    assert reader.find("main-6") == commits[5]
    assert reader.commits() == tuple(commits)
    root = Path(local.root.text)
    (root / GRAPH_COMMITS).rename(root / "moved.lance")
    assert reader.find("main-1") == commits[0], "found before: no request"


def test_commits_are_found_by_key(local: Store) -> None:
    reader, writer = CommitLog(local), CommitLog(local)
    main = [make_commit(f"m{n}", version=n, key=f"k{n}") for n in range(1, 5)]
    there = make_commit("r1", version=9, incarnation="01J0", key="k1")
    assert reader.find_keyed("main", "k1", up_to=0) == (None, True)
    assert reader.find_keyed("main", "k1", up_to=1) == (None, False)
    writer.record([*main[:2], there])
    assert reader.find_keyed("main", "k1", up_to=2) == (main[0], True)
    assert reader.find_keyed("01J0", "k1", up_to=9) == (there, True)
    assert reader.find_keyed("01J0", "k2", up_to=9) == (None, True)
    writer.record(main)
    assert reader.find_keyed("main", "k4", up_to=2) == (None, True), "nothing is asked"
    assert reader.find_keyed("main", "k4", up_to=5) == (main[3], False)
    assert CommitLog(local).commits() == (*main[:2], there, *main[2:])


def test_many_commits_at_once(local: Store) -> None:
    commits = lineage(2_500, actor="dana")
    log = CommitLog(local)
    log.record(commits[:2_000])
    log.record(commits)
    assert log.commits() == tuple(commits)
    assert len(actor_rows(local)) == 2_500


def test_only_commits_with_an_actor_are_in_the_map(store: Store) -> None:
    log = CommitLog(store)
    log.record(lineage(3))
    assert open_log(store, GRAPH_COMMIT_ACTORS) is None
    named = lineage(2, "01J0", actor="dana")
    log.record([*named, *lineage(2, "01J1")])
    log.record(named)
    assert [(row["graph_commit_id"], row["actor_id"]) for row in actor_rows(store)] == [
        ("01J0-1", "dana"),
        ("01J0-2", "dana"),
    ]
    times = open_log(store, GRAPH_COMMIT_ACTORS)
    assert times is not None
    at = read(times, ["created_at"])["created_at"].cast(pa.int64()).to_pylist()
    assert at == [commit.created_at for commit in named]


def test_an_interrupted_map_is_completed_by_the_next_commit(local: Store) -> None:
    log = CommitLog(local)
    first, second = lineage(3, actor="dana"), lineage(2, "01J0", actor="kim")
    with arm("log.after_append", "error"), pytest.raises(StorageError):
        log.record(first)
    assert log.commits() == tuple(first)
    assert actor_rows(local) == []
    log.record(second)
    found = {(row["graph_commit_id"], row["actor_id"]) for row in actor_rows(local)}
    assert found == {(commit.graph_commit_id, commit.actor_id) for commit in (*first, *second)}
    log.record(first)
    assert len(actor_rows(local)) == 5


def test_an_interrupted_map_is_completed_by_recording_the_same(local: Store) -> None:
    log = CommitLog(local)
    commits = lineage(3, actor="dana")
    with arm("log.after_append", "error"), pytest.raises(StorageError):
        log.record(commits)
    log.record(commits)
    assert len(actor_rows(local)) == 3


def test_a_failure_before_the_append_leaves_nothing(local: Store) -> None:
    log = CommitLog(local)
    with arm("log.before_append", "error"), pytest.raises(StorageError):
        log.record(lineage(2))
    assert log.commits() == ()
    log.record(lineage(2))
    assert len(log.commits()) == 2


def record_once(root: str) -> None:
    """In a worker: record two commits, unless a failpoint ends it."""
    CommitLog(open_store(root)).record(lineage(2, actor="dana"))


@pytest.mark.parametrize(
    ("point", "survives"), [("log.before_append", False), ("log.after_append", True)]
)
def test_a_process_that_is_killed(local: Store, point: str, survives: bool) -> None:
    armed = {"OMNIGRAPH_FAILPOINTS": f"{point}=crash"}
    outcome = spawn(f"{__name__}:record_once", local.root.text, env=armed).wait()
    assert outcome.returncode == -signal.SIGKILL
    log = CommitLog(local)
    assert log.commits() == (tuple(lineage(2, actor="dana")) if survives else ())
    log.record(lineage(3, actor="dana"))
    assert log.commits() == tuple(lineage(3, actor="dana"))
    assert len(actor_rows(local)) == 3


def test_when_others_always_win(local: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attempt loses to a writer that slips in between reading and appending."""
    number = itertools.count(100)

    def choose(log: Log) -> tuple[pa.Table, str]:
        grown(log, next(number))
        return rows(1), "ours"

    monkeypatch.setattr(appends, "_ATTEMPTS", 3)
    with pytest.raises(PublishContention, match=r"parts\.lance"):
        appends.append_chosen(local, "parts.lance", SCHEMA, choose)
    log = open_log(local, "parts.lance")
    assert log is not None
    assert numbers_in(log) == [100, 101, 102]


def test_a_map_that_others_keep_writing_is_left_to_them(
    local: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CommitLog(local)
    with arm("log.after_append", "error"), pytest.raises(StorageError):
        log.record(lineage(2, actor="dana"))
    commits = open_log(local, GRAPH_COMMITS)
    assert commits is not None
    with monkeypatch.context() as patched:
        patched.setattr(appends, "_ATTEMPTS", 0)
        arrived = read(commits)
        project_actors(commits, GRAPH_COMMIT_ACTORS, "graph_commit_id", arrived, expected=2)
    assert actor_rows(local) == []
    log.record(lineage(2, actor="dana"))
    assert len(actor_rows(local)) == 2


def record_commits(root: str, incarnation: str, count: int) -> None:
    """In a worker: record its own branch, and main together with the others, in small steps."""
    log = CommitLog(open_store(root))
    own = lineage(count, incarnation, actor=incarnation)
    shared = lineage(count, actor="dana")
    say("ready")
    hear()
    for upto in range(4, count + 1, 4):
        log.record([*own[max(0, upto - 8) : upto], *shared[max(0, upto - 8) : upto]])


def test_processes_record_the_same_commits(local: Store) -> None:
    count, incarnations = 32, ("01J0", "01J1", "01J2")
    target = f"{__name__}:record_commits"
    workers = [spawn(target, local.root.text, name, count) for name in incarnations]
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")
    for worker in workers:
        worker.wait(timeout=300).check()
    log = CommitLog(local)
    for incarnation in ("main", *incarnations):
        own = [c.manifest_version for c in log.commits() if c.incarnation == incarnation]
        assert sorted(own) == list(range(1, count + 1))
    assert lance.dataset(commits_uri(local)).count_rows() == 4 * count
    log.record(lineage(count, actor="dana"))
    mapped = [row["graph_commit_id"] for row in actor_rows(local)]
    assert sorted(mapped) == sorted(commit.graph_commit_id for commit in log.commits())
