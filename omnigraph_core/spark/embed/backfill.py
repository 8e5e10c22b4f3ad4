"""A backfill on many executors: every vector of a branch that is pending or stale, with one commit.

Tasks first ask for all vectors and keep each answer beside the graph: that is what takes long and
costs money, so it is never done twice. Then rows are written from what was kept, and published. If
the branch moves meanwhile only the second half is repeated, on the tables that moved; a text that
is new by then waits for the next backfill.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from omnigraph_core.embedding.config import read_config
from omnigraph_core.embedding.embedder import Embedder
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.ids import new_ulid, node_table_key
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.spark.embed.leases import Share, shared_limits
from omnigraph_core.spark.embed.tasks import (
    FILLED,
    EmbedJob,
    Group,
    Part,
    Replaced,
    emit_keys,
    fill,
    find_lacking,
    find_repeated,
    remove_replaced,
    write,
)
from omnigraph_core.spark.progress import RowProgress
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.session import open_session
from omnigraph_core.storage.fragments import StagedFragments, combine
from omnigraph_core.storage.places import TablePlace
from omnigraph_core.storage.portions import fragment_portions
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.storage.staged import stage_removed
from omnigraph_core.write.backfill import BackfillResult
from omnigraph_core.write.batch_embed import embed_in_batches
from omnigraph_core.write.commit import Prepared, commit_write
from omnigraph_core.write.paid_vectors import paid_vectors
from omnigraph_core.write.progress import Reporter, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from omnigraph_core.embedding.config import EmbedConfig
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.job_report import SparkReport
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import NodeType
    from omnigraph_core.spark.embed.tasks import Lacking, Written
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.commit import WriteOptions
    from omnigraph_core.write.progress import Listener

PART_ROWS: Final = 2_000
"""Rows whose vectors one task asks for."""
_GROUP_ROWS: Final = 1 << 20
"""Rows of a table that one task looks through, or one fragment."""
_PARTITION_KEYS: Final = 1 << 21
"""Keys of texts that one task compares, about."""
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
    part_rows: int = PART_ROWS,
    progress: Listener | None = None,
) -> BackfillResult:
    """Make every vector of a branch that is pending or stale, by the tasks of a runner.

    Args:
        part_rows: rows whose vectors one task asks for at most.

    Raises:
        EmbeddingError: a vector could not be made; the others are kept for the next backfill.
        ConflictError: others changed the branch again and again.
        JobFailed: a task failed in another way.
    """
    reporter = Reporter(progress)
    # First, because it may wait for a day: nothing of this run is to become that old.
    with closing(Embedder(_uncached)) as embedder:
        embed_in_batches(context, options.branch, embedder, reporter)
    ref, state = context.head(options.branch)
    # Not of a run: who comes after one that was killed finds what it has paid for.
    paid = paid_vectors(context.store, ref.incarnation)
    scratch = Scratch(context.store, new_ulid())
    work = _Backfill(context, runner, scratch, paid.job, part_rows, reporter)
    try:
        work.ask(state.snapshot)
        landed = commit_write(context, options, "embed", work.prepare, is_rerunnable=True)
    finally:
        scratch.clear()
    paid.clear()
    commits = () if landed.commit is None else (landed.commit.graph_commit_id,)
    return BackfillResult(options.branch, work.vectors_made if commits else 0, commits)


def _uncached() -> EmbedConfig:
    """The settings without the cache of this machine, which no task can read."""
    return replace(read_config(), cache=None)


class _Backfill:
    """One backfill: remembers which rows lack vectors in tables that have not moved."""

    def __init__(
        self,
        context: GraphContext,
        runner: Runner,
        scratch: Scratch,
        paid: str,
        part_rows: int,
        reporter: Reporter,
    ) -> None:
        self._context = context
        self._runner = runner
        self._scratch = scratch
        self._paid = paid
        self._part_rows = part_rows
        self._reporter = reporter
        self._found: dict[tuple[str, TablePlace], list[_Rows]] = {}
        self.vectors_made = 0

    def ask(self, snapshot: Snapshot) -> None:
        """Have the provider asked for every vector that is lacking and not yet paid for."""
        parts = _parts(self._find(snapshot), least_rows=1)
        if not parts:
            return
        parts = self._without_repeated(snapshot, parts)
        progress = RowProgress(self._scratch, self._reporter, FILLED, Step.EMBEDDED)
        with _facts(snapshot, parts), shared_limits(self._runner, len(parts)) as share:
            job = self._job(snapshot, share)
            rows = self._runner.map(
                partial(fill, job), parts, name="ask for vectors", on_done=progress.tell
            )
        progress.end(sum(rows))

    def _without_repeated(self, snapshot: Snapshot, parts: Sequence[Part]) -> list[Part]:
        """The parts, told which of their texts another part asks for: all go at the same time."""
        if len(parts) < 2:
            return list(parts)
        job = self._job(snapshot, Share())
        partitions = 1 + len(parts) * self._part_rows // _PARTITION_KEYS
        with _facts(snapshot, parts):
            found = self._runner.exchange(
                partial(emit_keys, job, partitions),
                parts,
                partial(find_repeated, job),
                partitions,
                name="find texts that are the same",
            )
        others: dict[int, list[tuple[str, int, int]]] = {}
        for number, name, start, stop in (item for items in found for item in items):
            others.setdefault(number, []).append((name, start, stop))
        return [replace(part, others=tuple(others.get(part.number, ()))) for part in parts]

    def prepare(self, state: CatalogState) -> Prepared:
        """Write the vectors that were paid for into the rows as they are now."""
        snapshot = state.snapshot
        job, found = self._job(snapshot, Share()), self._find(snapshot)
        parts = _parts(found, least_rows=_WRITTEN_ROWS)
        with _facts(snapshot, parts):
            made = self._runner.map(partial(write, job), parts, name="write vectors")
        written: dict[str, list[Written]] = {rows.lacking.addresses: [] for rows in found}
        for part, item in zip(parts, made, strict=True):
            if item is not None:
                written[part.addresses].append(item)
        replaced = [rows for rows in found if written[rows.lacking.addresses]]
        with _facts(snapshot, [rows.group for rows in replaced]):
            left = self._runner.map(
                partial(remove_replaced, job),
                [_replaced(rows, written[rows.lacking.addresses]) for rows in replaced],
                name="replace rows",
            )
        self.vectors_made = sum(item.vectors_made for items in written.values() for item in items)
        staged: dict[TablePlace, _Staged] = {}
        for rows, (updated, emptied) in zip(replaced, left, strict=True):
            files = [item.files for item in written[rows.lacking.addresses]]
            staged.setdefault(rows.group.place, _Staged()).add(files, updated, emptied)
        changes = self._stage(snapshot, staged)
        touched = [change.table_key for change in changes]
        return Prepared(changes, requirements_of(snapshot, touched=touched), {})

    def _job(self, snapshot: Snapshot, share: Share) -> EmbedJob:
        root = self._context.store.root.text
        schema, job = snapshot.schema, self._scratch.job
        return EmbedJob(root, job, self._paid, schema, share, self._part_rows)

    def _find(self, snapshot: Snapshot) -> list[_Rows]:
        """The rows that lack a vector, found out once for each version of a table."""
        tables = self._tables(snapshot)
        # Another schema may want other vectors of the same rows.
        known = {place: (snapshot.schema.hash, place) for place in tables}
        groups = [
            Group(type_name, place, fragments)
            for place, (type_name, table) in tables.items()
            if known[place] not in self._found
            for fragments in fragment_portions(table, _GROUP_ROWS)
        ]
        job = self._job(snapshot, Share())
        with _facts(snapshot, groups):
            found = self._runner.map(
                partial(find_lacking, job), groups, name="find rows without vectors"
            )
        for key in known.values():
            self._found.setdefault(key, [])
        for group, lacking in zip(groups, found, strict=True):
            if lacking is not None:
                self._found[known[group.place]].append(_Rows(group, lacking))
        return [rows for key in known.values() for rows in self._found[key]]

    def _tables(self, snapshot: Snapshot) -> dict[TablePlace, tuple[str, Table]]:
        """The tables that have vectors to be made, with the names of their types."""
        nodes = accepted_catalog(snapshot.schema).nodes.values()
        found = [(node.name, self._open(snapshot, node)) for node in nodes if node.embeddings]
        return {TablePlace.of(table): (name, table) for name, table in found}

    def _stage(
        self, snapshot: Snapshot, staged: Mapping[TablePlace, _Staged]
    ) -> tuple[UpdateTable, ...]:
        changes = []
        for place, (name, table) in self._tables(snapshot).items():
            after = staged[place].stage(table) if place in staged else None
            if after is not None:
                key = accepted_catalog(snapshot.schema).nodes[name].table_key
                changes.append(UpdateTable.of(key, after, TableOperation.UPSERT))
        return tuple(changes)

    def _open(self, snapshot: Snapshot, node: NodeType) -> Table:
        entry = snapshot.table(node.table_key)
        return self._context.table(entry.location, entry.physical_version)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a group that lack vectors."""

    group: Group
    lacking: Lacking


