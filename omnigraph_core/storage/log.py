"""A dataset that only grows: rows are appended by compare-and-swap and keep their order for ever.

`try_append` writes the version after the one it was given, or nothing. A log stays within
MAX_LOG_FRAGMENTS: small new fragments are merged in the same compare-and-swap, and since a fragment
grows by half or more each time, a row is rewritten O(log n) times and keeps its row id. `fold`
makes fewer of them still, while nobody waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import lance
from lance.commit import CommitConflictError
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments
from lance.optimize import Compaction

from omnigraph_core.clock import Moment
from omnigraph_core.constants import MAX_LOG_FRAGMENTS
from omnigraph_core.errors import InvariantBroken, ObjectNotFound
from omnigraph_core.failpoints import declare
from omnigraph_core.storage.create import try_create
from omnigraph_core.storage.dataset import DATA_STORAGE_VERSION
from omnigraph_core.storage.translate import LIBRARY_ERRORS, storage_error, translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from lance.fragment import FragmentMetadata

    from omnigraph_core.storage.session import Store

_FOLDED: Final = declare("log.after_fold", "files of a log are merged, no version refers to them")

FOLDED_FRAGMENTS: Final = 4
"""Files of rows that folding leaves: each is at least twice as long as the one after it."""

_FOLD_ATTEMPTS: Final = 3

MIN_TRIM_AGE: Final = timedelta(hours=1)
"""Versions younger than this are never trimmed."""

_MAX_HOLD: Final = 1800.0
"""Seconds a handle may be appended to. Longer ago, the versions after it may have been written and
trimmed: writing the next one would succeed and lose their rows."""


@dataclass(frozen=True, slots=True)
class Log:
    """One version of a log, with the handle its successor is committed on.

    `read_at` is when it was known to be the newest.
    """

    store: Store
    path: str
    dataset: LanceDataset
    read_at: Moment

    @property
    def uri(self) -> str:
        return self.store.uri(self.path)

    @property
    def version(self) -> int:
        return int(self.dataset.version)

    @property
    def schema(self) -> pa.Schema:
        return self.dataset.schema

    def count_fragments(self) -> int:
        return len(self.dataset.get_fragments())

    def count_rows(self, where: pa.Expression | None = None) -> int:
        """Without a filter from the version's metadata: reads no data."""
        with translated("counting rows", self.uri):
            return int(self.dataset.count_rows(filter=where))


def open_log(store: Store, path: str) -> Log | None:
    """The newest version of the log, or None if there is no log."""
    now = Moment()
    try:
        with translated("opening a log", store.uri(path)):
            # No shared session: what is newest must never come from a cache.
            dataset = lance.dataset(store.uri(path), storage_options=store.options)
    except ObjectNotFound:
        return None
    return Log(store, path, dataset, now)


def create_log(store: Store, path: str, schema: pa.Schema) -> Log:
    """Make an empty log; the one that is there if another writer was first."""
    now = Moment()
    dataset = try_create(store, path, schema, has_stable_row_ids=True)
    if dataset is not None:
        return Log(store, path, dataset, now)
    found = open_log(store, path)
    if found is None:
        raise InvariantBroken(f"the log {path} is not removed while it is made")
    return found


def refresh(log: Log) -> Log:
    """The newest version, given one known before: the same handle if nothing was appended."""
    now = Moment()
    with translated("opening a log", log.uri):
        if log.dataset.latest_version == log.version:
            return Log(log.store, log.path, log.dataset, now)
        dataset = lance.dataset(log.uri, storage_options=log.store.options)
    return Log(log.store, log.path, dataset, now)


def read(
    log: Log, columns: Sequence[str] | None = None, *, where: pa.Expression | None = None
) -> pa.Table:
    """Its rows in the order they were appended.

    Args:
        where: an Arrow expression; not on unsigned columns, which Lance cannot translate.
    """
    wanted = None if columns is None else list(columns)
    with translated("reading a log", log.uri):
        return log.dataset.to_table(columns=wanted, filter=where)


def read_from(log: Log, position: int) -> pa.Table:
    """The rows appended after the first `position` ones: they alone are read."""
    with translated("reading a log", log.uri):
        return log.dataset.to_table(offset=position)


def try_append(log: Log, rows: pa.Table) -> Log | None:
    """Write the version after `log`, with these rows at its end.

    Returns:
        That version, or None when another writer was first or the handle is too old: read again.

    Raises:
        StorageError: the store failed; the version may or may not have been written.
    """
    if not rows.schema.equals(log.schema):
        raise InvariantBroken(f"rows of {log.path} have the schema of the log")
    now = Moment()
    if log.read_at.age() > _MAX_HOLD:
        return None
    with translated("appending to a log", log.uri):
        new = write_fragments(
            rows,
            log.dataset,
            mode="overwrite",
            data_storage_version=DATA_STORAGE_VERSION,
            storage_options=log.store.options,
        )
        old = _make_room(log, len(new))
    if old is None:
        return None
    appended = _commit(log, [*old, *new])
    return None if appended is None else Log(log.store, log.path, appended, now)


