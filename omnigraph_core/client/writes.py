"""The writing half of a graph behind a server: load, ingest, mutate, embeddings, export, blobs.

Every write goes under a key, the caller's or one of its own: if the answer is lost it is sent again
and is done once. Values made by modules that load the storage are imported where they are needed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph_core.client.branches import Branches
from omnigraph_core.client.decode.reading import understood
from omnigraph_core.client.jobs import Jobs
from omnigraph_core.client.places import place_of, refuse_actor, refuse_engine
from omnigraph_core.client.requests import NDJSON, ask, get, upload, write
from omnigraph_core.client.streams import Lines
from omnigraph_core.manifest.image import MAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    from omnigraph_core.engine.ingest import IngestResult
    from omnigraph_core.engine.writes import LoadKeywords
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.write.backfill import BackfillResult, EmbeddingStatus
    from omnigraph_core.write.blobs import Blob
    from omnigraph_core.write.embed import EmbedMode
    from omnigraph_core.write.export_parquet import ExportedFile
    from omnigraph_core.write.load_model import LoadMode, LoadResult
    from omnigraph_core.write.mutate import MutationResult
    from omnigraph_core.write.progress import Listener
    from omnigraph_core.write.sources import Given

_MERGE = "merge"
_NOW = "now"
_AUTO = "auto"
"""What a graph at hand has for a default; a test compares them."""


class Writes(Branches, Jobs):
    """What changes the rows of a graph, and what takes them out whole."""

    def load(
        self,
        data: Given,
        *,
        branch: str = MAIN,
        mode: LoadMode | str = _MERGE,
        format: str | None = None,
        type: str | None = None,
        embed: EmbedMode | str = _NOW,
        dry_run: bool = False,
        rejects: str | Path | None = None,
        skip_bad: bool = False,
        progress: Listener | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        engine: str = _AUTO,
        actor: str | None = None,
    ) -> LoadResult:
        """Load records into a branch with one commit; see `Omnigraph.load`.

        Much data, or several files, are loaded as a job: `progress` is told how far it is.
        """
        from omnigraph_core.client.decode.writes import decode_load

        document = self._loaded(
            data,
            format,
            type,
            None,
            branch=branch,
            mode=mode,
            embed=embed,
            dry_run=dry_run,
            rejects=rejects,
            skip_bad=skip_bad,
            progress=progress,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            engine=engine,
            actor=actor,
        )
        return understood(lambda found: decode_load(found, self.get_commit), document)

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
        """Load into a branch, forking it from `source` first if it is missing."""
        from omnigraph_core.client.decode.writes import decode_ingest

        document = self._loaded(data, format, type, source, branch=branch, **options)
        return understood(lambda found: decode_ingest(found, self.get_commit), document)

    def mutate(
        self,
        query: str,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str = MAIN,
        embed: EmbedMode | str = _NOW,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        actor: str | None = None,
    ) -> MutationResult:
        """Run a mutation: all of its statements with one commit, or none."""
        from omnigraph_core.client.decode.writes import decode_mutation

        refuse_actor(actor)
        call = write(
            "POST",
            "/mutate",
            {"query": query, "name": name, "params": params, "branch": branch, "embed": embed},
            key=idempotency_key,
            if_commit=if_commit,
        )
        document = self._http.fetch(call)
        return understood(lambda found: decode_mutation(found, self.get_commit), document)

    # Embeddings

    def embedding_status(self, target: str | ReadTarget = MAIN) -> tuple[EmbeddingStatus, ...]:
        """How many vectors of each embedded property are ready, pending and stale."""
        from omnigraph_core.client.decode.writes import decode_embeddings

        call = get("/embeddings", **place_of(target))
        return understood(decode_embeddings, self._http.fetch(call))

    def embed_backfill(
        self,
        *,
        branch: str = MAIN,
        progress: Listener | None = None,
        engine: str = _AUTO,
        actor: str | None = None,
    ) -> BackfillResult:
        """Make the vectors that are pending or stale, some at a time, with a commit for each."""
        from omnigraph_core.client.decode.writes import decode_backfill

        refuse_engine(engine)
        refuse_actor(actor)
        call = write("POST", "/embeddings/backfill", {"branch": branch})
        return understood(decode_backfill, self._worked(call, progress))

    # Out of the graph

    def export_jsonl(
        self,
        target: str | ReadTarget = MAIN,
        *,
        types: Sequence[str] = (),
        table_keys: Sequence[str] = (),
    ) -> Iterator[bytes]:
        """A snapshot as JSONL that `load` reads back, in pieces of whole lines.

        Names are checked now; lines are read as they are asked for. Closing it ends the export.
        """
        return self._lines(place_of(target), types, table_keys)

    def export_parquet(
        self,
        directory: str | Path,
        target: str | ReadTarget = MAIN,
        *,
        types: Sequence[str] = (),
        table_keys: Sequence[str] = (),
    ) -> tuple[ExportedFile, ...]:
        """A snapshot as one Parquet file per type, below `nodes` and `edges` of a directory.

        Made here of what `export_jsonl` gives.
        """
        from omnigraph_core.client.parquet import write_parquet

        snapshot = self.snapshot_of(target)
        lines = self._lines(place_of(snapshot), types, table_keys)
        path = Path(directory)
        try:
            return write_parquet(lines, snapshot.schema, path, types=types, table_keys=table_keys)
        finally:
            lines.close()

    def open_blob(
        self, type: str, id: str, property: str, *, target: str | ReadTarget = MAIN
    ) -> Blob:
        """A blob to read from, or the address it is kept at."""
        from omnigraph_core.client.blobs import find_blob

        # Of one commit: whatever is read later is part of the same bytes.
        at = self.snapshot_of(target).commit.graph_commit_id
        call = get("/blob", type=type, id=id, property=property, snapshot=at)
        return find_blob(self._http, call)

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
        """The bytes of a blob, or some of them; None if it is null."""
        return self.open_blob(type, id, property, target=target).read(offset, length)

    def _lines(
        self, place: Mapping[str, object], types: Sequence[str], table_keys: Sequence[str]
    ) -> Lines:
        given = {"type_names": list(types), "table_keys": list(table_keys)}
        call = ask("/export", **place, **given).accepting(NDJSON)
        return Lines(call, self._http.url, self._http.open(call))

    def _loaded(
        self,
        data: Given,
        format: str | None,
        type: str | None,
        source: str | None,
        *,
        branch: str,
        **options: Unpack[LoadKeywords],
    ) -> Any:
        """The answer to a load; rejected records are written where they are wanted."""
        from omnigraph_core.client.rejects import Rejects
        from omnigraph_core.client.uploads import plan_upload
        from omnigraph_core.engine.writes import load_options
        from omnigraph_core.write.sources import open_sources

        refuse_actor(options.get("actor"))
        refuse_engine(options.get("engine", _AUTO))
        chosen = load_options(branch, **options)
        planned = plan_upload(open_sources(data, format=format, type_name=type))
        wanted = options.get("rejects")
        rejects = Rejects(None if wanted is None else Path(wanted), planned.renamed)
        if wanted is not None:
            planned.check_rejects(Path(wanted))
        call = upload(
            planned.path,
            planned.content,
            planned.headers,
            key=options.get("idempotency_key"),
            if_commit=options.get("if_commit"),
            branch=branch,
            from_=source,
            mode=chosen.mode,
            embed=chosen.embed,
            dry_run=options.get("dry_run", False),
            skip_bad=options.get("skip_bad", False),
            rejects=wanted is not None,
            **planned.parameters,
        )
        call = replace(call, mend=rejects.of_error)
        progress = options.get("progress")
        is_job = planned.is_long or progress is not None
        found = self._worked(call, progress) if is_job else self._http.fetch(call)
        return rejects.of_answer(found)
