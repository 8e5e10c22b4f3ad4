"""Imports go down only, and the core stays light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("pyspark", "dagster", "fastapi", "typer", "lance")


def test_layers() -> None:
    lint_imports = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [lint_imports, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


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
