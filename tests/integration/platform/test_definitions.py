"""What the code location holds for a schema, and how its files are read."""

from __future__ import annotations

import os
from dataclasses import replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.schema_state import read_state, state_of
from omnigraph_core.errors import ConfigError
from tests.support.later import Later

if TYPE_CHECKING:
    from collections.abc import Iterator

    import dagster as dg

    from omnigraph_assets import build, definitions
    from omnigraph_assets.components import graph as components
    from tests.support.platform import Platform
else:
    dg, build = Later("dagster"), Later("omnigraph_assets.build")
    definitions = Later("omnigraph_assets.definitions")
    components = Later("omnigraph_assets.components.graph")

ROOT = Path(__file__).parent.parent.parent.parent
SNAPSHOT = Path(__file__).parent / "definitions.txt"

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]


def described(defs: dg.Definitions) -> Iterator[str]:
    """Everything a reader of the UI would miss, a line for each."""
    for spec in sorted(defs.resolve_all_asset_specs(), key=lambda spec: spec.key):
        deps = " ".join(sorted(dep.asset_key.to_user_string() for dep in spec.deps))
        kinds = ",".join(sorted(spec.kinds))
        is_partitioned = "by branch" if spec.partitions_def else "whole"
        yield f"asset {spec.key.to_user_string()} [{spec.group_name}; {kinds}; {is_partitioned}]"
        yield f"  about {spec.description}"
        yield f"  after {deps}"
        schema = spec.metadata.get("dagster/column_schema")
        if schema is not None:
            columns = (f"{column.name}: {column.type}" for column in schema.columns)
            yield f"  columns {', '.join(columns)}"
        if spec.automation_condition is not None:
            yield f"  automated {spec.automation_condition.get_label()}"
        if spec.freshness_policy is not None:
            yield "  has to be fresh"
    repository = defs.get_repository_def()
    checks = defs.resolve_asset_graph()
    for key in sorted(checks.asset_check_keys, key=str):
        check = checks.get(key)
        word = "blocking check" if check.blocking else "check"
        is_partitioned = "by branch" if check.partitions_def else "whole"
        yield f"{word} {key.asset_key.to_user_string()}:{key.name} [{is_partitioned}]"
    for job in sorted(job.name for job in repository.get_all_jobs()):
        if not job.startswith("__"):
            yield f"job {job}"
    for sensor in sorted(repository.sensor_defs, key=lambda sensor: sensor.name):
        every = f"every {sensor.minimum_interval_seconds} s"
        yield f"sensor {sensor.name} {every} {sensor.default_status.value}"
    for schedule in sorted(repository.schedule_defs, key=lambda schedule: schedule.name):
        yield f"schedule {schedule.name} {schedule.cron_schedule} {schedule.default_status.value}"


def test_the_definitions_of_a_schema(platform: Platform) -> None:
    dg.Definitions.validate_loadable(platform.defs)
    found = "\n".join(described(platform.defs)) + "\n"
    if os.environ.get("CORPUS_UPDATE"):
        SNAPSHOT.write_text(found)
    assert found == SNAPSHOT.read_text()


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_kinds_say_what_makes_an_asset(platform: Platform, engine: str) -> None:
    made = build.build_defs(replace(platform.config, engine=engine), state_of(platform.graph))
    kinds = {"lance", "spark"} if engine == "spark" else {"lance"}
    found = {spec.key.path[1]: spec.kinds for spec in made.resolve_all_asset_specs()}
    assert found == {
        "drops": {"json"},
        **dict.fromkeys(
            (
                "nodes",
                "edges",
                "manifest",
                "embeddings",
                "indexes",
                "topology",
                "compaction",
                "cleanup",
            ),
            kinds,
        ),
    }


def test_lineage_collapsed_to_groups_has_no_cycle(platform: Platform) -> None:
    specs = {spec.key: spec for spec in platform.defs.resolve_all_asset_specs()}
    sorter: TopologicalSorter[str | None] = TopologicalSorter()
    for spec in specs.values():
        before = {specs[dep.asset_key].group_name for dep in spec.deps}
        sorter.add(spec.group_name, *(before - {spec.group_name}))
    groups = list(sorter.static_order())  # raises CycleError
    assert groups[0] == "people_sources"
    assert set(groups) == {
        f"people_{group}"
        for group in (
            "sources",
            "nodes",
            "edges",
            "publish",
            "embeddings",
            "indexes",
            "maintenance",
        )
    }


def test_several_graphs_live_in_one_code_location(platform: Platform) -> None:
    other = GraphConfig("others", platform.config.uri, drops=platform.config.drops)
    both = dg.Definitions.merge(platform.defs, build.build_defs(other, state_of(platform.graph)))
    dg.Definitions.validate_loadable(both)
    graphs = {spec.key.path[0] for spec in both.resolve_all_asset_specs()}
    assert graphs == {"people", "others"}
    with pytest.raises(ConfigError, match="no name for a graph"):
        GraphConfig("not a name", "x")
    with pytest.raises(ConfigError, match="`maintenance_limit` of the graph `others` is 0"):
        GraphConfig("others", "x", maintenance_limit=0)
    with pytest.raises(ConfigError, match="`mode` of the graph `others` is 'overwrite'") as refused:
        GraphConfig("others", "x", mode="overwrite")
    assert "give one of merge, append" in (refused.value.hint or "")


def test_definitions_are_made_from_the_state_that_is_kept(platform: Platform) -> None:
    component = components.GraphComponent(name="people", uri=platform.config.uri)
    kept = platform.directory / "state"
    component.write_state_to_path(kept)
    assert read_state(kept) == state_of(platform.graph)
    platform.graph.schema_apply("node Place { name: String @key }", allow_data_loss=True)

    def keys(path: Path | None, uri: str = platform.config.uri) -> set[str]:
        graph = components.GraphComponent(name="people", uri=uri)
        context = dg.ComponentTree.for_test().load_context
        made = graph.build_defs_from_state(context, path)
        return {spec.key.path[-1] for spec in made.resolve_all_asset_specs()}

    assert {"Person", "Knows"} <= keys(kept)
    assert "Place" in keys(None)
    assert "Person" not in keys(None)
    assert keys(None, str(platform.directory / "nowhere")) == set()


def test_the_files_of_the_repository(
    platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_DAGSTER_STATE", str(tmp_path / "dagster"))
    monkeypatch.setenv("OMNIGRAPH_PLATFORM_GRAPH", platform.config.uri)
    with dg.DagsterInstance.from_config(str(ROOT)) as instance:
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
        limits = instance.get_concurrency_config().run_queue_config
        assert limits is not None
        assert limits.tag_concurrency_limits[0]["key"] == "dagster/partition"
        keys = {spec.key.to_user_string() for spec in definitions.defs().resolve_all_asset_specs()}
    assert {"graph/nodes/Person", "graph/edges/Knows", "graph/manifest", "graph/drops"} <= keys
    workspace = yaml.safe_load((ROOT / "workspace.yaml").read_text())
    (location,) = workspace["load_from"]
    assert location["python_module"]["module_name"] == "omnigraph_assets.definitions"
