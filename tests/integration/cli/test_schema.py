"""`omnigraph schema …`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.history.locks import schema_lock
from tests.integration.cli.conftest import SCHEMA
from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call


@pytest.fixture
def wider(folder: Path) -> str:
    source = SCHEMA.replace("  name: String?\n", '  name: String @default("?")\n')
    source = source.replace("enum(new, used)", "enum(new, used, lost)")
    (folder / "wider.pg").write_text(source)
    return source


def test_plan_apply_show(folder: Path, full: Omnigraph, wider: str) -> None:
    before = full.snapshot()
    planned = omnigraph("schema", "plan", "stock", "--schema", "wider.pg", folder=folder)
    steps = [
        '- tighten_nullability node:Part.name default="?" [validated, backfill] 2 rows',
        '- update_default node:Part.name default="?" [safe, none]',
        '- extend_enum node:Part.state added_values=["lost"] [safe, none]',
    ]
    assert (planned.returncode, planned.stderr) == (0, "")
    head = ["schema plan for stock branch main", "supported: yes"]
    assert planned.stdout.splitlines() == [*head, *steps]
    assert full.snapshot() == before

    arguments = ("schema", "apply", "stock", "--schema", "wider.pg", "--as", "ada")
    applied = omnigraph(*arguments, folder=folder)
    after = full.snapshot()
    assert (applied.returncode, applied.stderr) == (0, "")
    assert applied.stdout.splitlines() == [
        "schema apply for stock branch main",
        "supported: yes",
        "applied: yes",
        f"manifest_version: {before.manifest_version + 1}",
        f"commit_id: {after.commit.graph_commit_id}",
        *steps,
    ]
    assert (after.commit.operation, after.commit.actor_id) == ("schema_apply", "ada")
    again = omnigraph(*arguments, folder=folder)
    assert again.stdout.splitlines()[2:] == [
        "applied: no",
        f"manifest_version: {after.manifest_version}",
        "no schema changes",
    ]
    shown = omnigraph("schema", "show", "stock", folder=folder)
    assert shown.stdout == wider


def test_documents(call: Call, full: Omnigraph, wider: str) -> None:
    full.branch_create("review")
    common = ("stock", "--schema", "wider.pg", "--branch", "review", "--json")
    document = json.loads(call("schema", "plan", *common)[1])
    assert document == {"uri": "stock", **full.schema_plan(wider, branch="review").to_json()}
    assert (document["supported"], document["step_count"]) == (True, 3)
    rehearsed = json.loads(call("schema", "apply", *common, "--dry-run")[1])
    assert (rehearsed["applied"], rehearsed["dry_run"]) == (False, True)
    before = full.snapshot("review")
    applied = json.loads(call("schema", "apply", *common)[1])
    after = full.snapshot("review")
    assert applied["manifest_version"] == after.manifest_version == before.manifest_version + 1
    assert applied["commit_id"] == after.commit.graph_commit_id
    assert applied["steps"] == document["steps"]
    for name in ("show", "get"):
        shown = json.loads(call("schema", name, "stock", "--branch", "review", "--json")[1])
        assert shown["schema_source"] == wider
    old = call("schema", "show", "stock", "--snapshot", before.commit.graph_commit_id)[1]
    assert old == call("schema", "show", "stock")[1] == SCHEMA


def test_what_cannot_be_done(call: Call, folder: Path, full: Omnigraph) -> None:
    (folder / "bad.pg").write_text(SCHEMA.replace("count: I64?", "count: String?"))
    code, out, _ = call("schema", "plan", "stock", "--schema", "bad.pg")
    assert code == 0
    assert "supported: no" in out
    assert "- unsupported_change edge:Holds.count [OG-MF-106] changing property type" in out
    code, out, error = call("schema", "apply", "stock", "--schema", "bad.pg")
    assert (code, out) == (1, "")
    assert "bad.pg:18:3: error OG-MF-106" in error
    (folder / "tight.pg").write_text(SCHEMA.replace("note: String?", "note: String"))
    code, _, error = call("schema", "apply", "stock", "--schema", "tight.pg")
    assert code == 1
    assert "tighten_nullability node:Part.note" in error
    assert "'M10'" in error
    with schema_lock(full._context.store, "main", actor="bob"):
        (folder / "more.pg").write_text(SCHEMA + "node Site { code: String @key }\n")
        code, _, error = call("schema", "apply", "stock", "--schema", "more.pg")
    assert code == 1
    assert "is being changed by bob" in error
    assert call("schema", "show", "stock")[1] == SCHEMA


def test_a_hard_drop_tells_who_has_the_data(call: Call, folder: Path, full: Omnigraph) -> None:
    full.branch_create("review")
    (folder / "less.pg").write_text(
        SCHEMA.replace("  price: F64?\n", "").replace("  @range(price, 0..)\n", "")
    )
    arguments = ("stock", "--schema", "less.pg", "--allow-data-loss")
    lines = call("schema", "apply", *arguments)[1].splitlines()
    assert "- drop_property node:Part.price mode=hard [destructive, purge] 2 rows" in lines
    assert lines[-4:] == [
        "purged: 0 versions, 0 bytes",
        "still holding dropped data: 2 older versions of branch main",
        "still holding dropped data: branch review",
        "run `cleanup` after 24 h, once nothing above needs it, to take the rest away",
    ]
