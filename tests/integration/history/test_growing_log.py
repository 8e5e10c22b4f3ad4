"""The append-only log: real files, several processes."""

from __future__ import annotations

import dataclasses
import itertools
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph_core.clock import Moment
from omnigraph_core.constants import MAX_LOG_FRAGMENTS
from omnigraph_core.errors import InvariantBroken, StorageError
from omnigraph_core.storage import log as logs
from omnigraph_core.storage.log import (
    create_log,
    open_log,
    read,
    read_from,
    refresh,
    trim,
    try_append,
)
from omnigraph_core.storage.session import Store, open_store
from tests.integration.history.growing import SCHEMA, grown, numbers_in, rows
from tests.support.processes import hear, say, spawn


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
