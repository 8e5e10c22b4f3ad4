"""Everything the platform has of one graph, put together: used by the component and by tests."""

import dagster as dg

from omnigraph_assets.accepted import AcceptedState
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.jobs import load_job
from omnigraph_assets.load import build_load
from omnigraph_assets.names import Names
from omnigraph_assets.specs import drops_spec


def build_defs(config: GraphConfig, state: AcceptedState | None) -> dg.Definitions:
    """The definitions of a graph whose schema is known; without one there is nothing to load."""
    if state is None:
        return dg.Definitions()
    names = Names(config.name)
    load = build_load(config, state)
    return dg.Definitions(
        assets=[drops_spec(config), load],
        jobs=[load_job(names, load)],
        executor=dg.in_process_executor,
    )
