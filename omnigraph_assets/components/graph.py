"""A graph in a `defs.yaml`: its settings come in, the definitions made from its schema go out.

The accepted schema is kept as state of the definitions: all processes of a deployment make the same
ones until the state is refreshed, and a run that was made for another schema is refused.
"""

from pathlib import Path

import dagster as dg
from dagster.components import DefsStateConfig, DefsStateConfigArgs, ResolvedDefsStateConfig
from pydantic import Field

from omnigraph_assets.build import build_defs
from omnigraph_assets.config import ACTOR, SPARK, GraphConfig
from omnigraph_assets.schema_state import read_state, state_key, state_of
from omnigraph_core.errors import GraphNotFound


class GraphComponent(dg.StateBackedComponent, dg.Model, dg.Resolvable):
    """One graph as assets, checks, sensors, schedules and jobs."""

    name: str
    uri: str
    drops: str | None = None
    mode: str = "merge"
    embed: str = "off"
    engine: str = SPARK
    spark_config: dict[str, str] = Field(default_factory=dict)
    settle_seconds: float = 1.0
    server_url: str | None = None
    owners: list[str] = Field(default_factory=list)
    actor: str = ACTOR
    keep_versions: int = 100
    scheduled_cleanup: bool = False
    fresh_within_hours: float | None = 48.0
    failure_webhook: str | None = None
    webserver_url: str | None = None
    embedding_limit: int = 1
    maintenance_limit: int = 2
    keep_runs_days: int = 30
    defs_state: ResolvedDefsStateConfig = DefsStateConfigArgs.versioned_state_storage()

    @property
    def graph_config(self) -> GraphConfig:
        """The settings; texts that are empty, as unset variables are, count as not given."""
        return GraphConfig(
            name=self.name,
            uri=self.uri,
            drops=self.drops or None,
            mode=self.mode,
            embed=self.embed,
            engine=self.engine or SPARK,
            spark_config=self.spark_config,
            settle_seconds=self.settle_seconds,
            server_url=self.server_url or None,
            owners=tuple(self.owners),
            actor=self.actor,
            keep_versions=self.keep_versions,
            scheduled_cleanup=self.scheduled_cleanup,
            fresh_within_hours=self.fresh_within_hours,
            failure_webhook=self.failure_webhook or None,
            webserver_url=self.webserver_url or None,
            embedding_limit=self.embedding_limit,
            maintenance_limit=self.maintenance_limit,
            keep_runs_days=self.keep_runs_days,
        )

    @property
    def defs_state_config(self) -> DefsStateConfig:
        return DefsStateConfig.from_args(self.defs_state, default_key=state_key(self.name))

    def write_state_to_path(self, state_path: Path) -> None:
        with self.graph_config.open() as graph:
            state_of(graph).write(state_path)

    def build_defs_from_state(
        self, context: dg.ComponentLoadContext, state_path: Path | None
    ) -> dg.Definitions:
        if state_path is not None:
            return build_defs(self.graph_config, read_state(state_path))
        # Nothing was kept yet: the schema as it is, and if there is no graph, what waits for one.
        try:
            with self.graph_config.open() as graph:
                return build_defs(self.graph_config, state_of(graph))
        except GraphNotFound:
            return build_defs(self.graph_config, None)
