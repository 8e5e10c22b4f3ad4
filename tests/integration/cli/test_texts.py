"""Texts and exit codes that scripts rely on, as a process of its own gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.cli.conftest import SCHEMA
from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


def refused(folder: Path, *arguments: str) -> str:
    """What a command that fails says."""
    done = omnigraph(*arguments, folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def said(folder: Path, *arguments: str) -> list[str]:
    """The lines of a command that succeeds."""
    done = omnigraph(*arguments, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_branches(folder: Path, full: Omnigraph) -> None:
    assert said(folder, "branch", "create", "review", "--uri", "stock") == [
        "created branch review from main"
    ]
    assert said(folder, "branch", "delete", "review", "--uri", "stock") == ["deleted branch review"]
    deleted = refused(folder, "branch", "delete", "main", "--uri", "stock")
    assert "cannot delete branch 'main'" in deleted
    same = refused(folder, "branch", "merge", "main", "--into", "main", "--uri", "stock")
    assert "distinct source and target" in same


def test_commits_runs_and_snapshots(folder: Path, full: Omnigraph) -> None:
    newest, oldest = full.list_commits()
    lines = said(folder, "commit", "list", "stock")
    assert lines[0].startswith(f"{newest.graph_commit_id} branch=main version=2 ")
    assert lines[1].startswith(f"{oldest.graph_commit_id} branch=main version=1 ")
    runs = [full.begin_run(), full.begin_run(actor="ada")]
    assert said(folder, "run", "list", "stock") == [
        f"{runs[0].run_id} running target=main branch={runs[0].run_branch}",
        f"{runs[1].run_id} running target=main branch={runs[1].run_branch} actor=ada",
    ]
    assert said(folder, "snapshot", "stock") == [
        "branch: main",
        "manifest_version: 2",
        "edge:Holds v2 branch=main rows=1",
        "node:Bin v2 branch=main rows=1",
        "node:Part v2 branch=main rows=2",
    ]


def test_schemas(folder: Path, full: Omnigraph) -> None:
    (folder / "bad.pg").write_text(SCHEMA.replace("count: I64?", "count: String?"))
    planned = said(folder, "schema", "plan", "stock", "--schema", "bad.pg")
    assert planned[1] == "supported: no"
    assert "changing property type" in planned[2]
    applied = refused(folder, "schema", "apply", "stock", "--schema", "bad.pg")
    assert "changing property type" in applied
