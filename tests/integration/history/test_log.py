"""The append-only log and the commit log on it: real files, several processes, crashes."""

from __future__ import annotations

import dataclasses
import itertools
import signal
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph_core.clock import Moment
from omnigraph_core.errors import InvariantBroken, PublishContention, StorageError
from omnigraph_core.failpoints import arm
from omnigraph_core.history import appends
from omnigraph_core.history.actors import project_actors
from omnigraph_core.history.log import COMMITS_SCHEMA, CommitLog
from omnigraph_core.manifest.layout import GRAPH_COMMIT_ACTORS, GRAPH_COMMITS
from omnigraph_core.settings import MAX_LOG_FRAGMENTS
from omnigraph_core.storage import log as logs
from omnigraph_core.storage.log import (
    Log,
    create_log,
    open_log,
    read,
    read_from,
    refresh,
    trim,
    try_append,
)
from omnigraph_core.storage.session import Store, open_store
from tests.support.processes import hear, say, spawn
from tests.unit.history.commits import make_commit

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import GraphCommit

SCHEMA = pa.schema([pa.field("name", pa.string(), nullable=False), pa.field("number", pa.uint64())])


@pytest.fixture
def store(graph_root: str) -> Store:
    opened = open_store(graph_root)
    opened.create_root()
    return opened


