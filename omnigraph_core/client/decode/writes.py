"""Results of loads, mutations and backfills from documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.client.decode.commits import decode_landed
from omnigraph_core.client.decode.reading import every
from omnigraph_core.engine.ingest import IngestResult
from omnigraph_core.write.backfill import BackfillResult, EmbeddingStatus
from omnigraph_core.write.load_model import LoadMode, LoadResult, TableLoad
from omnigraph_core.write.mutate import MutationResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.client.decode.reading import Document
    from omnigraph_core.manifest.image import GraphCommit


def decode_load(document: Document, fetch: Callable[[str], GraphCommit]) -> LoadResult:
    return LoadResult(
        branch=document["branch"],
        mode=LoadMode(document["mode"]),
        tables=every(_decode_table, document["tables"]),
        commit=decode_landed(document, fetch),
        records_rejected=document["records_rejected"],
        vectors_made=document["vectors_made"],
        vectors_pending=document["vectors_pending"],
        is_dry_run=document["dry_run"],
        is_repeat=document["repeated"],
        spark=document.get("spark"),
    )


def _decode_table(document: Document) -> TableLoad:
    return TableLoad(document["table_key"], document["rows_loaded"])


def decode_ingest(document: Document, fetch: Callable[[str], GraphCommit]) -> IngestResult:
    return IngestResult(
        branch=document["branch"],
        base_branch=document["base_branch"],
        branch_created=document["branch_created"],
        loaded=decode_load(document, fetch),
        actor_id=document["actor_id"],
    )


def decode_mutation(document: Document, fetch: Callable[[str], GraphCommit]) -> MutationResult:
    return MutationResult(
        branch=document["branch"],
        query_name=document["query_name"],
        affected_nodes=document["affected_nodes"],
        affected_edges=document["affected_edges"],
        commit=decode_landed(document, fetch),
        actor_id=document["actor_id"],
        is_repeat=document["is_repeat"] if "is_repeat" in document else document["repeated"],
    )


def decode_backfill(document: Document) -> BackfillResult:
    return BackfillResult(
        document["branch"],
        document["vectors_made"],
        tuple(document["commits"]),
        spark=document.get("spark"),
    )


def decode_embeddings(document: Document) -> tuple[EmbeddingStatus, ...]:
    return every(_decode_embedding, document["embeddings"])


def _decode_embedding(document: Document) -> EmbeddingStatus:
    return EmbeddingStatus(
        type_name=document["type"],
        property=document["property"],
        model=document["model"],
        ready=document["ready"],
        pending=document["pending"],
        stale=document["stale"],
    )
