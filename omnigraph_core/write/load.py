"""Bulk load: files or data come in, one commit goes out, or nothing and every reason why.

A load reads its input once and writes files nobody refers to; then it checks the keys against the
newest rows, stages a version per table and publishes them together. Losing a race repeats the
second half only.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import PreconditionFailed
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.storage.staged import stage_append, stage_overwrite
from omnigraph_core.violations import MAX_LISTED, UNBOUNDED, Violations
from omnigraph_core.write.batches import FRESH
from omnigraph_core.write.collect import Reading, collect, note_rows
from omnigraph_core.write.commit import Prepared, commit_write
from omnigraph_core.write.digest import content_digest
from omnigraph_core.write.embed import VectorFiller
from omnigraph_core.write.files import TableFiles
from omnigraph_core.write.integrity import TableDelta, check_delta
from omnigraph_core.write.load_model import LoadMode, LoadResult, TableLoad
from omnigraph_core.write.progress import Reporter, Step
from omnigraph_core.write.rejects import check_rejects, count_records, named_apart
from omnigraph_core.write.repeats import repeated_rows
from omnigraph_core.write.sources import places_of
from omnigraph_core.write.staging import stage_rows
from omnigraph_core.write.verdict import settle
from omnigraph_core.write.view import CommittedView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.collect import Collected, LeftOut
    from omnigraph_core.write.load_model import LoadOptions
    from omnigraph_core.write.sources import Source

_NO_IDS: Final = pa.array([], pa.utf8())


def load(
    context: GraphContext, sources: Sequence[Source], options: LoadOptions, embedder: Embedder
) -> LoadResult:
    """Load sources into a branch with one commit.

    Raises:
        DataError: records are malformed or break a rule; carries all of them.
        ConflictError: others changed the branch meanwhile.
        EmbeddingError: a vector could not be made.
    """
    check_rejects(options.rejects, sources)
    loader = _Loader(context, sources, options, embedder)
    if options.is_dry_run:
        _, state = context.head(options.write.branch)
        return loader.result(loader.check(state), None)
    landed = commit_write(
        context,
        options.write,
        "load",
        loader.prepare,
        digest=loader.digest(),
        is_rerunnable=options.mode is not LoadMode.OVERWRITE,
    )
    return loader.result(landed.summary, landed.commit, is_repeat=landed.is_repeat)


class _Loader:
    """One load: keeps what was read between attempts to publish it."""

    def __init__(
        self,
        context: GraphContext,
        sources: Sequence[Source],
        options: LoadOptions,
        embedder: Embedder,
    ) -> None:
        self._context = context
        self._sources = sources
        self._options = options
        self._embedder = embedder
        self._places = named_apart(places_of(sources))
        self._reporter = Reporter(options.progress)
        self._left_out: LeftOut = {}
        self._bad: LeftOut = {}
        """Those of them that break a rule about several rows; the others are replaced by later."""
        self._is_beyond_mending = False
        """Whether leaving records out does not help."""
        self._collected: Collected | None = None
        self._schema_hash: str | None = None
        self._read_problems = Violations()
        self._set_problems = Violations()

    def digest(self) -> str | None:
        """What tells this load from another one with the same idempotency key."""
        if self._options.write.idempotency_key is None:
            return None
        options = self._options
        told = f"{options.mode} {options.embed} {options.is_skipping_bad}"
        whole = hashlib.sha256(told.encode())
        for source in self._sources:
            whole.update(content_digest(source))
        return whole.hexdigest()

    def prepare(self, state: CatalogState) -> Prepared:
        """Check the load against a state and stage it there."""
        collected, view = self._checked(state.snapshot)
        changes = tuple(
            change
            for key in sorted(collected.files)
            if (change := self._stage(state.snapshot, key, collected)) is not None
        )
        touched = [change.table_key for change in changes]
        return Prepared(
            changes,
            requirements_of(state.snapshot, touched=touched, read=view.read),
            self._summary(collected),
        )

    def check(self, state: CatalogState) -> Mapping[str, Any]:
        """What the load would do; writes nothing and makes no vectors."""
        expected = self._options.write.if_commit
        head = state.snapshot.commit.graph_commit_id
        if expected is not None and expected != head:
            raise PreconditionFailed("head", expected, head)
        return self._summary(self._checked(state.snapshot)[0])

    def result(
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

    def _checked(self, snapshot: Snapshot) -> tuple[Collected, CommittedView]:
        """What was read and found to be good, and what that was found out from."""
        catalog = accepted_catalog(snapshot.schema)
        self._set_problems = self._collector()
        self._is_beyond_mending = False
        if self._left_out and self._is_choice_outdated(snapshot):
            self._left_out, self._bad, self._collected = {}, {}, None
        while True:
            collected = self._read(snapshot, catalog)
            view = CommittedView(lambda key: self._open(snapshot, key))
            if self._leave_out_repeated(collected):
                continue  # their rows are in the files already, so the input is read again
            if not self._leave_out_bad(collected, catalog, view):
                break
        self._settle_problems(snapshot, collected)
        return collected, view

    def _is_choice_outdated(self, snapshot: Snapshot) -> bool:
        """Whether records were left out because of rows or a schema that are there no more."""
        return bool(self._bad) or self._schema_hash != snapshot.schema.hash

    def _collector(self) -> Violations:
        lists_all = self._options.is_skipping_bad or self._options.rejects is not None
        return Violations(UNBOUNDED if lists_all else MAX_LISTED)

    def _read(self, snapshot: Snapshot, catalog: Catalog) -> Collected:
        """The input, read once for each schema and set of lines left out."""
        if self._collected is not None and self._schema_hash == snapshot.schema.hash:
            return self._collected
        self._reporter.restart()
        self._read_problems = self._collector()
        reading = Reading(
            self._sources,
            catalog,
            self._places,
            self._read_problems,
            self._reporter,
            self._left_out,
            is_tolerant=self._options.is_skipping_bad,
            only=self._options.only,
        )
        if self._options.is_dry_run:
            self._collected = collect(reading, None, None)
        else:
            filler = VectorFiller(
                self._embedder,
                self._options.embed,
                lambda rows: self._reporter.add(Step.EMBEDDED, rows),
                lambda key: self._open(snapshot, key),
            )
            with TableFiles(
                lambda key: self._open(snapshot, key),
                lambda rows: self._reporter.add(Step.STAGED, rows),
            ) as files:
                self._collected = collect(reading, files, filler)
        self._schema_hash = snapshot.schema.hash
        return self._collected

    def _open(self, snapshot: Snapshot, table_key: str) -> Table:
        entry = snapshot.table(table_key)
        return self._context.table(entry.location, entry.physical_version)

    def _leave_out_repeated(self, collected: Collected) -> bool:
        """Whether records were found that later ones of the same id replace."""
        if self._options.mode is not LoadMode.MERGE:
            return False
        found = False
        for key, rows in collected.keys.items():
            replaced = repeated_rows(collected.types[key], rows)
            if replaced.num_rows:
                note_rows(self._left_out, key, replaced)
                self._collected, found = None, True
        return found

    def _leave_out_bad(self, collected: Collected, catalog: Catalog, view: CommittedView) -> bool:
        """Check what depends on other rows; whether rows were left out because of that."""
        found = self._collector()
        bad = check_delta(self._deltas(collected), catalog, view, self._places, found)
        if not self._options.is_skipping_bad or not bad:
            self._set_problems = Violations.together(self._set_problems, found)
            self._is_beyond_mending = found.total > 0  # as for edges an overwrite would orphan
            return False
        for violation in found.listed:
            if violation.line is not None:  # what no record is to blame for shows again, or not
                self._set_problems.add(violation)
        for key, mask in bad.items():
            note_rows(self._bad, key, collected.keys[key].filter(mask))
        # A record that one of these replaced may be good, so those are chosen anew.
        self._left_out = {key: set(rows) for key, rows in self._bad.items()}
        self._collected = None
        return True

    def _deltas(self, collected: Collected) -> dict[str, TableDelta]:
        mode = self._options.mode
        return {
            key: TableDelta(
                type,
                collected.keys[key],
                _NO_IDS,
                is_overwrite=mode is LoadMode.OVERWRITE,
                is_strict=mode is LoadMode.APPEND,
                claimed=pa.concat_arrays([_NO_IDS, *collected.claimed[key]]),
            )
            for key, type in collected.types.items()
        }

    def _settle_problems(self, snapshot: Snapshot, collected: Collected) -> None:
        """Write the reject file, and refuse the load unless bad records may be left out."""
        is_beyond = self._is_beyond_mending or self._would_empty(snapshot, collected)
        settle(
            self._options,
            self._sources,
            self._places,
            self._read_problems,
            self._set_problems,
            is_beyond_mending=is_beyond,
        )

    def _would_empty(self, snapshot: Snapshot, collected: Collected) -> bool:
        """Whether a table would lose its rows because all records for it are bad."""
        return self._options.mode is LoadMode.OVERWRITE and any(
            not keys.num_rows and snapshot.table(key).row_count
            for key, keys in collected.keys.items()
        )

    def _problems(self) -> Violations:
        return Violations.together(self._read_problems, self._set_problems)

    def _stage(
        self, snapshot: Snapshot, table_key: str, collected: Collected
    ) -> UpdateTable | None:
        table, files = self._open(snapshot, table_key), collected.files[table_key]
        if self._options.mode is LoadMode.OVERWRITE:
            replaced = stage_overwrite(table, files)
            done = None if replaced is None else (replaced, TableOperation.OVERWRITE)
        elif self._options.mode is LoadMode.APPEND:
            appended = stage_append(table, files)
            done = None if appended is None else (appended, TableOperation.APPEND)
        else:
            keys = collected.keys[table_key]
            known = keys.column("id").filter(pc.invert(keys.column(FRESH)))
            done = stage_rows(table, files, known.combine_chunks())
        return None if done is None else UpdateTable.of(table_key, *done)

    def _summary(self, collected: Collected) -> dict[str, Any]:
        rows = {key: keys.num_rows for key, keys in sorted(collected.keys.items())}
        return {
            "tables": [[key, count] for key, count in rows.items() if count],
            "rejected": count_records(self._problems()),
            "vectors_made": collected.embedded,
            "vectors_pending": collected.pending,
        }
