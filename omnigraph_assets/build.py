"""Everything the platform has of one graph, put together: used by the component and by tests."""

import dagster as dg

from omnigraph_assets.accepted import AcceptedState, state_key
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.drop_sensor import build_drop_sensor
from omnigraph_assets.jobs import load_job
from omnigraph_assets.load import build_load
from omnigraph_assets.names import Names
from omnigraph_assets.notify import build_failure_hook
from omnigraph_assets.publish import build_publish_guard, build_publish_job
from omnigraph_assets.refresh import build_refresh_job
from omnigraph_assets.specs import drops_spec
from omnigraph_assets.watch import build_branch_sync, build_manifest_watch, build_schema_watch


def build_defs(config: GraphConfig, state: AcceptedState | None) -> dg.Definitions:
    """The definitions of a graph; while there is no schema, only what waits for one."""
    names = Names(config.name)
    refresh = build_refresh_job(config, state_key(config.name))
    watch = build_schema_watch(config, state, refresh)
    if state is None:
        return dg.Definitions(jobs=[refresh], sensors=[watch])
    load = build_load(config, state)
    loading, publishing = load_job(names, load), build_publish_job(config)
    sensors = [
        watch,
        build_branch_sync(config),
        build_manifest_watch(config),
        build_publish_guard(config, publishing),
    ]
    if config.drops is not None:
        sensors.append(build_drop_sensor(config, loading))
    if config.failure_webhook is not None:
        sensors.append(build_failure_hook(config, [loading, publishing, refresh]))
    return dg.Definitions(
        assets=[drops_spec(config), load],
        jobs=[loading, publishing, refresh],
        sensors=sensors,
        executor=dg.in_process_executor,
    )
