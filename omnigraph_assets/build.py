"""Everything the platform has of one graph, put together: used by the component and by tests."""

from typing import Any

import dagster as dg

from omnigraph_assets.accepted import AcceptedState, state_key
from omnigraph_assets.branch_jobs import build_branch_jobs
from omnigraph_assets.checks import build_checks
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.drop_sensor import build_drop_sensor
from omnigraph_assets.enrich import build_embeddings, build_indexes
from omnigraph_assets.jobs import check_job, enrich_jobs, load_job
from omnigraph_assets.load import build_load
from omnigraph_assets.maintenance import build_maintenance, build_schedules
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
    load, checks = build_load(config, state), build_checks(config)
    made = [build_embeddings(config, state), build_indexes(config, state)]
    derived = [assets for assets in made if assets is not None]
    upkeep, schedules = build_schedules(config)
    loading, publishing = load_job(names, load), build_publish_job(config)
    jobs = [
        loading,
        publishing,
        refresh,
        check_job(names, checks),
        *enrich_jobs(names, derived),
        *upkeep,
        *build_branch_jobs(config),
    ]
    sensors = [
        watch,
        build_branch_sync(config),
        build_manifest_watch(config),
        build_publish_guard(config, publishing),
        _automation(names, derived),
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
        schedules=schedules,
        executor=dg.in_process_executor,
    )


def _automation(names: Names, derived: list[Any]) -> dg.SensorDefinition:
    """Ours, because the one that Dagster makes by itself starts stopped."""
    return dg.AutomationConditionSensorDefinition(
        names.named("automation"),
        target=dg.AssetSelection.assets(*(key for assets in derived for key in assets.keys)),
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=15,
    )
