"""`omnigraph embed`: vectors of a graph, and of a file without one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

ALPHA = [-0.5420488, -0.47179943, 0.16090508, 0.67653376]
"""What the mock makes of `alpha`."""
SPEC = {"dimension": 4, "types": {"Part": {"target": "vector", "fields": ["name", "note"]}}}
SEED = """\
{"type":"Part","data":{"sku":"M8","name":"bolt"}}
{"type":"Part","data":{"sku":"M10","name":"nut","vector":[1,0,0,0]}}
{"edge":"Holds","from":"A1","to":"M8"}
"""
FILES = ("--input", "seed.jsonl", "--output", "out.jsonl", "--spec", "spec.json")


def test_status_and_backfill(folder: Path, full: Omnigraph) -> None:
    full.mutate('query q() { insert Part { sku: "a", note: "alpha" } }', embed="off")
    status = omnigraph("embed", "stock", "--status", folder=folder)
    assert (status.returncode, status.stderr) == (0, "")
    assert status.stdout == "Part.vector model=mock ready=0 pending=2 stale=0\n"
    before = full.head_commit_id_for_branch()

    done = omnigraph("embed", "stock", "--as", "ada", folder=folder)
    commit = full.snapshot().commit
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"embedded stock branch main: 2 vectors\ncommit_id: {commit.graph_commit_id}\n"
    )
    assert (commit.parent_commit_id, commit.actor_id) == (before, "ada")
    table = full.table(full.snapshot(), "node:Part").read(["id", "vector"])
    vectors = dict(zip(*table.to_pydict().values(), strict=True))
    assert vectors["a"] == pytest.approx(ALPHA, abs=1e-6)

    again = omnigraph("embed", "--uri", "stock", "--json", folder=folder)
    assert json.loads(again.stdout) == {
        "uri": "stock", "branch": "main", "vectors_made": 0, "commits": [],
    }  # fmt: skip
    assert full.head_commit_id_for_branch() == commit.graph_commit_id


def test_status_for_machines(folder: Path, full: Omnigraph) -> None:
    full.branch_create("review")
    done = omnigraph("embed", "stock", "--status", "--branch", "review", "--json", folder=folder)
    assert json.loads(done.stdout) == {
        "uri": "stock",
        "branch": "review",
        "embeddings": [
            {
                "type": "Part",
                "property": "vector",
                "model": "mock",
                "ready": 0,
                "pending": 1,
                "stale": 0,
            }
        ],
    }


@pytest.fixture
def seeds(folder: Path) -> Path:
    (folder / "seed.jsonl").write_text(SEED)
    (folder / "spec.json").write_text(json.dumps(SPEC))
    manifest = {"sources": {"raw_seed": "seed.jsonl"}, "embeddings": SPEC}
    (folder / "seed.yaml").write_text(json.dumps(manifest))
    return folder


def vectors(path: Path) -> dict[str, Any]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return {item["data"]["sku"]: item["data"].get("vector") for item in found if "type" in item}


def summary(folder: Path, *arguments: str) -> tuple[str, int, int, int]:
    """Mode and counts of a run: selected, embedded, cleaned."""
    done = omnigraph("embed", *arguments, "--json", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    return found["mode"], found["selected_rows"], found["embedded_rows"], found["cleaned_rows"]


def test_a_seed_manifest(seeds: Path) -> None:
    done = omnigraph("embed", "--seed", "seed.yaml", "--json", folder=seeds)
    assert (done.returncode, done.stderr) == (0, "")
    expected = {
        "input": "seed.jsonl",
        "output": "build/seed.embedded.jsonl",
        "rows": 3,
        "selected_rows": 2,
        "embedded_rows": 1,
        "cleaned_rows": 0,
        "mode": "fill_missing",
        "dimension": 4,
        "model": "gemini-embedding-2-preview",
    }
    assert list(json.loads(done.stdout).items()) == list(expected.items())
    output = seeds / "build" / "seed.embedded.jsonl"
    assert vectors(output)["M10"] == [1, 0, 0, 0]
    assert len(vectors(output)["M8"]) == 4
    assert output.read_text().splitlines()[2] == SEED.splitlines()[2]
    elsewhere = omnigraph("embed", "--seed", "seed.yaml", "--output", "other.jsonl", folder=seeds)
    assert elsewhere.stdout.startswith("seed.jsonl -> other.jsonl: 3 rows, 2 selected, 1 embedded")
    assert (seeds / "other.jsonl").read_bytes() == output.read_bytes()


def test_which_records_are_changed(seeds: Path) -> None:
    assert summary(seeds, *FILES, "--select", "sku=M10") == ("reembed_selected", 1, 1, 0)
    assert vectors(seeds / "out.jsonl")["M10"] != [1, 0, 0, 0]
    assert summary(seeds, *FILES, "--reembed-all") == ("reembed_all", 2, 2, 0)
    assert summary(seeds, *FILES, "--reembed_all", "--type", "Bin") == ("reembed_all", 0, 0, 0)
    assert summary(seeds, *FILES, "--clean", "--select", "Part:name=nut") == ("clean", 1, 0, 1)
    assert vectors(seeds / "out.jsonl") == {"M8": None, "M10": None}


def test_malformed_lines_are_all_told(seeds: Path) -> None:
    (seeds / "seed.jsonl").write_text('{"type":"Part"}\n[]\n{"type":"Part","data":{}}\n{\n')
    done = omnigraph("embed", *FILES, folder=seeds)
    assert (done.returncode, done.stdout) == (1, "")
    first, *problems, _ = done.stderr.splitlines()
    assert first == "error: 3 problems"
    assert [line.split(" ")[0] for line in problems] == [
        "seed.jsonl:1:", "seed.jsonl:2:", "seed.jsonl:4:",
    ]  # fmt: skip
    assert not (seeds / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ([], 2, "URI must be provided"),
        (["--input", "seed.jsonl", "--output", "o"], 2, "--input, --output and --spec"),
        (["--seed", "seed.yaml", "--spec", "spec.json"], 2, "--seed excludes"),
        (["stock", "--seed", "seed.yaml"], 2, "a URI cannot be used with files"),
        (["stock", "--clean"], 2, "--clean cannot be used with a graph"),
        (["stock", "--reembed_all", "--type", "Part"], 2, "--reembed-all, --type cannot be used"),
        ([*FILES, "--status", "--branch", "b"], 2, "--branch, --status cannot be used with files"),
        ([*FILES, "--clean", "--reembed-all"], 2, "exclude each other"),
        ([*FILES, "--select", "sku"], 1, "expected [Type:]field=value"),
        (["--seed", "none.yaml"], 1, "cannot read none.yaml"),
        (["none", "--status"], 1, "no graph at"),
        (["status", "none"], 1, "no graph at"),
        (["status", "a", "b"], 2, "expected one graph, found a b"),
        ([*FILES, "--as", "ada"], 2, "--as cannot be used with files"),
        (["stock", "--branch", "none"], 1, "none"),
    ],
)
def test_mistakes(seeds: Path, arguments: list[str], code: int, text: str) -> None:
    done = omnigraph("embed", *arguments, folder=seeds)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
