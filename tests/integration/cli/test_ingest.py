"""`omnigraph ingest`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


def test_a_missing_branch_is_made(folder: Path, graph: Omnigraph) -> None:
    done = omnigraph(
        "ingest", "stock", "--data", "stock.jsonl", "--branch", "review", "--as", "ada",
        folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "loaded stock branch review from main with merge: branch created",
        "edge:Holds rows_loaded=1",
        "node:Bin rows_loaded=1",
        "node:Part rows_loaded=2",
        "actor_id: ada",
        f"commit_id: {graph.head_commit_id_for_branch('review')}",
    ]
    assert graph.snapshot("review").table("node:Part").row_count == 2
    assert graph.snapshot().table("node:Part").row_count == 0


def test_a_branch_that_is_there_is_used(folder: Path, full: Omnigraph) -> None:
    full.branch_create("review")
    (folder / "more.jsonl").write_text('{"type":"Part","data":{"sku":"M12"}}\n')
    done = omnigraph(
        "ingest", "--uri", "stock", "--data", "more.jsonl", "--branch", "review",
        "--from", "review", "--json", folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    commit = full.snapshot("review").commit
    expected = {
        "uri": "stock",
        "branch": "review",
        "base_branch": "review",
        "branch_created": False,
        "mode": "merge",
        "tables": [{"table_key": "node:Part", "rows_loaded": 1}],
        "actor_id": None,
        "commit_id": commit.graph_commit_id,
        "manifest_version": commit.manifest_version,
        "records_rejected": 0,
        "vectors_made": 0,
        "vectors_pending": 0,
        "dry_run": False,
        "repeated": False,
    }
    assert list(json.loads(done.stdout).items()) == list(expected.items())
    assert full.snapshot("review").table("node:Part").row_count == 3


def test_a_dry_run_makes_no_branch(folder: Path, graph: Omnigraph) -> None:
    done = omnigraph(
        "ingest", "stock", "--data", "stock.jsonl", "--branch", "review", "--dry-run", folder=folder
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("checked stock branch review from main with merge")
    assert graph.branch_list() == ("main",)


def test_refused_records_load_nothing(folder: Path, graph: Omnigraph) -> None:
    (folder / "wrong.jsonl").write_text('{"type":"Part","data":{"sku":"M8","price":-1}}\n')
    done = omnigraph(
        "ingest", "stock", "--data", "wrong.jsonl", "--branch", "review", folder=folder
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: wrong.jsonl:1: @range violation on Part.price")
    assert graph.snapshot("review").table("node:Part").row_count == 0


def test_an_unknown_branch_to_fork_from(folder: Path, graph: Omnigraph) -> None:
    done = omnigraph(
        "ingest", "stock", "--data", "stock.jsonl", "--branch", "a", "--from", "b", folder=folder
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "`b`" in done.stderr or "'b'" in done.stderr
    assert graph.branch_list() == ("main",)
