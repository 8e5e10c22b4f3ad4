"""The publisher on a real catalog: order in time, lost answers, lost races."""

from __future__ import annotations

import dataclasses
import itertools
import time
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.clock import Moment
from omnigraph_core.constants import PUBLISHER_RETRY_BUDGET, RECENT_COMMITS
from omnigraph_core.errors import (
    CommitOutcomeUnknown,
    ObjectNotFound,
    PublishContention,
    StorageError,
    VersionConflict,
)
from omnigraph_core.failpoints import arm
from omnigraph_core.manifest.catalog import (
    Catalog,
    CatalogState,
    create_main_catalog,
    load_latest,
    load_version,
)
from omnigraph_core.manifest.changes import AdoptTable
from omnigraph_core.manifest.publisher import CommitDraft, publish
from omnigraph_core.manifest.requirements import StagedWithin, TableAt
from omnigraph_core.storage import image as images
from omnigraph_core.storage.session import open_store
from tests.support.graphs import Meanwhile
from tests.unit.manifest.samples import entry, image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.manifest.requirements import PublishState, Requirement
    from omnigraph_core.storage.image import PendingImage, StoredImage
    from omnigraph_core.storage.session import Store

PART = "node:Part"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Version 1: one table."""
    found = Catalog(open_store(str(tmp_path)), "main", "main", "__manifest")
    create_main_catalog(found, image(entry(PART, table_version=1)))
    return found


def draft(
    *requirements: Requirement | Meanwhile, rows: int = 1, lease: float = 3600.0
) -> CommitDraft:
    """The next version of the table, whichever it has."""
    staged = entry(PART, physical_version=2**63 + rows, row_count=rows)
    change = AdoptTable(staged, staged_since=time.time())
    return CommitDraft(
        (change,), (AnyVersion(PART, 0), StagedWithin(time.time(), lease), *requirements)
    )


class AnyVersion(TableAt):
    """Lets a test of order go on where a real commit would be a conflict."""

    def check(self, state: PublishState) -> None:
        return


def fail_commits(
    monkeypatch: pytest.MonkeyPatch,
    *,
    times: int,
    is_retryable: bool = True,
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    """The next requests to publish end in an error before they reach the store."""
    commit_next = images.try_commit
    left, is_first = iter(range(times)), [True]

    def fail(store: Store, base: StoredImage, pending: PendingImage) -> StoredImage | None:
        if next(left, None) is None:
            return commit_next(store, base, pending)
        if is_first:
            is_first.pop()
            meanwhile()
        raise StorageError("no", retryable=is_retryable, is_refused=not is_retryable)

    monkeypatch.setattr(images, "try_commit", fail)


def rows_by_version(catalog: Catalog) -> list[int]:
    newest = load_latest(catalog).snapshot.manifest_version
    snapshots = [load_version(catalog, number).snapshot for number in range(1, newest + 1)]
    return [snapshot.table(PART).row_count for snapshot in snapshots]


def test_the_answer_is_what_others_read(catalog: Catalog) -> None:
    published = publish(catalog, draft(rows=7))
    assert published.snapshot == load_latest(catalog).snapshot
    assert published.snapshot.manifest_version == 2
    assert published.snapshot.table(PART).row_count == 7
    assert publish(catalog, draft(rows=8), base=published).snapshot.manifest_version == 3


def test_time_never_goes_back_along_a_lineage(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time_ns
    moments = []
    for seconds in (0, -3600, -7200, 10, -3600, 0):
        monkeypatch.setattr(time, "time_ns", lambda ahead=seconds: real() + ahead * 10**9)
        moments.append(publish(catalog, draft()).snapshot.commit.created_at)
    assert all(earlier < later for earlier, later in itertools.pairwise(moments))
    assert moments[1:3] == [moments[0] + 1, moments[0] + 2], "a step is as small as can be"


def test_an_image_carries_the_newest_commits(catalog: Catalog) -> None:
    state = load_latest(catalog)
    made = []
    for _ in range(RECENT_COMMITS.value + 3):
        state = publish(catalog, draft(), base=state)
        made.append(state.snapshot.commit)
    assert load_latest(catalog).snapshot.image.commits == tuple(made[-RECENT_COMMITS.value :])


def test_a_base_that_was_overtaken_is_read_again(catalog: Catalog) -> None:
    base = load_latest(catalog)
    publish(catalog, draft(rows=1))
    with pytest.raises(VersionConflict) as caught:
        publish(catalog, draft(TableAt(PART, 1), rows=2), base=base)
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert publish(catalog, draft(rows=3), base=base).snapshot.manifest_version == 3
    assert rows_by_version(catalog)[1:] == [1, 3]


def test_a_base_older_than_the_lease_is_read_again(catalog: Catalog) -> None:
    """Its successors may be written and trimmed: the next number would be free again."""
    base = load_latest(catalog)
    for rows in (1, 2, 3):
        publish(catalog, draft(rows=rows))
    images.trim_versions(catalog.store, catalog.path, [1, 2, 3])
    asleep = Moment(base.stored.read_at.wall, base.stored.read_at.elapsed - 7 * 3600)
    base = CatalogState(base.snapshot, dataclasses.replace(base.stored, read_at=asleep))
    assert publish(catalog, draft(rows=4), base=base).snapshot.manifest_version == 5
    assert load_latest(catalog).snapshot.table(PART).row_count == 4


@pytest.mark.parametrize("losses", range(1, PUBLISHER_RETRY_BUDGET.value + 1))
def test_a_lost_race_is_run_again(catalog: Catalog, losses: int) -> None:
    rivals = iter(range(10, 10 + losses))

    def win() -> None:
        for rows in rivals:
            publish(catalog, draft(rows=rows))
            return

    published = publish(catalog, draft(Meanwhile(win), rows=99))
    assert rows_by_version(catalog)[1:] == [*range(10, 10 + losses), 99]
    before = load_version(catalog, published.snapshot.manifest_version - 1).snapshot.commit
    assert published.snapshot.commit.parents == (before.graph_commit_id,)
    assert published.snapshot.table(PART).table_version == losses + 2


def test_after_the_budget_nothing_is_written(catalog: Catalog) -> None:
    won: list[int] = []

    def win() -> None:
        won.append(10 + len(won))
        publish(catalog, draft(rows=won[-1]))

    with pytest.raises(PublishContention):
        publish(catalog, draft(Meanwhile(win), rows=99))
    assert len(won) > PUBLISHER_RETRY_BUDGET.value
    assert rows_by_version(catalog)[1:] == won


def test_a_lost_answer_is_looked_up(catalog: Catalog) -> None:
    with arm("image.after_commit", "error*1"):
        wanted = draft(rows=5)
        published = publish(catalog, wanted)
    assert published.snapshot.commit.graph_commit_id == wanted.commit_id
    assert published.snapshot == load_latest(catalog).snapshot
    assert rows_by_version(catalog)[1:] == [5], "once"


def test_a_lost_answer_is_found_below_what_others_have_added(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_next = images.try_commit

    def lose(store: Store, base: StoredImage, pending: PendingImage) -> StoredImage | None:
        monkeypatch.setattr(images, "try_commit", commit_next)
        assert commit_next(store, base, pending) is not None
        publish(catalog, draft(rows=6))
        raise StorageError("no answer", retryable=True)

    monkeypatch.setattr(images, "try_commit", lose)
    wanted = draft(rows=5)
    published = publish(catalog, wanted)
    assert published.snapshot.commit.graph_commit_id == wanted.commit_id
    assert published.snapshot.manifest_version == 2
    assert rows_by_version(catalog)[1:] == [5, 6]


def test_a_request_that_never_arrived_is_made_again(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_commits(monkeypatch, times=2)
    assert publish(catalog, draft(rows=5)).snapshot.manifest_version == 2
    assert rows_by_version(catalog)[1:] == [5]


def test_a_request_that_never_arrived_and_whose_place_is_taken(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_commits(monkeypatch, times=1, meanwhile=lambda: publish(catalog, draft(rows=6)))
    assert publish(catalog, draft(rows=5)).snapshot.manifest_version == 3
    assert rows_by_version(catalog)[1:] == [6, 5]


def test_a_refusal_is_told_as_it_is(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_commits(monkeypatch, times=1, is_retryable=False)
    with pytest.raises(StorageError, match="no"):
        publish(catalog, draft())
    assert load_latest(catalog).snapshot.manifest_version == 1


def test_no_answer_ever_is_not_a_failure(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_commits(monkeypatch, times=100)
    wanted = draft()
    with pytest.raises(CommitOutcomeUnknown, match=wanted.commit_id) as caught:
        publish(catalog, wanted)
    assert not caught.value.retryable
    assert caught.value.details() == {"commit_id": wanted.commit_id}
    assert wanted.commit_id in str(caught.value.hint)


def test_a_failure_while_an_answer_is_awaited_is_no_plain_failure(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request may still be under way when the second attempt cannot even write."""

    def refuse(*arguments: object) -> None:
        raise StorageError("the store is gone", retryable=True)

    fail_commits(
        monkeypatch,
        times=1,
        meanwhile=lambda: monkeypatch.setattr(images, "write_next", refuse),
    )
    wanted = draft()
    with pytest.raises(CommitOutcomeUnknown, match=wanted.commit_id):
        publish(catalog, wanted)


def test_a_lease_that_runs_out_while_an_answer_is_awaited_is_no_plain_failure(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing may say that nothing was written while the first request is under way."""
    now = time.time()

    def wait() -> None:
        monkeypatch.setattr(time, "time", lambda: now + 20)

    fail_commits(monkeypatch, times=1, meanwhile=wait)
    wanted = draft(lease=10)
    with pytest.raises(CommitOutcomeUnknown, match=wanted.commit_id):
        publish(catalog, wanted)


def test_a_file_that_cannot_be_written_is_a_plain_failure(catalog: Catalog) -> None:
    with arm("image.after_files", "error*1"), pytest.raises(StorageError, match="failpoint"):
        publish(catalog, draft())
    assert load_latest(catalog).snapshot.manifest_version == 1
    assert publish(catalog, draft()).snapshot.manifest_version == 2


def test_no_catalog(tmp_path: Path) -> None:
    nothing = Catalog(open_store(str(tmp_path)), "main", "main", "__manifest")
    with pytest.raises(ObjectNotFound):
        publish(nothing, draft())
    assert list(tmp_path.iterdir()) == []
