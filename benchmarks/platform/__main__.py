"""Definitions of a schema with 60 types, what each step of a load costs, and how fast runs start.

Times are of this machine. `--check` exits 1 when the definitions take longer than their budget.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import dagster as dg

from benchmarks.platform.run_start import report_run_start
from omnigraph_assets.build import build_defs
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.schema_state import state_of
from omnigraph_core.engine.omnigraph import Omnigraph

NODES, EDGES = 30, 30
BUDGET_SECONDS = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is exceeded")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        graph = Omnigraph.init(str(root / "graph"), schema())
        config = GraphConfig("wide", str(root / "graph"), drops=str(root / "drops"))
        begun = time.perf_counter()
        defs = build_defs(config, state_of(graph))
        dg.Definitions.validate_loadable(defs)
        seconds = time.perf_counter() - begun
        print(f"definitions of {NODES + EDGES} types: {seconds:.2f} s, budget {BUDGET_SECONDS} s")
        report_load(root, defs)
    report_run_start(schema())
    return 1 if arguments.check and seconds > BUDGET_SECONDS else 0


def schema() -> str:
    nodes = [f"node N{number} {{ name: String @key }}" for number in range(NODES)]
    edges = [f"edge E{number}: N{number} -> N{(number + 1) % NODES}" for number in range(EDGES)]
    return "\n".join([*nodes, *edges])


def report_load(root: Path, defs: dg.Definitions) -> None:
    """Load a row of each type and tell what the steps took."""
    folder = root / "drops" / "main"
    folder.mkdir(parents=True)
    records = [{"type": f"N{number}", "data": {"name": "one"}} for number in range(NODES)]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in records))
    with dg.instance_for_test() as instance:
        instance.add_dynamic_partitions("wide_branches", ["main"])
        with dg.partition_loading_context(dynamic_partitions_store=instance):
            job = defs.resolve_job_def("wide_load_job")
            begun = time.perf_counter()
            result = job.execute_in_process(instance=instance, partition_key="main")
            whole = time.perf_counter() - begun
        steps = instance.get_run_step_stats(result.run_id)
    inside = 0.0
    for step in steps:
        if step.start_time is not None and step.end_time is not None:
            inside += step.end_time - step.start_time
            print(f"  {step.step_key:<24} {step.end_time - step.start_time:6.2f} s")
    print(f"a load of {NODES} types: {whole:.2f} s, {inside:.2f} s of it in {len(steps)} steps")


if __name__ == "__main__":
    sys.exit(main())
