"""What the process of a run imports: the engine and Dagster, and nothing that only others need."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_LOAD = """
import json, sys, threading
from pathlib import Path
import omnigraph_assets.definitions
imported = sorted(sys.modules)
native = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
threads = threading.active_count()

import dagster as dg
from omnigraph_assets.build import build_defs
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.schema_state import state_of
from omnigraph_core.engine.omnigraph import Omnigraph

graph = Omnigraph.init("graph", "node Part { sku: String @key }")
defs = build_defs(GraphConfig("stock", "graph", drops="drops", engine="local"), state_of(graph))
Path("drops/main").mkdir(parents=True)
Path("drops/main/parts.jsonl").write_text('{"type": "Part", "data": {"sku": "m6"}}\\n')
with dg.DagsterInstance.ephemeral() as instance:
    instance.add_dynamic_partitions("stock_branches", ["main"])
    with dg.partition_loading_context(dynamic_partitions_store=instance):
        job = defs.resolve_job_def("stock_load_job")
        assert job.execute_in_process(instance=instance, partition_key="main").success
assert graph.snapshot().table("node:Part").row_count == 1
ran = sorted(sys.modules)
import pandas  # it is there for those who want it
print(json.dumps([imported, ran, native, threads]))
"""
_OTHERS = {
    "pandas.core",
    *("dagster_webserver", "dagster_graphql", "fastapi", "uvicorn", "typer"),
    *("omnigraph_core.cli", "omnigraph_core.server", "omnigraph_core.client"),
    *("pyspark.sql.connect", "boto3", "openai", "google.genai"),
}


def test_a_run_imports_neither_pandas_nor_services(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _LOAD], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    imported, ran, native, threads = json.loads(done.stdout.splitlines()[-1])
    assert _OTHERS.intersection(imported) == set()
    assert _OTHERS.intersection(ran) == set()
    # Runs are forked from a process that has imported it: only threads that NumPy and Arrow begin
    # again by themselves may be there.
    assert threads == 1
    assert all(name.startswith(("python", "jemalloc")) for name in native), native
