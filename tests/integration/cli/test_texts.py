"""Texts and exit codes that scripts rely on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core import __version__
from tests.integration.cli.conftest import SCHEMA
from tests.integration.cli.process import installed_omnigraph, omnigraph

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


def test_the_installed_command_says_the_same(folder: Path, full: Omnigraph) -> None:
    """As in this process, where the others run it: once it is loaded it does not differ."""
    for code, arguments in enumerate((["commit", "list"], ["branch", "delete", "main"])):
        installed = installed_omnigraph(*arguments, "--uri", "stock", folder=folder)
        here = omnigraph(*arguments, "--uri", "stock", folder=folder)
        assert (installed.returncode, here.returncode) == (code, code)
        assert (installed.stdout, installed.stderr) == (here.stdout, here.stderr)
        assert installed.stdout if code == 0 else installed.stderr


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
    version = full.snapshot().manifest_version
    assert said(folder, "schema", "apply", "stock", "--schema", "stock.pg") == [
        "schema apply for stock branch main",
        "supported: yes",
        "applied: no",
        f"manifest_version: {version}",
        "no schema changes",
    ]
    assert "\n".join(said(folder, "schema", "show", "stock")) == SCHEMA.rstrip("\n")


def test_queries(folder: Path, full: Omnigraph) -> None:
    (folder / "two.gq").write_text(
        "query bins() { match { $b: Bin } return { $b.code } }\n"
        "query parts() { match { $p: Part } return { $p.price, $p.sku } order { $p.sku } }\n"
    )
    read = ("read", "stock", "--query", "two.gq")
    assert "multiple queries" in refused(folder, *read)
    assert "query 'bolts' not found" in refused(folder, *read, "--name", "bolts")
    assert "query file 'none.gq' not found" in refused(
        folder, "read", "stock", "--query", "none.gq"
    )
    assert said(folder, *read, "--name", "parts", "--format", "csv") == [
        "p.price,p.sku",
        "null,M10",
        "0.1,M8",
    ]
    assert said(folder, "lint", "stock", "--query", "two.gq") == [
        "OK    query `bins` (read)",
        "OK    query `parts` (read)",
        "INFO  2 queries processed: 0 errors, 0 warnings, 0 infos",
    ]


def test_names_of_columns(folder: Path, full: Omnigraph) -> None:
    query = (
        'query q() { match { $b: Bin  $b holds $p } return { $b, $p.sku, "x", $p.name as n, '
        "count($p) } }"
    )
    assert said(folder, "read", "stock", "-e", query, "--format", "csv") == [
        "b,p.sku,literal,n,count",
        '"{""id"":""A1"",""code"":""A1""}",M8,x,bolt,1',
    ]


def test_conflicts(folder: Path, full: Omnigraph) -> None:
    full.branch_create("review")
    for branch, name in (("main", "screw"), ("review", "rivet")):
        full.mutate(
            f'query q() {{ update Part set {{ name: "{name}" }} where sku = "M8" }}', branch=branch
        )
    told = refused(folder, "branch", "merge", "review", "stock")
    assert "merge conflicts: node:Part:M8 (divergent_update)" in told


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ([("a", "team", "read", "branch_scope"), ("a", "team", "read", "branch_scope")],
         "duplicate policy rule id"),
        ([("a", "crew", "read", "branch_scope")], "references unknown group"),
        ([("a", "team", "branch_merge", "branch_scope")], "unsupported action"),
        ([("a", "team", "read", "target_branch_scope")], "unsupported action"),
    ],
)  # fmt: skip
def test_policies(folder: Path, rules: list[tuple[str, str, str, str]], text: str) -> None:
    document = {
        "version": 1,
        "groups": {"team": ["ada"]},
        "rules": [
            {"id": id, "allow": {"actors": {"group": group}, "actions": [action], scope: "any"}}
            for id, group, action, scope in rules
        ],
    }
    (folder / "policy.yaml").write_text(json.dumps(document))
    assert text in refused(folder, "policy", "validate", "--policy", "policy.yaml")


def test_versions_and_addresses(folder: Path, graph: Omnigraph) -> None:
    for ask in (["version"], ["-v"], ["--version"]):
        assert said(folder, *ask) == [f"omnigraph {__version__}"]
    assert json.loads("".join(said(folder, "version", "--json"))) == {"version": __version__}
    assert said(folder, "init", "new", "--schema", "stock.pg") == ["initialized new"]
    remote = refused(folder, "init", "http://host/new", "--schema", "stock.pg")
    assert "init is only supported against local repo URIs" in remote


def test_usage_loads_aliases_and_previews(folder: Path, full: Omnigraph) -> None:
    query = (
        "query part($sku: String) { match { $p: Part { sku: $sku } } return { $p.name, $p.sku } }"
    )
    (folder / "part.gq").write_text(query)
    for arguments, text in (
        (("read", "-e", query), "URI must be provided"),
        (("read", "stock", "--bogus"), "--bogus"),
    ):
        done = omnigraph(*arguments, folder=folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert text in done.stderr
    (folder / "omnigraph.yaml").write_text(
        "graphs: { local: { uri: stock } }\ncli: { graph: local }\n"
        "aliases: { part: { command: read, query: part.gq, args: [sku], format: csv } }\n"
    )
    assert said(folder, "read", "--alias", "part", "https://host/M8") == ["p.name,p.sku"]
    assert said(folder, "load", "--data", "stock.jsonl", "--quiet")[0].endswith(
        " branch main with overwrite: 3 nodes across 2 node types, 1 edges across 1 edge types"
    )
    preview = omnigraph("cleanup", "--keep", "1", folder=folder)
    assert preview.returncode == 0
    assert "nothing was removed: repeat with --confirm" in preview.stderr
