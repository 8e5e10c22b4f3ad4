"""The writing half of `Omnigraph`: load, ingest, mutate, embeddings, export, blobs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from omnigraph_core.engine import exports
from omnigraph_core.engine.backfilling import backfill_with
from omnigraph_core.engine.beyond import AUTO, LOCAL, SPARK
from omnigraph_core.engine.ingest import ingest
from omnigraph_core.engine.loading import LoadSteps, load_with
from omnigraph_core.errors import ConfigError, ParameterError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action
from omnigraph_core.write import backfill
from omnigraph_core.write.blobs import find_blob
from omnigraph_core.write.commit import WriteOptions
from omnigraph_core.write.embed import EmbedMode
from omnigraph_core.write.load_model import LoadMode, LoadOptions
from omnigraph_core.write.mutate import run_mutation
from omnigraph_core.write.sources import open_sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.engine.ingest import IngestResult
    from omnigraph_core.engine.rights import Rights
    from omnigraph_core.exec.queries import QueryCache
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.backfill import BackfillResult, EmbeddingStatus
    from omnigraph_core.write.blobs import Blob
    from omnigraph_core.write.export_parquet import ExportedFile
    from omnigraph_core.write.load_model import LoadResult
    from omnigraph_core.write.mutate import MutationResult
    from omnigraph_core.write.progress import Listener
    from omnigraph_core.write.sources import Given, Source


class LoadKeywords(TypedDict, total=False):
    """What `load` and `ingest` can be told."""

    mode: LoadMode | str
    embed: EmbedMode | str
    dry_run: bool
    rejects: str | Path | None
    skip_bad: bool
    progress: Listener | None
    if_commit: str | None
    idempotency_key: str | None
    engine: str
    actor: str | None


class Writes:
    """What changes the rows of a graph, and what takes them out whole."""

    _context: GraphContext
    _queries: QueryCache
    _embedder: Embedder
    _rights: Rights

    def load(
        self,
        data: Given,
        *,
        branch: str = MAIN,
        mode: LoadMode | str = LoadMode.MERGE,
        format: str | None = None,
        type: str | None = None,
        embed: EmbedMode | str = EmbedMode.NOW,
        dry_run: bool = False,
        rejects: str | Path | None = None,
        skip_bad: bool = False,
        progress: Listener | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        engine: str = AUTO,
        actor: str | None = None,
    ) -> LoadResult:
        """Load records into a branch with one commit.

        Args:
            data: a path or an address on S3, of a file, a directory or a pattern such as
                `exports/*.jsonl`; bytes of JSONL, an open file, an Arrow table; or several of
                these.
            format: `jsonl`, `csv`, `parquet` or `arrow`; by default what the name of the file says.
            type: the type of the rows of a table, `Person` or `edge:Knows`.
            rejects: a file to write the records to that break a rule.
            skip_bad: load the good records even so.
            if_commit: refuse unless this commit is the head of the branch.
            idempotency_key: a repeat under the same key loads nothing and returns the same result.
            engine: `local`, `spark`, or by default whichever suits the size of the data.

        Raises:
            DataError: records are malformed or break a rule; carries all of them.
            BranchNotFound: there is no such branch.
            ConflictError: others changed the branch meanwhile.
            EmbeddingError: a vector could not be made.
        """
        actor = self._rights.demand(Action.CHANGE, branch=branch, actor=actor)
        sources = open_sources(data, format=format, type_name=type)
        options = load_options(
            branch,
            mode=mode,
            embed=embed,
            dry_run=dry_run,
            rejects=rejects,
            skip_bad=skip_bad,
            progress=progress,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            actor=actor,
        )
        return load_with(engine, self._context, sources, options, self._embedder)

    def plan_load(
        self,
        run: str,
        data: Given,
        *,
        branch: str = MAIN,
        format: str | None = None,
        type: str | None = None,
        engine: str = SPARK,
        mode: LoadMode | str = LoadMode.MERGE,
        embed: EmbedMode | str = EmbedMode.NOW,
        skip_bad: bool = False,
        types: Sequence[str] | None = None,
        if_commit: str | None = None,
        actor: str | None = None,
    ) -> LoadSteps:
        """Plan a load whose steps run apart; `load_steps` finds it again by the name of its run.

        Args:
            run: a name for it, which is also its idempotency key.
            engine: `spark`, or `local` for steps in the processes that ask for them.
            types: table keys such as `node:Person`; records of other types are passed over.

        The other arguments are those of `load`.

        Raises:
            ConflictError: the run has another plan.
            ConfigError: no run can have such a name, or Spark cannot be started or reached.
        """
        actor = self._rights.demand(Action.CHANGE, branch=branch, actor=actor)
        options = replace(
            load_options(
                branch, mode=mode, embed=embed, skip_bad=skip_bad, if_commit=if_commit, actor=actor
            ),
            only=None if types is None else tuple(sorted(types)),
        )
        steps = LoadSteps(self._context, branch, run, engine)
        steps.plan(open_sources(data, format=format, type_name=type), options)
        return steps

    def load_steps(
        self, run: str, *, branch: str = MAIN, engine: str = SPARK, actor: str | None = None
    ) -> LoadSteps:
        """The steps of a planned load, in this process or in any other.

        Raises:
            ConfigError: no run can have such a name, or Spark cannot be started or reached.
        """
        self._rights.demand(Action.CHANGE, branch=branch, actor=actor)
        return LoadSteps(self._context, branch, run, engine)

    def ingest(
        self,
        data: Given,
        *,
        branch: str = MAIN,
        source: str = MAIN,
        format: str | None = None,
        type: str | None = None,
        **options: Unpack[LoadKeywords],
    ) -> IngestResult:
        """Load into a branch, forking it from `source` first if it is missing.

        The other arguments, and what is raised, are those of `load`. A new branch stays even if the
        load is refused.
        """
        given = options.get("actor")
        options["actor"] = self._rights.demand(Action.CHANGE, branch=branch, actor=given)

        def may_fork() -> None:
            self._rights.demand(
                Action.BRANCH_CREATE, branch=source, target_branch=branch, actor=given
            )

        sources = open_sources(data, format=format, type_name=type)
        chosen = load_options(branch, **options)
        engine = options.get("engine", AUTO)
        return ingest(
            self._context,
            source,
            chosen,
            lambda given: load_with(engine, self._context, sources, given, self._embedder),
            may_fork=may_fork,
        )

    def mutate(
        self,
        query: str,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str = MAIN,
        embed: EmbedMode | str = EmbedMode.NOW,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        actor: str | None = None,
    ) -> MutationResult:
        """Run a mutation: all of its statements with one commit, or none.

        Args:
            name: which query of the text; may be left out when there is only one.
            if_commit: refuse unless this commit is the head of the branch.
            idempotency_key: a repeat under the same key changes nothing and has the same result.

        Raises:
            CompileError: the query is wrong.
            ConfigError: the query is a read.
            DataError: parameters or rows break a rule; carries every problem.
            ConflictError: others changed the branch meanwhile.
            EmbeddingError: a vector could not be made.
        """
        actor = self._rights.demand(Action.CHANGE, branch=branch, actor=actor)
        return run_mutation(
            self._context,
            lambda catalog: self._queries.compiled(query, name, catalog),
            params,
            WriteOptions(branch, if_commit, idempotency_key, actor),
            embedder=self._embedder,
            embed=_embed(embed),
            digest=None if idempotency_key is None else _digest(query, name, params, embed),
        )

    # Embeddings

    def embedding_status(self, target: str | ReadTarget = MAIN) -> tuple[EmbeddingStatus, ...]:
        """How many vectors of each embedded property are ready, pending and stale.

        Raises:
            NotFoundError: no such branch, commit or tag.
        """
        snapshot = self._resolve(Action.READ, target)
        return backfill.embedding_status(self._context, snapshot, self._embedder)

    def embed_backfill(
        self,
        *,
        branch: str = MAIN,
        progress: Listener | None = None,
        engine: str = AUTO,
        actor: str | None = None,
    ) -> BackfillResult:
        """Make the vectors that are pending or stale, some at a time, with a commit for each part.

        From `OMNIGRAPH_EMBED_BATCH_FROM` texts on, the provider's batch API makes them first; that
        may take a day. A backfill that is stopped meanwhile is continued by the next one.

        Args:
            engine: `spark` has executors ask the provider together, within its limits, and makes
                one commit. Anything else is done in this process.

        Raises:
            BranchNotFound: there is none of that name.
            EmbeddingError: a vector could not be made; those of earlier parts are kept.
        """
        actor = self._rights.demand(Action.CHANGE, branch=branch, actor=actor)
        options = WriteOptions(branch, actor=actor)
        return backfill_with(engine, self._context, options, self._embedder, progress=progress)

    # Out of the graph

    def export_jsonl(
        self,
        target: str | ReadTarget = MAIN,
        *,
        types: Sequence[str] = (),
        table_keys: Sequence[str] = (),
    ) -> Iterator[bytes]:
        """A snapshot as JSONL that `load` reads back, in pieces of whole lines.

        The snapshot is safe from cleanup while it is being read.

        Raises:
            NotFoundError: no such branch, commit or tag.
            ConfigError: no such type or table.
        """
        snapshot = self._resolve(Action.EXPORT, target)
        return exports.stream_jsonl(self._context, snapshot, types, table_keys)

    def export_parquet(
        self,
        directory: str | Path,
        target: str | ReadTarget = MAIN,
        *,
        types: Sequence[str] = (),
        table_keys: Sequence[str] = (),
    ) -> tuple[ExportedFile, ...]:
        """A snapshot as one Parquet file per type, below `nodes` and `edges` of a directory.

        Raises:
            NotFoundError: no such branch, commit or tag.
            ConfigError: no such type or table, or the directory cannot be written.
        """
        snapshot = self._resolve(Action.EXPORT, target)
        path = Path(directory)
        return exports.write_parquet(self._context, snapshot, types, table_keys, path)

    def open_blob(
        self, type: str, id: str, property: str, *, target: str | ReadTarget = MAIN
    ) -> Blob:
        """A blob to read from, or the address it is kept at.

        Raises:
            NotFoundError: no such row, branch, commit or tag.
            ConfigError: no such type, or no such Blob property.
        """
        snapshot = self._resolve(Action.READ, target)

        def open_table(table_key: str) -> Table:
            entry = snapshot.table(table_key)
            return self._context.table(entry.location, entry.physical_version)

        return find_blob(accepted_catalog(snapshot.schema), open_table, type, id, property)

    def read_blob(
        self,
        type: str,
        id: str,
        property: str,
        *,
        offset: int = 0,
        length: int | None = None,
        target: str | ReadTarget = MAIN,
    ) -> bytes | None:
        """The bytes of a blob, or some of them; None if it is null.

        Raises:
            NotFoundError: no such row, branch, commit or tag.
            ConfigError: no such property, or the blob is kept elsewhere.
        """
        return self.open_blob(type, id, property, target=target).read(offset, length)

    def _resolve(self, action: Action, target: str | ReadTarget) -> Snapshot:
        """The snapshot, if the action is allowed there."""
        chosen = ReadTarget(branch=target) if isinstance(target, str) else target
        return self._rights.demand_at(self._context, action, chosen).snapshot


def load_sources(
    graph: Writes, sources: Sequence[Source], options: LoadOptions, *, engine: str = LOCAL
) -> LoadResult:
    """As `Omnigraph.load`, of sources that are open already."""
    write = options.write
    actor = graph._rights.demand(Action.CHANGE, branch=write.branch, actor=write.actor)
    acting = replace(options, write=replace(write, actor=actor))
    return load_with(engine, graph._context, sources, acting, graph._embedder)


def load_options(branch: str, **given: Unpack[LoadKeywords]) -> LoadOptions:
    """How to load, as callers say it.

    Raises:
        ConfigError: no such mode, or way to embed.
    """
    rejects = given.get("rejects")
    return LoadOptions(
        mode=_mode(given.get("mode", LoadMode.MERGE)),
        write=WriteOptions(
            branch, given.get("if_commit"), given.get("idempotency_key"), given.get("actor")
        ),
        embed=_embed(given.get("embed", EmbedMode.NOW)),
        is_dry_run=given.get("dry_run", False),
        is_skipping_bad=given.get("skip_bad", False),
        rejects=None if rejects is None else Path(rejects),
        progress=given.get("progress"),
    )


def _digest(query: str, name: str | None, params: Mapping[str, object] | None, embed: str) -> str:
    """What tells a mutation from another one; a parameter that is null may be left out."""
    given = {key: value for key, value in (params or {}).items() if value is not None}
    try:
        request = json.dumps([query, name, given, embed], default=str, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ParameterError([f"the parameters are no JSON values: {problem}"]) from problem
    return hashlib.sha256(request.encode()).hexdigest()


def _mode(mode: LoadMode | str) -> LoadMode:
    if mode not in tuple(LoadMode):
        raise ConfigError(f"unknown mode {mode!r}", hint=f"use {', '.join(LoadMode)}")
    return LoadMode(mode)


def _embed(mode: EmbedMode | str) -> EmbedMode:
    if mode not in tuple(EmbedMode):
        raise ConfigError(f"unknown way to embed {mode!r}", hint=f"use {', '.join(EmbedMode)}")
    return EmbedMode(mode)