@pytest.fixture
def local(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return open_store(str(tmp_path_factory.mktemp("graph")))


def rows(*numbers: int) -> pa.Table:
    return pa.table({"name": [f"n{at}" for at in numbers], "number": numbers}, schema=SCHEMA)


def grown(log: Log, *numbers: int) -> Log:
    appended = try_append(log, rows(*numbers))
    assert appended is not None
    return appended


def numbers_in(log: Log) -> list[int]:
    return read(log, ["number"])["number"].to_pylist()


def test_a_log_grows(store: Store) -> None:
    assert open_log(store, "parts.lance") is None
    empty = create_log(store, "parts.lance", SCHEMA)
    assert (empty.version, empty.count_rows(), empty.count_fragments()) == (1, 0, 0)
    one = grown(empty, 1, 2)
    two = grown(one, 3)
    assert (two.version, two.count_rows()) == (3, 3)
    assert numbers_in(two) == [1, 2, 3]
    assert numbers_in(one) == [1, 2], "a handle never changes"
    assert read_from(two, 2) == rows(3)
    assert read_from(two, 3).num_rows == 0
    assert read(two, ["number"], where=pc.field("name") == "n2")["number"].to_pylist() == [2]
    assert two.count_rows(pc.field("name") != "n2") == 2
    opened = open_log(store, "parts.lance")
    assert opened is not None
    assert read(opened) == rows(1, 2, 3)


def test_creating_twice_opens(local: Store) -> None:
    grown(create_log(local, "parts.lance", SCHEMA), 1)
    assert numbers_in(create_log(local, "parts.lance", SCHEMA)) == [1]


def test_creating_where_nothing_can_be(local: Store) -> None:
    with pytest.raises(StorageError, match="creating failed"):
        create_log(open_store("/proc/no"), "parts.lance", SCHEMA)


def test_of_two_appends_to_one_version_one_wins(store: Store) -> None:
    base = create_log(store, "parts.lance", SCHEMA)
    won = grown(base, 1)
    assert try_append(base, rows(2)) is None
    newest = refresh(base)
    assert numbers_in(newest) == [1]
    assert numbers_in(grown(newest, 2)) == [1, 2]
    assert refresh(won).version == 3


def test_refresh_without_news_keeps_the_handle(local: Store) -> None:
    log = grown(create_log(local, "parts.lance", SCHEMA), 1)
    assert refresh(log).dataset is log.dataset


def test_rows_of_another_shape_are_refused(local: Store) -> None:
    log = create_log(local, "parts.lance", SCHEMA)
    with pytest.raises(InvariantBroken, match="schema of the log"):
        try_append(log, pa.table({"name": ["a"]}))


def test_a_handle_held_too_long_is_not_appended_to(local: Store) -> None:
    """Versions after it could have been trimmed: the append would hide their rows."""
    log = create_log(local, "parts.lance", SCHEMA)
    read_at = Moment(log.read_at.wall - 3600, log.read_at.elapsed)
    old = dataclasses.replace(log, read_at=read_at)
    assert try_append(old, rows(1)) is None
    assert numbers_in(grown(refresh(old), 1)) == [1]


def test_three_hundred_appends_stay_within_the_fragments(local: Store) -> None:
    log = create_log(local, "parts.lance", SCHEMA)
    for number in range(300):
        log = grown(log, number)
        assert log.count_fragments() <= MAX_LOG_FRAGMENTS.value
    assert numbers_in(log) == list(range(300))


def test_a_merge_keeps_order_and_row_ids(local: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_LOG_FRAGMENTS", dataclasses.replace(MAX_LOG_FRAGMENTS, value=4))
    log = create_log(local, "parts.lance", SCHEMA)
    number = itertools.count()
    for size in (1, 30, 2, 1, 1, 5, 1, 1, 1, 40, 1, 1, 1, 1, 1):
        log = grown(log, *itertools.islice(number, size))
        assert log.count_fragments() <= 4
        seen = lance.dataset(log.uri).to_table(with_row_id=True)
        assert seen["number"].to_pylist() == seen["_rowid"].to_pylist()
        assert read_from(log, log.count_rows() - size)["number"].to_pylist()[-1] == (
            log.count_rows() - 1
        )


def test_a_lost_race_does_not_merge(local: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_LOG_FRAGMENTS", dataclasses.replace(MAX_LOG_FRAGMENTS, value=2))
    full = grown(grown(create_log(local, "parts.lance", SCHEMA), 1), 2)
    newest = grown(full, 3)
    files = len(list((local_path(local) / "parts.lance/data").iterdir()))
    assert try_append(full, rows(4)) is None
    left = len(list((local_path(local) / "parts.lance/data").iterdir()))
    assert left == files + 1, "only the rows that were to be appended"
    assert numbers_in(refresh(full)) == numbers_in(newest) == [1, 2, 3]


def test_trimming_keeps_every_row(local: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_LOG_FRAGMENTS", dataclasses.replace(MAX_LOG_FRAGMENTS, value=4))
    first = grown(create_log(local, "parts.lance", SCHEMA), 0)
    log = first
    for number in range(1, 30):
        log = grown(log, number)
    versions = local_path(local) / "parts.lance/_versions"
    assert trim(first, timedelta(0)) == 0, "nothing is an hour old"
    assert len(list(versions.glob("*.manifest"))) == 31
    monkeypatch.setattr(logs, "MIN_TRIM_AGE", timedelta(0))
    assert trim(first, timedelta(0)) > 0
    assert len(list(versions.glob("*.manifest"))) == 1
    newest = open_log(local, "parts.lance")
    assert newest is not None
    assert numbers_in(newest) == list(range(30))
    assert numbers_in(grown(newest, 30)) == list(range(31))


def local_path(store: Store) -> Path:
    return Path(store.root.text)


def append_numbers(root: str, first: int, count: int) -> int:
    """In a worker: append numbers one at a time; how many races were lost."""
    store = open_store(root)
    say("ready")
    hear()
    lost = 0
    for number in range(first, first + count):
        log = open_log(store, "parts.lance") or create_log(store, "parts.lance", SCHEMA)
        while (appended := try_append(log, rows(number))) is None:
            lost += 1
            log = refresh(log)
        assert appended.count_fragments() <= MAX_LOG_FRAGMENTS.value
    return lost


def test_processes_append_to_one_log(local: Store) -> None:
    """The log is created by all of them at once, too."""
    root, each = local.root.text, 110
    target = f"{__name__}:append_numbers"
    workers = [spawn(target, root, at * 1000, each) for at in range(3)]
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")
    lost = [worker.wait(timeout=300).result() for worker in workers]
    log = open_log(local, "parts.lance")
    assert log is not None
    assert sum(lost) > 0, "they met"
    assert log.count_fragments() <= MAX_LOG_FRAGMENTS.value
    assert log.version == 1 + 3 * each
    for at in range(3):
        mine = [number for number in numbers_in(log) if number // 1000 == at]
        assert mine == list(range(at * 1000, at * 1000 + each))


def create_and_append(root: str, number: int, paths: list[str]) -> None:
    """In a worker: make every log, and append one row to the empty version it was given."""
    store = open_store(root)
    say("ready")
    hear()
    for path in paths:
        log = create_log(store, path, SCHEMA)
        while try_append(log, rows(number)) is None:
            log = refresh(log)


def test_of_several_processes_one_creates_a_log(local: Store) -> None:
    paths = [f"{at}.lance" for at in range(30)]
    target = f"{__name__}:create_and_append"
    workers = [spawn(target, local.root.text, number, paths) for number in range(2)]
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")
    for worker in workers:
        worker.wait(timeout=300).check()
    for path in paths:
        log = open_log(local, path)
        assert log is not None
        assert sorted(numbers_in(log)) == [0, 1]
        assert log.version == 3, "created once, appended to twice"


def test_a_store_that_fails_at_the_commit(local: Store) -> None:
    log = grown(create_log(local, "parts.lance", SCHEMA), 1)
    versions = local_path(local) / "parts.lance/_versions"
    versions.rename(versions.with_name("moved"))
    versions.write_text("a file where a directory is expected")
    with pytest.raises(StorageError, match="appending to a log failed"):
        try_append(log, rows(2))
    versions.unlink()
    versions.with_name("moved").rename(versions)
    assert numbers_in(refresh(log)) == [1]


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
    (local_path(local) / GRAPH_COMMITS).rename(local_path(local) / "moved.lance")
    assert reader.find("main-1") == commits[0], "found before: no request"


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