def _make_room(log: Log, arriving: int) -> list[FragmentMetadata] | None:
    """The fragments to keep before `arriving` new ones, or None when the race is lost already."""
    fragments = [fragment.metadata for fragment in log.dataset.get_fragments()]
    if len(fragments) + arriving <= MAX_LOG_FRAGMENTS.value:
        return fragments
    if log.dataset.latest_version != log.version:
        return None  # spares a rewrite that could not be committed
    return _merged(log, fragments, MAX_LOG_FRAGMENTS.value - arriving)


def _merged(log: Log, fragments: list[FragmentMetadata], most: int) -> list[FragmentMetadata]:
    """The same rows in at most so many fragments: the last ones are merged."""
    start = merge_start([fragment.physical_rows for fragment in fragments], most)
    return [*fragments[:start], *_merge(log, fragments, start)]


def merge_start(sizes: Sequence[int], most: int) -> int:
    """From which fragment on all are merged into one, so that at most `most` are left.

    The merged one is at most half as long as the one before it. So fragments shrink at least by
    half from old to new, few are long, and a long one is only rewritten when it grows by half.

    >>> merge_start([600, 1, 1, 1, 1, 1], 5), merge_start([8, 1, 1, 1, 1, 1], 5)
    (1, 0)
    """
    start = max(0, min(len(sizes) - 2, most - 1))
    total = sum(sizes[start:])
    while start > 0 and sizes[start - 1] < 2 * total:
        start -= 1
        total += sizes[start]
    return start


def _merge(log: Log, fragments: list[FragmentMetadata], start: int) -> Sequence[FragmentMetadata]:
    """The rows from fragment `start` on in one new fragment, with the row ids they have."""
    plan = Compaction.plan(
        log.dataset,
        {
            "target_rows_per_fragment": sum(f.physical_rows for f in fragments[start:]) + 1,
            "excluded_fragment_ids": [fragment.id for fragment in fragments[:start]],
        },
    )
    results = [task.execute(log.dataset) for task in plan.tasks]
    # The library's own type hints name this attribute differently from the library.
    merged = [f.id for result in results for f in result.original_fragments]  # type: ignore[attr-defined]
    if merged != [fragment.id for fragment in fragments[start:]]:
        raise InvariantBroken("merging a log rewrites exactly its last fragments")
    return [fragment for result in results for fragment in result.new_fragments]


def _commit(log: Log, fragments: list[FragmentMetadata]) -> LanceDataset | None:
    # max_retries=0 makes an Overwrite strict: put-if-absent of exactly the next version. Lance's
    # own append would be rebased onto what another writer has appended, and duplicate it.
    operation = LanceOperation.Overwrite(log.dataset.lance_schema, fragments)
    try:
        return LanceDataset.commit(
            log.dataset,
            Transaction(log.version, operation),
            max_retries=0,
            storage_options=log.store.options,
        )
    except CommitConflictError:
        return None
    except LIBRARY_ERRORS as problem:
        raise storage_error(problem, "appending to a log", log.uri) from problem


def fold(store: Store, path: str, most: int = FOLDED_FRAGMENTS) -> int:
    """Have the rows of a log in at most so many files; how many files fewer there are now.

    Appenders that come meanwhile are first, as they would be among themselves; after some attempts
    the log is left as it is. None of its rows is lost or moves, whoever wins.

    Raises:
        StorageError: the store failed; the log has the same rows in any case.
    """
    for _ in range(_FOLD_ATTEMPTS):
        log = open_log(store, path)
        fragments = [] if log is None else [item.metadata for item in log.dataset.get_fragments()]
        if log is None or len(fragments) <= most:
            return 0
        with translated("folding a log", log.uri):
            folded = _merged(log, fragments, most)
        _FOLDED.hit()
        if _commit(log, folded) is not None:
            return len(fragments) - len(folded)
    return 0


def trim(log: Log, older_than: timedelta) -> int:
    """Remove versions older than that, and the files only they use; the bytes removed.

    The newest version holds every row, so nothing of the log is lost.
    """
    with translated("trimming a log", log.uri):
        removed = refresh(log).dataset.cleanup_old_versions(
            older_than=max(older_than, MIN_TRIM_AGE), error_if_tagged_old_versions=False
        )
    return int(removed.bytes_removed)
