"""`omnigraph run …`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.history.runs import RunStatus

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.runs import RunRecord
    from tests.integration.cli.conftest import Call

BIN = b'{"type":"Bin","data":{"code":"B2"}}'
PART = '{{"type":"Part","data":{{"sku":"M8","name":"{}"}}}}'


def shown(run: RunRecord) -> str:
    """What people see of it."""
    optional = {
        "actor_id": run.actor_id,
        "operation_hash": run.operation_hash,
        "published_snapshot_id": run.published_snapshot_id,
    }
    lines = [
        f"run_id: {run.run_id}",
        f"status: {run.status}",
        f"target_branch: {run.target_branch}",
        f"run_branch: {run.run_branch}",
        f"base_snapshot_id: {run.base_snapshot_id}",
        f"base_manifest_version: {run.base_manifest_version}",
        *(f"{name}: {value}" for name, value in optional.items() if value is not None),
        f"created_at: {run.created_at}",
        f"updated_at: {run.updated_at}",
    ]
    return "".join(f"{line}\n" for line in lines)


def test_begun_and_published(call: Call, full: Omnigraph) -> None:
    begun = call("run", "begin", "stock", "--operation-hash", "load-1", "--as", "ada")
    (run,) = full.list_runs()
    assert begun == (0, shown(run), "")
    assert (run.actor_id, run.operation_hash) == ("ada", "load-1")
    assert call("run", "begin", "stock", "--operation-hash", "load-1")[1] == begun[1]
    full.load(BIN, mode="merge", branch=run.run_branch)

    preview = call("run", "publish", run.run_id, "stock", "--dry-run")
    assert preview[0] == 0
    assert preview[1].startswith(f"dry run: published {run.run_id} to main: fast_forward\n")
    done = call("run", "publish", run.run_id, "stock")
    published = full.get_run(run.run_id)
    assert done == (0, shown(published), "")
    assert published.published_snapshot_id == full.head_commit_id_for_branch()
    assert full.snapshot().commit.actor_id == "ada"
    assert call("run", "publish", run.run_id, "--uri", "stock") == done
    assert call("run", "show", run.run_id, "stock") == done


def test_given_up(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    call("run", "begin", "stock", "--target-branch", "review")
    call("run", "begin", "stock")
    first, second = full.list_runs()
    assert call("run", "fail", first.run_id, "stock")[1].splitlines()[1] == "status: failed"
    assert call("run", "abort", second.run_id, "stock")[1].splitlines()[1] == "status: aborted"
    code, output, errors = call("run", "publish", first.run_id, "stock")
    assert (code, output) == (1, "")
    assert f"cannot publish run {first.run_id}: it is failed" in errors
    assert call("run", "list", "stock")[1] == (
        f"{first.run_id} failed target=review branch={first.run_branch}\n"
        f"{second.run_id} aborted target=main branch={second.run_branch}\n"
    )
    of_main = call("run", "list", "stock", "--target-branch", "main", "--json")[1]
    assert [item["run_id"] for item in json.loads(of_main)["runs"]] == [second.run_id]
    failed = call("run", "list", "stock", "--status", "failed")[1]
    assert failed.startswith(first.run_id)
    assert len(failed.splitlines()) == 1


def test_documents(call: Call, graph: Omnigraph) -> None:
    begun = json.loads(call("run", "begin", "stock", "--as", "ada", "--json")[1])
    (run,) = graph.list_runs()
    assert list(begun.items()) == [
        ("run_id", run.run_id),
        ("target_branch", "main"),
        ("run_branch", f"__run__{run.run_id}"),
        ("base_snapshot_id", graph.head_commit_id_for_branch()),
        ("base_manifest_version", 1),
        ("operation_hash", None),
        ("actor_id", "ada"),
        ("status", "running"),
        ("published_snapshot_id", None),
        ("created_at", run.created_at),
        ("updated_at", run.updated_at),
        ("is_expired", False),
    ]
    assert json.loads(call("run", "list", "stock", "--json")[1]) == {"runs": [begun]}
    assert json.loads(call("run", "show", run.run_id, "stock", "--json")[1]) == begun
    for command in ("publish", "fail", "abort"):
        run = graph.begin_run()
        ended = json.loads(call("run", command, run.run_id, "stock", "--json")[1])
        assert ended == graph.get_run(run.run_id).to_json()


def test_expired_runs_are_marked(
    call: Call, graph: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = graph.begin_run(actor="ada")
    monkeypatch.setenv("OMNIGRAPH_RUN_EXPIRY", "0.000001")
    assert call("run", "list", "stock")[1].endswith(" actor=ada (expired)\n")
    assert "status: running (expired)\n" in call("run", "show", run.run_id, "stock")[1]


def test_conflicts(call: Call, full: Omnigraph, folder: Path) -> None:
    run = full.begin_run()
    full.load(PART.format("run").encode(), mode="merge", branch=run.run_branch)
    full.load(PART.format("main").encode(), mode="merge")
    code, output, errors = call("run", "publish", run.run_id, "stock", "--conflicts", "c.json")
    assert (code, output) == (1, "")
    assert "error: merge conflicts: node:Part:M8 (divergent_update)" in errors
    assert full.get_run(run.run_id).status is RunStatus.RUNNING
    found = json.loads((folder / "c.json").read_text())
    chosen = [{**item, "choose": "theirs"} for item in found]
    (folder / "c.json").write_text(json.dumps(chosen))
    code, output, errors = call("run", "publish", run.run_id, "stock", "--resolve", "c.json")
    assert (code, errors) == (0, "")
    row = full.entity_at("node:Part", "M8", version=full.snapshot().manifest_version)
    assert row is not None
    assert row["name"] == "run"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["begin"], 2, "URI must be provided"),
        (["publish"], 2, "ID"),
        (["list", "stock", "--status", "lost"], 2, "lost"),
        (["publish", "r", "stock", "--ours", "--theirs"], 2, "exclude each other"),
        (["publish", "r", "stock", "--resolve", "none.json"], 1, "cannot read file of choices"),
        (["show", "r", "stock"], 1, "run 'r' not found"),
        (["publish", "r", "stock"], 1, "run 'r' not found"),
        (["publish", "r", "stock", "--dry-run"], 1, "run 'r' not found"),
        (["abort", "r", "stock"], 1, "run 'r' not found"),
        (["fail", "r", "stock"], 1, "run 'r' not found"),
        (["begin", "stock", "--target-branch", "none"], 1, "no branch `none`"),
    ],
)
def test_mistakes(call: Call, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call("run", *arguments)
    assert (ended, output) == (code, "")
    assert text in errors
