"""The operations of the server, a router for each group of them."""

from __future__ import annotations

from typing import Final

from omnigraph_core.server.routes import (
    blobs,
    branches,
    changes,
    commits,
    history,
    indexes,
    jobs,
    maintenance,
    meta,
    mutations,
    queries,
    runs,
    schema,
    snapshots,
    stored,
    tags,
    uploads,
)

ROUTERS: Final = (
    queries.router,
    meta.router,
    mutations.router,
    snapshots.router,
    schema.router,
    uploads.router,
    changes.router,
    history.router,
    tags.router,
    maintenance.router,
    indexes.router,
    blobs.router,
    jobs.router,
    stored.router,
    branches.router,
    commits.router,
    runs.router,
)
"""In the order in which a path is looked for."""
