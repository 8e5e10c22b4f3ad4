"""Which version of every table is visible together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from omnigraph_core.server.access import Graph
from omnigraph_core.server.answers import answer, not_modified
from omnigraph_core.server.errors import errors
from omnigraph_core.server.targets import which
from omnigraph_core.server.threads import reading
from omnigraph_core.server.wire import SnapshotOutput, Version

if TYPE_CHECKING:
    from omnigraph_core.manifest.snapshot import Snapshot

router = APIRouter(tags=["snapshots"])


@router.get(
    "/snapshot",
    operation_id="getSnapshot",
    summary="The tables of a snapshot",
    responses={200: {"model": SnapshotOutput}, 304: {"description": "As it was."}, **errors(404)},
)
async def get_snapshot(
    request: Request,
    graph: Graph,
    branch: str | None = None,
    snapshot: str | None = None,
    tag: str | None = None,
    version: Version | None = None,
    at: str | None = None,
) -> Response:
    place = which(branch, snapshot, tag, version, at)
    found = await reading(lambda: place.found(graph.graph))
    # A branch made anew may have the same commit.
    state = f"{found.commit.graph_commit_id}.{found.incarnation}"
    return not_modified(request, state) or answer(_document(found), commit_id=state)


def _document(found: Snapshot) -> dict[str, object]:
    return {
        "branch": found.branch,
        "manifest_version": found.manifest_version,
        "tables": [
            {
                "table_key": entry.table_key,
                "table_path": entry.location,
                "table_version": entry.table_version,
                "table_branch": entry.branch,
                "row_count": entry.row_count,
                "physical_version": str(entry.physical_version),
                "fragment_count": entry.fragment_count,
                "operation": str(entry.operation),
            }
            for _, entry in sorted(found.tables.items())
        ],
        "graph_commit_id": found.commit.graph_commit_id,
        "commit": found.commit.to_json(),
        "incarnation": found.incarnation,
        "schema_hash": found.schema.hash,
    }
