"""The pipeline example runs: a file, a transformation, four types, one commit."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from examples.pipeline.generate import main
from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.later import Later

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import dagster as dg

    from examples.pipeline import definitions
else:
    dg, definitions = Later("dagster"), Later("examples.pipeline.definitions")

TABLES = {"node:Port": 4, "node:Ship": 3, "edge:Route": 12, "edge:Serves": 12}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Omnigraph]:
    main(tmp_path)
    with Omnigraph.open(str(tmp_path / "graph")) as opened:
        yield opened


def run(folder: Path, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    job = definitions.build_definitions(folder).resolve_job_def("sailings_to_graph")
    return job.execute_in_process(instance=instance)


def rows_of(graph: Omnigraph) -> dict[str, int]:
    return {key: entry.row_count for key, entry in graph.snapshot().tables.items()}


def metadata_of(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    (made,) = result.asset_materializations_for_node(asset)
    return {name: value.value for name, value in made.metadata.items()}


def test_one_run_publishes_all_types_with_one_commit(
    tmp_path: Path, graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    before = graph.snapshot()
    result = run(tmp_path, instance)
    assert result.success
    after = graph.snapshot()
    assert rows_of(graph) == TABLES
    assert after.manifest_version == before.manifest_version + 1
    assert after.commit.parent_commit_id == before.commit.graph_commit_id
    assert after.commit.actor_id == "shipping-office"
    published = metadata_of(result, "graph_publish")
    assert published["commit_id"] == after.commit.graph_commit_id
    assert published["manifest_version"] == after.manifest_version
    assert published["rows_by_type"] == TABLES
    staged = metadata_of(result, "ports")
    assert (staged["staged"], staged["table"], staged["dagster/row_count"]) == (
        True, "node:Port", 4,
    )  # fmt: skip
    # A reader after the publish sees what was published.
    assert set(result.output_for_node("busiest_ports")) == {"Alder", "Birk", "Cove", "Dune"}
    assert graph.verify(is_deep=True).is_sound


def test_a_second_run_changes_nothing_twice(
    tmp_path: Path, graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    assert run(tmp_path, instance).success
    first = list(graph.export_jsonl())
    result = run(tmp_path, instance)
    assert result.success
    assert rows_of(graph) == TABLES
    assert list(graph.export_jsonl()) == first


def test_the_variable_names_the_folder_of_both(tmp_path: Path) -> None:
    program = (
        "import runpy; runpy.run_module('examples.pipeline.generate', run_name='__main__');"
        "from examples.pipeline.definitions import defs; print(defs.resources['graph_io'].uri)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=os.environ | {"PIPELINE_FOLDER": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stderr, done.stdout.strip()) == ("", str(tmp_path / "graph"))
    Omnigraph.open(str(tmp_path / "graph")).close()
    assert (tmp_path / "sailings.parquet").is_file()


def test_lineage(tmp_path: Path) -> None:
    assets = definitions.build_definitions(tmp_path).resolve_asset_graph()
    parents = {
        node.key.to_user_string(): {parent.to_user_string() for parent in node.parent_keys}
        for node in assets.asset_nodes
    }
    types = {"ports", "ships", "routes", "serves"}
    assert parents == {
        "sailings_file": set(),
        "sailings": {"sailings_file"},
        **{name: {"sailings"} for name in types},
        "graph_publish": types,
        "busiest_ports": {"ports", "graph_publish"},
    }
