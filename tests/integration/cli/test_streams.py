"""Streams that cannot take every character, or are closed."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from tests.integration.cli.process import (
    ENVIRONMENT,
    OMNIGRAPH,
    Command,
    installed_omnigraph,
    omnigraph,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    from omnigraph_core.engine.omnigraph import Omnigraph


def test_an_output_without_all_characters(folder: Path, full: Omnigraph) -> None:
    """The installed command shows that Python makes such an output, and what it is like."""
    full.branch_create("螺栓")

    def said(*arguments: str, run: Callable[..., CompletedProcess[str]] = omnigraph) -> str:
        done = run(*arguments, folder=folder, PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    for run in (installed_omnigraph, omnigraph):
        assert said("branch", "list", "stock", run=run) == "main\n\\u87ba\\u6813\n"
    listed = said("branch", "list", "stock", "--json")
    assert listed.isascii()
    assert json.loads(listed)["branches"] == ["main", "螺栓"]
    assert said("commit", "graph", "stock").startswith("* 01")
    assert said("schema", "show", "stock") == full.schema_show().source


def test_errors_that_nobody_hears(folder: Path, full: Omnigraph) -> None:
    """First as a shell closes them; then as Python leaves them to a command."""
    command = f'"{OMNIGRAPH}" branch delete main stock 2>&-'
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=ENVIRONMENT | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    for text, code in (("branch list stock", 0), ("branch delete main stock", 1), ("read x", 1)):
        target = "tests.integration.cli.outputs:with_errors_closed"
        with Command(*text.split(), folder=folder, target=target) as unheard:
            done = unheard.end()
        assert (done.returncode, done.stderr) == (code, "")
        assert done.stdout == ("main\n" if code == 0 else "")
