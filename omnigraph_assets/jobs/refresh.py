"""Keeps the newest accepted schema as the state of the definitions, and has them loaded anew."""

import tempfile
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.metadata import failures
from omnigraph_assets.names import Names
from omnigraph_assets.resources.graph import open_graph
from omnigraph_assets.schema_state import state_of

LOCATION = "omnigraph"


def build_refresh_job(config: GraphConfig, state_key: str) -> dg.JobDefinition:
    """What the schema watch runs."""
    names = Names(config.name)

    @dg.op(name=names.named("refresh"), required_resource_keys=names.resources)
    def refresh(context: dg.OpExecutionContext) -> None:
        with failures(), open_graph(context, config, needs_spark=False) as graph:
            state = state_of(graph)
        storage = context.instance.defs_state_storage
        if storage is None:
            context.log.warning("The instance keeps no state of definitions: reload them by hand")
        else:
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory) / "state"
                state.write(path)
                storage.upload_state_from_path(state_key, version=str(uuid4()), path=path)
        context.log.info("The definitions are to be those of the schema %s", state.schema_hash)
        if config.webserver_url is not None:
            _reload(config.webserver_url)
        else:
            context.log.warning("Without `webserver_url` the code location is reloaded by hand")

    @dg.job(
        name=names.named("refresh_job"),
        description="Take the accepted schema for the definitions, and load them anew.",
    )
    def refresh_job() -> None:
        refresh()

    return refresh_job


def _reload(address: str) -> None:
    from dagster_graphql import DagsterGraphQLClient  # slow to import, and rarely needed

    parts = urlsplit(address)
    client = DagsterGraphQLClient(
        parts.hostname or "localhost", port_number=parts.port, use_https=parts.scheme == "https"
    )
    reloaded = client.reload_repository_location(LOCATION)
    if reloaded.message is not None:
        raise dg.Failure(f"the code location did not load: {reloaded.message}")
