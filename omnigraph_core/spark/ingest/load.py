"""A load on many executors, from parts of the input to one commit, or nothing and every reason why.

Reading writes files nobody refers to. Then the keys are compared with those of the newest rows
behind Spark's shuffle, suspected rows are checked as in every write, a version is staged per table,
and all are published together. Losing a race repeats the second half only.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import Counter, defaultdict
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from omnigraph_core.errors import PreconditionFailed
from omnigraph_core.ids import new_ulid
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.spark.embed.leases import Share, shared_limits
from omnigraph_core.spark.ingest.comparing import (
    Comparison,
    compare_with_committed,
    loaded_tables,
    tables_looked_at,
)
from omnigraph_core.spark.ingest.keys import PartKeys
from omnigraph_core.spark.ingest.model import Job
from omnigraph_core.spark.ingest.parts import split, within_reach
from omnigraph_core.spark.ingest.read_part import READ, read_part, up_to_breaks
from omnigraph_core.spark.ingest.staging import PartFiles, stage_table
from omnigraph_core.spark.ingest.suspects import Input, check_suspects
from omnigraph_core.spark.progress import RowProgress
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.violations import MAX_LISTED, UNBOUNDED, Violations
from omnigraph_core.write.commit import Prepared, commit_write
from omnigraph_core.write.digest import content_digest
from omnigraph_core.write.embed import EmbedMode
from omnigraph_core.write.load_model import LoadMode, LoadResult, TableLoad
from omnigraph_core.write.progress import Reporter, Step
from omnigraph_core.write.rejects import check_rejects, count_records, named_apart
from omnigraph_core.write.sources import places_of
from omnigraph_core.write.verdict import settle
from omnigraph_core.write.view import CommittedView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.changes import UpdateTable
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.spark.ingest.inspect import Inspected
    from omnigraph_core.spark.ingest.kept import Resumed
    from omnigraph_core.spark.ingest.model import Part, PartRead
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.load_model import LoadOptions
    from omnigraph_core.write.sources import Source


def load(
    context: GraphContext, sources: Sequence[Source], options: LoadOptions, runner: Runner
) -> LoadResult:
    """Load sources into a branch with one commit, by the tasks of a runner.

    Raises:
        DataError: records are malformed or break a rule; carries all of them.
        ConflictError: others changed the branch meanwhile.
        EmbeddingError: a vector could not be made.
        JobFailed: a task failed in a way that is no fault of the input.
    """
    check_rejects(options.rejects, sources)
    scratch = Scratch(context.store, new_ulid())
    try:
        return Loader(context, sources, options, runner, scratch).run()
    finally:
        scratch.clear()


class Loader:
    """One load: keeps what was read between attempts to publish it.

    With documents beside the graph, what other processes have read, found and staged is taken from
    there if it still holds.
    """

    def __init__(
        self,
        context: GraphContext,
        sources: Sequence[Source],
        options: LoadOptions,
        runner: Runner,
        scratch: Scratch,
        resumed: Resumed | None = None,
    ) -> None:
        self._context = context
        self._given = sources
        self._options = options
        self._runner = runner
        self._scratch = scratch
        self._resumed = resumed
        self._kept = None if resumed is None else resumed.kept
        self._places = named_apart(resumed.places if resumed else places_of(sources))
        self._reporter = Reporter(options.progress)
        self._job: Job | None = None
        self._sources: list[Source] = []
        self._parts: list[Part] = []
        self._read: list[PartRead] = []
        self._in_rows = Violations()
        self._in_sets = Violations()
        self._left_out: dict[str, dict[int, dict[int, int]]] = {}
        """By table and part, the numbers of rows that are left out and their places."""

    def read(self) -> Mapping[str, int]:
        """Read the input; by table key the rows that go on."""
        self._read_input(self._head())
        return self._counts()

    def problem_count(self) -> int:
        """How many problems the records have, each by itself."""
        self._read_input(self._head())
        return self._in_rows.total

    def inspect(self, table_key: str) -> int:
        """Compare the rows of a table with those of the newest state; how many are suspected."""
        snapshot = self._head()
        self._read_input(snapshot)
        comparison = self._comparison_of(self._planned(snapshot), snapshot, (table_key,))
        return sum(sum(found.suspects.values()) for found in comparison.inspected)

    def stage(self, table_key: str) -> UpdateTable | None:
        """Stage the rows of a table on its newest version; None if there is nothing to change."""
        snapshot = self._head()
        self._read_input(snapshot)
        job = self._planned(snapshot)
        comparison = self._comparison_of(job, snapshot, (table_key,))
        return self._stage(job, snapshot, table_key, comparison)

    def audit(self) -> None:
        """Check everything against the newest state, and raise what is wrong."""
        self._compared(self._head())

    def _head(self) -> Snapshot:
        return self._context.head(self._options.write.branch)[1].snapshot

    def run(self) -> LoadResult:
        """Check the load, and publish it with one commit."""
        options = self._options
        if options.is_dry_run:
            _, state = self._context.head(options.write.branch)
            return self._result(self._check(state), None)
        landed = commit_write(
            self._context,
            options.write,
            "load",
            self._prepare,
            digest=self._digest(),
            is_rerunnable=options.mode is not LoadMode.OVERWRITE,
        )
        return self._result(landed.summary, landed.commit, is_repeat=landed.is_repeat)

    def _digest(self) -> str | None:
        """The same as that of a load in one process: a repeat may take the other way."""
        if self._resumed is not None:
            return self._resumed.digest
        if self._options.write.idempotency_key is None:
            return None
        options = self._options
        told = f"{options.mode} {options.embed} {options.is_skipping_bad}"
        whole = hashlib.sha256(told.encode())
        for source in self._given:
            whole.update(content_digest(source))
        return whole.hexdigest()

    def _check(self, state: CatalogState) -> Mapping[str, Any]:
        expected = self._options.write.if_commit
        head = state.snapshot.commit.graph_commit_id
        if expected is not None and expected != head:
            raise PreconditionFailed("head", expected, head)
        return self._summary(self._compared(state.snapshot)[0])

    def _prepare(self, state: CatalogState) -> Prepared:
        """Check the load against a state and stage it there."""
        comparison, read = self._compared(state.snapshot)
        job = self._planned(state.snapshot)
        changes = tuple(
            change
            for key in sorted(self._counts())
            if (change := self._stage(job, state.snapshot, key, comparison)) is not None
        )
        touched = [change.table_key for change in changes]
        return Prepared(
            changes,
            requirements_of(state.snapshot, touched=touched, read=read),
            self._summary(comparison),
        )

    def _stage(
        self, job: Job, snapshot: Snapshot, key: str, comparison: Comparison
    ) -> UpdateTable | None:
        kept = None if self._left_out.get(key) else self._kept
        known = None if kept is None else kept.staged(key, snapshot, job)
        if known is not None:
            return known[0]
        change = self._staged(job, snapshot, key, comparison)
        if kept is not None:
            kept.keep_staged(key, snapshot, job, change)
        return change

    def _staged(
        self, job: Job, snapshot: Snapshot, key: str, comparison: Comparison
    ) -> UpdateTable | None:
        parts = [
            PartFiles(read.number, read.rows[key], read.files[key])
            for read in self._read
            if key in read.files
        ]
        left_out = {
            part: np.array(list(rows.values()), np.int64)
            for part, rows in self._left_out.get(key, {}).items()
        }
        with job_facts(commit=snapshot.commit.graph_commit_id, type=key):
            table = self._open(snapshot, key)
            return stage_table(job, table, key, parts, comparison, left_out, self._runner)

    def _compared(self, snapshot: Snapshot) -> tuple[Comparison, frozenset[str]]:
        """The load beside a state, found to be good; and the tables that was found out from."""
        self._read_input(snapshot)
        job = self._planned(snapshot)
        self._in_sets = self._collector()
        self._left_out = {}
        is_beyond_mending = False
        while True:
            view = CommittedView(lambda key: self._open(snapshot, key))
            comparison, found, bad = self._inspected(job, snapshot, view)
            if not self._options.is_skipping_bad or not bad:
                self._in_sets = Violations.together(self._in_sets, found)
                is_beyond_mending = found.total > 0
                break
            for violation in found.listed:
                if violation.line is not None:
                    self._in_sets.add(violation)
            self._leave_out(bad)
        settle(
            self._options,
            self._given,
            self._places,
            self._in_rows,
            self._in_sets,
            is_beyond_mending=is_beyond_mending or self._would_empty(snapshot, comparison),
        )
        return comparison, view.read | comparison.looked_at

    def _inspected(
        self, job: Job, snapshot: Snapshot, view: CommittedView
    ) -> tuple[Comparison, Violations, Mapping[str, pa.Table]]:
        """What is found out from keys, every problem in it, and the rows that have one."""
        found = self._collector()
        types = loaded_tables(self._read)
        with job_facts(commit=snapshot.commit.graph_commit_id, type=types):
            comparison = self._comparison_of(job, snapshot, types)
            if not comparison.is_suspicious:
                return comparison, found, {}
            input = Input(self._read, self._first_lines(), self._keys())
            bad = check_suspects(job, input, comparison, view, self._places, found, self._runner)
        return comparison, found, bad

    def _comparison_of(self, job: Job, snapshot: Snapshot, table_keys: Sequence[str]) -> Comparison:
        """What keys tell about the rows of tables: as far as that is kept, without a look."""
        kept = None if self._left_out else self._kept
        found: list[Inspected] = []
        missing = []
        for key in table_keys:
            known = None if kept is None else kept.inspected(key, snapshot, job)
            if known is None:
                missing.append(key)
            else:
                found += known
        rest = compare_with_committed(
            job, self._read, self._keys(), snapshot, self._runner, only=missing
        )
        if kept is not None and len(missing) == 1:
            kept.keep_inspected(missing[0], snapshot, job, rest)
        looked_at = tables_looked_at(job, self._read, table_keys)
        return Comparison(rest.loaded, [*found, *rest.inspected], looked_at)

    def _leave_out(self, bad: Mapping[str, pa.Table]) -> None:
        for key, rows in bad.items():
            for part, number, place in zip(*rows.to_pydict().values(), strict=True):
                self._left_out.setdefault(key, {}).setdefault(part, {})[number] = place

    def _keys(self) -> list[PartKeys]:
        """The keys of all parts, without rows that the load goes on without."""
        left_out: dict[int, dict[str, np.ndarray]] = defaultdict(dict)
        for key, parts in self._left_out.items():
            for part, rows in parts.items():
                left_out[part][key] = np.array(list(rows), np.int64)
        return [
            PartKeys(read.number, read.keys, left_out.get(read.number, {})) for read in self._read
        ]

    def _collector(self) -> Violations:
        return Violations(self._listed())

    def _listed(self) -> int:
        lists_all = self._options.is_skipping_bad or self._options.rejects is not None
        return UNBOUNDED if lists_all else MAX_LISTED

    # Reading

    def _planned(self, snapshot: Snapshot) -> Job:
        """The job for a schema; reading begins anew when that has changed."""
        if self._job is None or self._job.schema.hash != snapshot.schema.hash:
            self._job, self._read = self._new_job(snapshot), []
        return self._job

    def _new_job(self, snapshot: Snapshot) -> Job:
        if not self._parts:
            self._sources = [within_reach(source, self._scratch) for source in self._given]
            self._parts = split(self._sources, self._places)
        return Job(
            root=self._context.store.root.text,
            id=self._scratch.job,
            schema=snapshot.schema,
            tables={
                key: (entry.location, entry.physical_version)
                for key, entry in snapshot.tables.items()
            },
            mode=self._options.mode,
            embed=self._options.embed,
            seed=secrets.randbits(64),
            listed=self._listed(),
            is_tolerant=self._options.is_skipping_bad,
            is_dry_run=self._options.is_dry_run,
            only=self._options.only,
        )

    def _read_input(self, snapshot: Snapshot) -> None:
        self._take_kept(snapshot)
        job = self._planned(snapshot)
        if self._read:
            return
        begun_at = time.time()
        self._reporter.restart()
        steps = (Step.READ, Step.VALIDATED, Step.STAGED)
        progress = RowProgress(self._scratch, self._reporter, READ, *steps)
        types = [source.type_name for source in self._given if source.type_name is not None]
        facts = job_facts(commit=snapshot.commit.graph_commit_id, type=types)
        with facts, self._limits(job) as share:
            read = self._runner.map(
                partial(read_part, replace(job, share=share)),
                self._parts,
                name="read and check records",
                on_done=progress.tell,
            )
        self._read = list(up_to_breaks(read, self._scratch))
        progress.end(sum(sum(part.rows.values()) for part in self._read))
        self._add_problems()
        if self._kept is not None:
            self._kept.keep_read(job, self._read, begun_at)

    def _take_kept(self, snapshot: Snapshot) -> None:
        """Go on from what another process has read, unless the schema has changed since."""
        known = None if self._read or self._kept is None else self._kept.read()
        if known is not None and known[0].schema.hash == snapshot.schema.hash:
            self._job, self._read = known
            self._add_problems()

    def _add_problems(self) -> None:
        self._in_rows = self._collector()
        for read, first in zip(self._read, self._first_lines(), strict=True):
            self._in_rows.add_part(read.problems, lines_before=first)

    def _limits(self, job: Job) -> AbstractContextManager[Share]:
        """What each part may ask of the provider of vectors."""
        has_vectors = any(node.embeddings for node in job.catalog.nodes.values())
        if has_vectors and job.embed is not EmbedMode.OFF and not job.is_dry_run:
            return shared_limits(self._runner, len(self._parts))
        return nullcontext(Share())

    def _first_lines(self) -> list[int]:
        """By part how many lines of its source come before it."""
        seen: Counter[int] = Counter()
        first = []
        for read in self._read:
            first.append(seen[read.source_index])
            seen[read.source_index] += read.line_count
        return first

    def _open(self, snapshot: Snapshot, table_key: str) -> Table:
        entry = snapshot.table(table_key)
        return self._context.table(entry.location, entry.physical_version)

    # What it did

    def _counts(self) -> Counter[str]:
        rows: Counter[str] = Counter()
        for read in self._read:
            rows.update(dict.fromkeys(read.types, 0))
            rows.update(read.rows)
        return rows

    def _staying(self, comparison: Comparison) -> dict[str, int]:
        gone = {
            key: sum(len(rows) for rows in self._left_out.get(key, {}).values())
            + comparison.replaced(key)
            for key in self._counts()
        }
        return {key: count - gone[key] for key, count in sorted(self._counts().items())}

    def _would_empty(self, snapshot: Snapshot, comparison: Comparison) -> bool:
        """Whether a table would lose its rows because all records for it are bad."""
        return self._options.mode is LoadMode.OVERWRITE and any(
            not count and snapshot.table(key).row_count
            for key, count in self._staying(comparison).items()
        )

    def _summary(self, comparison: Comparison) -> dict[str, Any]:
        problems = Violations.together(self._in_rows, self._in_sets)
        return {
            "tables": [[key, n] for key, n in self._staying(comparison).items() if n],
            "rejected": count_records(problems),
            "vectors_made": sum(read.embedded for read in self._read),
            "vectors_pending": sum(read.pending for read in self._read),
        }

    def _result(
        self, summary: Mapping[str, Any], commit: GraphCommit | None, *, is_repeat: bool = False
    ) -> LoadResult:
        return LoadResult(
            branch=self._options.write.branch,
            mode=self._options.mode,
            tables=tuple(TableLoad(*item) for item in summary["tables"]),
            commit=commit,
            records_rejected=summary["rejected"],
            vectors_made=summary["vectors_made"],
            vectors_pending=summary["vectors_pending"],
            is_dry_run=self._options.is_dry_run,
            is_repeat=is_repeat,
        )
