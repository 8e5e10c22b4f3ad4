"""A backfill on many executors: every vector of a branch that is pending or stale, with one commit.

Tasks first ask for all vectors and keep each answer beside the graph: that is what takes long and
costs money, so it is never done twice. Then rows are written from what was kept, and published. If
the branch moves meanwhile only the second half is repeated, on the tables that moved; a text that
is new by then waits for the next backfill.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.spark.embed.leases import Share, shared_limits
from omnigraph_core.spark.embed.paid import paid_vectors
from omnigraph_core.spark.embed.tasks import (
    FILLED,
    EmbedJob,
    Group,
    Part,
    Replaced,
    fill,
    find_lacking,
    remove_replaced,
    write,
)
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.session import open_session
from omnigraph_core.storage.fragments import StagedFragments, combine
from omnigraph_core.storage.places import TablePlace
from omnigraph_core.storage.portions import fragment_portions
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.storage.staged import stage_removed
from omnigraph_core.write.backfill import BackfillResult
from omnigraph_core.write.commit import Prepared, commit_write
from omnigraph_core.write.progress import Reporter, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.spark.embed.tasks import Lacking
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.commit import WriteOptions
    from omnigraph_core.write.progress import Listener

_GROUP_ROWS: Final = 1 << 20
"""Rows of a table that one task looks through, or one fragment."""
_WRITTEN_ROWS: Final = 1 << 16
"""Rows that one task writes, about."""


def backfill_on_spark(
    context: GraphContext, options: WriteOptions, *, progress: Listener | None = None
) -> BackfillResult:
    """Backfill with the session of this process, which is opened if there is none.

    Raises:
        ConfigError: Spark cannot be started or reached.
        EmbeddingError, ConflictError, JobFailed: as of `backfill`.
    """
    return backfill(context, options, SparkRunner(open_session()), progress=progress)


def backfill(
    context: GraphContext,
    options: WriteOptions,
    runner: Runner,
    *,
    progress: Listener | None = None,
) -> BackfillResult:
    """Make every vector of a branch that is pending or stale, by the tasks of a runner.

    Raises:
        EmbeddingError: a vector could not be made; the others are kept for the next backfill.
        ConflictError: others changed the branch again and again.
        JobFailed: a task failed in another way.
    """
    ref, state = context.head(options.branch)
    # Not of a run: who comes after one that was killed finds what it has paid for.
    paid = paid_vectors(context.store, ref.incarnation)
    scratch = Scratch(context.store, new_ulid())
    work = _Backfill(context, runner, scratch, paid.job, Reporter(progress))
    try:
        work.ask(state.snapshot)
        landed = commit_write(context, options, "embed", work.prepare, is_rerunnable=True)
    finally:
        scratch.clear()
    paid.clear()
    commits = () if landed.commit is None else (landed.commit.graph_commit_id,)
    return BackfillResult(options.branch, work.vectors_made if commits else 0, commits)


class _Backfill:
    """One backfill: remembers which rows lack vectors in tables that have not moved."""

    def __init__(
        self,
        context: GraphContext,
        runner: Runner,
        scratch: Scratch,
        paid: str,
        reporter: Reporter,
    ) -> None:
        self._context = context
        self._runner = runner
        self._scratch = scratch
        self._job = EmbedJob(context.store.root.text, scratch.job, paid, Share())
        self._reporter = reporter
        self._lacking: dict[tuple[str, TablePlace], list[Lacking]] = {}
        self.vectors_made = 0

    def ask(self, snapshot: Snapshot) -> None:
        """Have the provider asked for every vector that is lacking and not yet paid for."""
        found = self._find(snapshot)
        parts = _parts([item for items in found.values() for item in items])
        progress = _RowsFilled(self._scratch, self._reporter)
        with shared_limits(self._runner, len(parts)) as share:
            job = EmbedJob(self._job.root, self._job.id, self._job.paid, share)
            rows = self._runner.map(
                partial(fill, job), parts, name="ask for vectors", on_done=progress.tell
            )
        progress.end(sum(rows))

    def prepare(self, state: CatalogState) -> Prepared:
        """Write the vectors that were paid for into the rows as they are now."""
        snapshot = state.snapshot
        self.vectors_made = 0
        changes = tuple(
            change
            for key, lacking in sorted(self._find(snapshot).items())
            if lacking and (change := self._stage(snapshot, key, lacking)) is not None
        )
        touched = [change.table_key for change in changes]
        return Prepared(changes, requirements_of(snapshot, touched=touched), {})

    def _find(self, snapshot: Snapshot) -> dict[str, list[Lacking]]:
        """By table the rows that lack a vector, found out for each version once."""
        tables = {
            (node.table_key, node.name): self._open(snapshot, node.table_key)
            for node in accepted_catalog(snapshot.schema).nodes.values()
            if node.embeddings
        }
        # Another schema may want other vectors of the same rows.
        places = {key: (snapshot.schema.hash, TablePlace.of(tables[key])) for key in tables}
        groups = [
            Group(snapshot.schema, key[1], places[key][1], fragments)
            for key, table in tables.items()
            if places[key] not in self._lacking
            for fragments in fragment_portions(table, _GROUP_ROWS)
        ]
        found = self._runner.map(
            partial(find_lacking, self._job), groups, name="find rows without vectors"
        )
        for place in places.values():
            self._lacking.setdefault(place, [])
        for group, lacking in zip(groups, found, strict=True):
            if lacking is not None:
                self._lacking[snapshot.schema.hash, group.place].append(lacking)
        return {key[0]: self._lacking[place] for key, place in places.items()}

    def _stage(
        self, snapshot: Snapshot, key: str, lacking: Sequence[Lacking]
    ) -> UpdateTable | None:
        table = self._open(snapshot, key)
        parts = list(_larger(lacking))
        written = self._runner.map(partial(write, self._job), parts, name=f"write vectors of {key}")
        done = [(part, item) for part, item in zip(parts, written, strict=True) if item is not None]
        replaced = [
            Replaced(group, tuple((w.replaced, w.row_count) for p, w in done if p.lacking is item))
            for item in lacking
            for group in [item.group]
        ]
        left = self._runner.map(
            partial(remove_replaced, self._job),
            [item for item in replaced if item.objects],
            name=f"replace rows of {key}",
        )
        self.vectors_made += sum(item.vectors_made for _, item in done)
        files = combine(table, [StagedFragments.from_json(item.files) for _, item in done])
        staged = stage_removed(
            table,
            files,
            [text for updated, _ in left for text in updated],
            [fragment for _, emptied in left for fragment in emptied],
        )
        return None if staged is None else UpdateTable.of(key, staged, TableOperation.UPSERT)

    def _open(self, snapshot: Snapshot, table_key: str) -> Table:
        entry = snapshot.table(table_key)
        return self._context.table(entry.location, entry.physical_version)


def _parts(lacking: Sequence[Lacking]) -> list[Part]:
    spans = [
        (item, start, stop)
        for item in lacking
        for start, stop in zip(item.cuts, item.cuts[1:], strict=False)
    ]
    return [Part(number, *span) for number, span in enumerate(spans)]


def _larger(lacking: Sequence[Lacking]) -> Iterator[Part]:
    """The same rows in fewer parts: files are better large."""
    number = 0
    for item in lacking:
        start = 0
        for stop in item.cuts[1:]:
            if stop - start >= _WRITTEN_ROWS or stop == item.row_count:
                yield Part(number, item, start, stop)
                number, start = number + 1, stop


class _RowsFilled:
    """Rows of parts that are done, by the names of what they have left."""

    def __init__(self, scratch: Scratch, reporter: Reporter) -> None:
        self._scratch = scratch
        self._reporter = reporter
        self._told = 0

    def tell(self, done: int) -> None:
        rows = {}
        for name in self._scratch.names(f"{FILLED}-"):
            _, part, count, *_ = name.split("-")
            rows[part] = int(count)
        self.end(sum(rows.values()))

    def end(self, rows: int) -> None:
        self._reporter.add(Step.EMBEDDED, max(rows - self._told, 0))
        self._told = max(rows, self._told)
