"""Streams that cannot take every character, or are closed."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from tests.integration.cli.process import ENVIRONMENT, OMNIGRAPH, installed_omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


def test_an_output_without_all_characters(folder: Path, full: Omnigraph) -> None:
    full.branch_create("螺栓")

    def said(*arguments: str) -> str:
        done = installed_omnigraph(
            *arguments, folder=folder, PYTHONIOENCODING="latin-1", PYTHONUTF8="0"
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert said("branch", "list", "stock") == "main\n\\u87ba\\u6813\n"
    listed = said("branch", "list", "stock", "--json")
    assert listed.isascii()
    assert json.loads(listed)["branches"] == ["main", "螺栓"]
    assert said("commit", "graph", "stock").startswith("* 01")
    assert said("schema", "show", "stock") == full.schema_show().source


def test_errors_that_nobody_hears(folder: Path, full: Omnigraph) -> None:
    for command, code in (("branch list stock", 0), ("branch delete main stock", 1), ("read x", 1)):
        done = subprocess.run(
            ["bash", "-c", f'"{OMNIGRAPH}" {command} 2>&-'],
            cwd=folder,
            env=ENVIRONMENT | {"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (code, "")
        assert done.stdout == ("main\n" if code == 0 else "")
