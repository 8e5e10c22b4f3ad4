"""A small graph as the platform runs it: drop directory, definitions and an instance."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.schema_state import state_of
from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.later import Later

if TYPE_CHECKING:
    from pathlib import Path

    import dagster as dg

    from omnigraph_assets import build
else:
    dg, build = Later("dagster"), Later("omnigraph_assets.build")

SCHEMA = """
node Person @description("Who can be asked") {
    name: String @key @description("As they sign")
    age: I32?
    bio: String? @index
    vector: Vector(8)? @embed(bio) @index
    @range(age, 0..150)
}

node Company {
    name: String @key
}

edge Knows: Person -> Person {
    since: Date?
}

edge WorksAt: Person -> Company
"""

WIDER = SCHEMA + "\nnode Place {\n    name: String @key\n}\n"

PEOPLE = (
    {"type": "Person", "data": {"name": "ann", "age": 31, "bio": "keeps bees"}},
    {"type": "Person", "data": {"name": "bob", "bio": "mends clocks"}},
    {"edge": "Knows", "from": "ann", "to": "bob"},
)


@dataclass
class Platform:
    """One graph of the platform, in a directory."""

    directory: Path
    graph: Omnigraph
    config: GraphConfig
    instance: dg.DagsterInstance
    defs: dg.Definitions

    def drop(self, name: str, *records: object, branch: str = "main") -> Path:
        """Drop a file that has settled."""
        folder = self.directory / "drops" / branch
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        lines = [item if isinstance(item, str) else json.dumps(item) for item in records]
        path.write_text("\n".join(lines) + "\n")
        return path

    def reload(self) -> None:
        """Make the definitions anew, from the schema as it is."""
        self.defs = build.build_defs(self.config, state_of(self.graph))

    def load(self, branch: str = "main", **more: Any) -> dg.ExecuteInProcessResult:
        """Run the load of a branch."""
        return self.run("load", branch, **more)

    def run(
        self, job: str, branch: str | None = None, *, plan: Any = None, **more: Any
    ) -> dg.ExecuteInProcessResult:
        """Run a job of the graph to its end, well or not."""
        name = self.config.name
        config: Any = more.pop("run_config", None)
        checks = more.pop("asset_check_keys", None)
        if plan is not None:
            config = {"ops": {f"{name}_load": {"ops": {f"{name}_plan": plan}}}}
        with dg.partition_loading_context(dynamic_partitions_store=self.instance):
            chosen = self.defs.resolve_job_def(f"{name}_{job}_job")
            if checks is not None:  # as the daemon launches what a sensor requests
                chosen = chosen.get_subset(
                    asset_selection=set(more.pop("asset_selection")),
                    asset_check_selection=set(checks),
                )
            return chosen.execute_in_process(
                instance=self.instance,
                partition_key=branch,
                run_config=config,
                raise_on_error=False,
                **more,
            )

    def head(self, branch: str = "main") -> str:
        return self.graph.head_commit_id_for_branch(branch)

    def rows(self, table_key: str, branch: str = "main") -> int:
        return self.graph.snapshot(branch).table(table_key).row_count


def make_platform(
    directory: Path, instance: dg.DagsterInstance, *, root: str | None = None, **settings: Any
) -> Platform:
    """A graph of people with a drop directory, below `root` if that is elsewhere."""
    root = str(directory) if root is None else root
    graph = Omnigraph.init(f"{root}/graph", SCHEMA)
    given = {"drops": f"{root}/drops", "settle_seconds": 0.0, "engine": "local", **settings}
    config = GraphConfig("people", f"{root}/graph", **given)
    instance.add_dynamic_partitions("people_branches", ["main"])
    return Platform(directory, graph, config, instance, build.build_defs(config, state_of(graph)))


def tick(platform: Platform, sensor: str, cursor: str | None = None) -> Any:
    """One look of a sensor; its result, with requests and cursor."""
    repository = platform.defs.get_repository_def()
    definition = repository.get_sensor_def(f"people_{sensor}")
    with (
        dg.partition_loading_context(dynamic_partitions_store=platform.instance),
        dg.build_sensor_context(
            instance=platform.instance, cursor=cursor, repository_def=repository
        ) as context,
    ):
        return definition.evaluate_tick(context)


def look(platform: Platform) -> Any:
    """A tick of the drop sensor that has no memory of others."""
    return tick(platform, "drops_sensor")


def carry_out(platform: Platform, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
    (plan,) = request.run_config["ops"]["people_load"]["ops"].values()
    return platform.run(
        "load",
        request.partition_key,
        plan=plan,
        tags=dict(request.tags),
        asset_selection=request.asset_selection,
        asset_check_keys=request.asset_check_keys,
    )


def told(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    """What was materialised: metadata by key."""
    events = result.get_asset_materialization_events()
    return {
        event.asset_key.to_user_string(): {
            name: value.value for name, value in event.materialization.metadata.items()
        }
        for event in events
        if event.asset_key is not None
    }


def age(path: Path, seconds: float) -> None:
    """Make a file look as if it had been written some time ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))
