"""The graph as a resource of Dagster: assets ask for it, and open it for as long as they need."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from omnigraph_assets.config import ACTOR, SPARK, GraphConfig
from omnigraph_assets.names import Names
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.job_report import job_facts

RunContext = dg.OpExecutionContext | dg.AssetExecutionContext | dg.AssetCheckExecutionContext


class GraphResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A graph by its address; what is written is written by `actor`."""

    uri: str
    actor: str = ACTOR

    def open(self) -> Omnigraph:
        """
        Raises:
            GraphNotFound: there is none at its address.
        """
        return Omnigraph.open(self.uri, actor=self.actor)


@contextmanager
def open_graph(
    context: RunContext, config: GraphConfig, *, needs_spark: bool = True
) -> Iterator[Omnigraph]:
    """The graph of a run, and Spark if that is its engine; jobs of Spark bear the run's id.

    Args:
        needs_spark: whether the work may run on Spark; what is done in this process alone does not
            wait for a server of Spark.

    Raises:
        GraphNotFound: there is none at its address.
        ConfigError: Spark cannot be started or reached.
    """
    names = Names(config.name)
    if needs_spark and config.engine == SPARK:
        # The engine adopts the session that is active; opened first, nothing is half done.
        _ = getattr(context.resources, names.spark_resource).spark_session
    branch = context.partition_key if context.has_partition_key else None
    resource: GraphResource = getattr(context.resources, names.graph_resource)
    with job_facts(run=context.run.run_id, branch=branch), resource.open() as graph:
        yield graph