@dataclass(frozen=True, slots=True)
class _Staged:
    """What tasks have written for a table, and what they have left of its fragments."""

    files: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    emptied: list[int] = field(default_factory=list)

    def add(self, files: Sequence[str], updated: Sequence[str], emptied: Sequence[int]) -> None:
        self.files.extend(files)
        self.updated.extend(updated)
        self.emptied.extend(emptied)

    def stage(self, table: Table) -> Table | None:
        files = combine(table, map(StagedFragments.from_json, self.files))
        return stage_removed(table, files, self.updated, self.emptied)


def _facts(
    snapshot: Snapshot, tasks: Iterable[Group | Part]
) -> AbstractContextManager[SparkReport]:
    """Describe jobs by the state that they read and the types of their rows."""
    types = [node_table_key(task.type_name) for task in tasks]
    return job_facts(commit=snapshot.commit.graph_commit_id, type=types)


def _parts(found: Sequence[_Rows], *, least_rows: int) -> list[Part]:
    """Rows for one task each, as `find_lacking` has cut them, or several of these together."""
    parts: list[Part] = []
    for rows in found:
        group, lacking = rows.group, rows.lacking
        start = 0
        for stop in lacking.cuts[1:]:
            if stop - start >= least_rows or stop == lacking.cuts[-1]:
                parts.append(
                    Part(
                        len(parts),
                        group.type_name,
                        group.place,
                        lacking.addresses,
                        lacking.keys,
                        lacking.properties,
                        start,
                        stop,
                    )
                )
                start = stop
    return parts


def _replaced(rows: _Rows, written: Sequence[Written]) -> Replaced:
    return Replaced(rows.group.place, tuple((item.replaced, item.row_count) for item in written))
