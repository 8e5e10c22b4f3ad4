"""Everything the platform has of one graph, put together: used by the component and by tests."""

import warnings
from typing import Any

import dagster as dg

from omnigraph_assets.assets.checks import build_checks
from omnigraph_assets.assets.embeddings import build_embeddings
from omnigraph_assets.assets.indexes import build_indexes
from omnigraph_assets.assets.load import build_load
from omnigraph_assets.assets.maintenance import build_maintenance
from omnigraph_assets.assets.tables import drops_spec
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.jobs.asset_jobs import (
    check_job,
    derived_job,
    enrich_jobs,
    load_job,
    maintenance_jobs,
)
from omnigraph_assets.jobs.branches import build_branch_jobs
from omnigraph_assets.jobs.refresh import build_refresh_job
from omnigraph_assets.jobs.retention import build_retention_job
from omnigraph_assets.names import Names
from omnigraph_assets.resources.graph import GraphResource
from omnigraph_assets.resources.spark import SparkResource
from omnigraph_assets.schedules import build_schedules
from omnigraph_assets.schema_state import AcceptedState, state_key
from omnigraph_assets.sensors.automation import build_automation
from omnigraph_assets.sensors.commits import build_commits_sensor
from omnigraph_assets.sensors.failures import build_failure_hook
from omnigraph_assets.sensors.landing import build_drop_sensor
from omnigraph_assets.sensors.publish import build_publish_guard, build_publish_job
from omnigraph_assets.sensors.schema import build_first_schema_sensor


def build_defs(config: GraphConfig, state: AcceptedState | None) -> dg.Definitions:
    """The definitions of a graph; while there is no schema, only what waits for one."""
    with warnings.catch_warnings():
        # Parts of Dagster that are young, and used on purpose.
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return _build_defs(config, state)


def _build_defs(config: GraphConfig, state: AcceptedState | None) -> dg.Definitions:
    names = Names(config.name)
    refresh = build_refresh_job(config, state_key(config.name))
    if state is None:
        waiting = build_first_schema_sensor(config, refresh)
        return dg.Definitions(jobs=[refresh], sensors=[waiting], resources=_resources(config))
    load, checks = build_load(config, state), build_checks(config)
    made = [build_embeddings(config, state), build_indexes(config, state)]
    derived = [assets for assets in made if assets is not None]
    deriving = derived_job(names, derived)
    loading, publishing = load_job(names, load), build_publish_job(config, state)
    checking, maintenance = check_job(names, checks), maintenance_jobs(names)
    jobs = [
        loading,
        publishing,
        refresh,
        checking,
        deriving,
        *enrich_jobs(derived),
        *maintenance.values(),
        *build_branch_jobs(config),
    ]
    retention = build_retention_job(config, [job.name for job in jobs])
    jobs.append(retention)
    sensors = [
        build_commits_sensor(config, state, refresh),
        build_automation(config, state, deriving),
        build_publish_guard(config, state, publishing),
    ]
    if config.drops is not None:
        sensors.append(build_drop_sensor(config, state, loading))
    if config.failure_webhook is not None:
        sensors.append(build_failure_hook(config, jobs))
    return dg.Definitions(
        assets=[drops_spec(config), load, *derived, build_maintenance(config)],
        asset_checks=checks,
        jobs=jobs,
        sensors=sensors,
        schedules=build_schedules(config, maintenance, checking, retention),
        resources=_resources(config),
        executor=dg.in_process_executor,
    )


def _resources(config: GraphConfig) -> dict[str, Any]:
    names = Names(config.name)
    return {
        names.graph_resource: GraphResource(uri=config.uri, actor=config.actor),
        names.spark_resource: SparkResource(spark_config=dict(config.spark_config)),
    }
