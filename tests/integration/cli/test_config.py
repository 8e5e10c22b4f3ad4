"""What commands take from `omnigraph.yaml`: graph, branch, query, form and actor."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core import __version__
from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

CONFIG = """
graphs:
  local: { uri: stock }
  team: { uri: http://127.0.0.1:9/ }
cli: { graph: local, branch: review, actor: ada, output_format: csv }
query: { roots: [queries] }
auth: { env_file: .env }
aliases:
  part: { command: read, query: parts.gq, name: part, args: [sku] }
  main_part:
    { command: query, query: parts.gq, name: part, args: [sku], branch: main, format: kv }
  rename: { command: mutate, query: parts.gq, name: rename, args: [sku, name] }
  several: { command: read, query: parts.gq }
  far: { command: read, query: parts.gq, name: part, args: [sku], graph: none }
"""
QUERIES = """
query part($sku: String) { match { $p: Part { sku: $sku } } return { $p.sku, $p.name } }
query rename($sku: String, $name: String) { update Part set { name: $name } where sku = $sku }
"""
BIN = '{"type":"Bin","data":{"code":"B2"}}'
PARTS = "query parts() { match { $p: Part } return { $p.sku } order { $p.sku } }"


@pytest.fixture
def project(folder: Path, full: Omnigraph) -> Path:
    """The stock with a branch `review`, and a configuration that prefers it."""
    (folder / "omnigraph.yaml").write_text(CONFIG)
    (folder / "queries").mkdir()
    (folder / "queries" / "parts.gq").write_text(QUERIES)
    full.branch_create("review")
    full.mutate('query q() { update Part set { name: "nut" } where sku = "M10" }', branch="review")
    return folder


def test_aliases_run_on_the_graph_and_branch_of_the_configuration(
    project: Path, call: Call
) -> None:
    assert call("read", "--alias", "part", "M10") == (0, "p.sku,p.name\nM10,nut\n", "")
    assert call("query", "--alias", "part", "M10", "--branch", "main") == (
        0,
        "p.sku,p.name\nM10,Mutter\n",
        "",
    )
    code, output, _ = call("read", "--alias", "main_part", "M10")
    assert (code, output) == (
        0,
        "1 rows from branch main via part\nrow 1\np.sku: M10\np.name: Mutter\n",
    )
    code, output, _ = call("mutate", "--alias", "rename", "M10", "2026")
    assert output.startswith("changed branch review with rename: 1 node, 0 edges\nactor_id: ada\n")
    code, output, _ = call("read", "--alias", "part", "--params", '{"sku": "M10"}')
    assert output == "p.sku,p.name\nM10,2026\n"


def test_an_alias_takes_every_argument_as_a_value(project: Path, call: Call) -> None:
    address = "https://example.org/M10"
    nothing = (0, "p.sku,p.name\n", "")
    assert call("read", "--alias", "part", address) == nothing
    assert call("read", "--alias", "part", address, "--uri", "stock") == nothing
    assert call("read", "--alias", "part", address, "--target", "local") == nothing


def test_the_configuration_is_found_from_below(
    project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "queries")
    assert call("query", "-e", PARTS) == (0, "p.sku\nM10\nM8\n", "")
    assert call("read", "--query", "parts.gq", "--name", "part", "--params", '{"sku":"M8"}')[0] == 0
    monkeypatch.chdir(project.parent)
    named = ("--config", project / "omnigraph.yaml")
    assert call("query", "-e", PARTS, *named) == (0, "p.sku\nM10\nM8\n", "")
    assert call("query", "-e", PARTS)[0] == 2


def test_the_env_file_counts_unless_the_environment_says_otherwise(project: Path) -> None:
    (project / ".env").write_text("export OMNIGRAPH_QUERY_MEMORY='1'\n")
    done = omnigraph("read", "-e", PARTS, folder=project)
    assert (done.returncode, done.stdout) == (1, "")
    assert "may use 1\n" in done.stderr
    done = omnigraph("read", "-e", PARTS, folder=project, OMNIGRAPH_QUERY_MEMORY="1G")
    assert (done.returncode, done.stdout) == (0, "p.sku\nM10\nM8\n")


def test_writes_take_branch_and_actor_of_the_configuration(
    project: Path, call: Call, full: Omnigraph
) -> None:
    (project / "bin.jsonl").write_text(BIN)
    code, output, _ = call("load", "--data", "bin.jsonl", "--mode", "merge", "--json")
    document = json.loads(output)
    assert (code, document["uri"], document["branch"]) == (0, str(project / "stock"), "review")
    assert full.snapshot("review").commit.actor_id == "ada"
    exported = call("export", "--type", "Bin")[1].splitlines()
    assert [json.loads(line)["data"]["code"] for line in exported] == ["A1", "B2"]
    assert len(call("export", "--type", "Bin", "--branch", "main")[1].splitlines()) == 1
    code, output, _ = call("ingest", "--data", "bin.jsonl", "--branch", "new", "--as", "bob")
    assert f"{project / 'stock'} branch new from main with merge: branch created" in output
    assert full.snapshot("new").commit.actor_id == "bob"


def test_queries_are_checked_and_explained_under_short_names(project: Path, call: Call) -> None:
    code, output, _ = call("lint", "--query", "parts.gq", "--json")
    document = json.loads(output)
    assert (code, document["status"], document["queries_processed"]) == (0, "ok", 2)
    assert document["schema_source"] == {"kind": "repo", "uri": str(project / "stock")}
    assert call("check", "--query", "parts.gq", "--json") == (0, output, "")
    assert call("query", "lint", "stock", "--query", "parts.gq")[0] == 0
    explained = call("explain", "--query", "parts.gq", "--name", "part")
    assert explained == call("query", "explain", "--query", "parts.gq", "--name", "part")
    assert explained[0] == 0
    code, _, errors = call("lint", "--query", "parts.gq", "stock", "--schema", "stock.pg")
    assert (code, "--schema excludes a graph" in errors) == (2, True)


def test_graphs_are_listed(project: Path, call: Call) -> None:
    local = project / "stock"
    lines = f"local {local}\nteam http://127.0.0.1:9/\n"
    assert call("graphs", "list") == (0, lines, "")
    document = json.loads(call("graphs", "list", "--json")[1])
    assert document["graphs"][0] == {"name": "local", "uri": str(local)}


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["read", "-e", PARTS, "--target", "tema"], 1, "graph 'tema' not found in omnigraph.yaml"),
        (["read", "--alias", "far", "M8"], 1, "graph 'none' not found in omnigraph.yaml"),
        (["read", "--alias", "prt"], 1, "did you mean `part`?"),
        (["read", "--alias", "rename"], 1, "use `omnigraph change --alias rename`"),
        (["read", "--alias", "part", "a", "b"], 1, "alias 'part' takes 1 values, got 2"),
        (["read", "--alias", "several"], 1, "multiple queries"),
        (["read", "stock", "-e", PARTS, "--target", "local"], 2, "exclude each other"),
        (["read", "-e", PARTS, "--config", "none.yaml"], 1, "cannot read configuration file none"),
        (["read", "-e", PARTS, "--config", "bad.yaml"], 1, "bad.yaml:2: `cli.output_format`"),
        (
            ["read", "localhost:8080", "-e", PARTS],
            1,
            "hint: for a server, write http://localhost:8",
        ),
        (["change", "-e", PARTS, "--target", "team", "--as", "x"], 2, "the token says who acts"),
    ],
)
def test_mistakes(project: Path, call: Call, arguments: list[str], code: int, text: str) -> None:
    (project / "bad.yaml").write_text("cli:\n  output_format: xml\n")
    ended, output, errors = call(*arguments)
    assert (ended, output) == (code, "")
    assert text in errors


def test_what_means_nothing_is_a_warning(project: Path) -> None:
    (project / "omnigraph.yaml").write_text("cli: { grph: stock }\n")
    done = omnigraph("read", "stock", "-e", PARTS, "--format", "csv", folder=project)
    assert (done.returncode, done.stdout) == (0, "p.sku\nM10\nM8\n")
    assert done.stderr == (
        f"warning: {project}/omnigraph.yaml:1: `cli.grph` means nothing here; "
        "did you mean `graph`?\n"
    )


def test_a_policy_of_the_configuration_holds_for_local_graphs(project: Path, call: Call) -> None:
    (project / "policy.yaml").write_text(
        "version: 1\n"
        "groups: { readers: [ada] }\n"
        "protected_branches: [main]\n"
        "rules:\n"
        "  - id: readers-read\n"
        "    allow: { actors: { group: readers }, actions: [read], branch_scope: any }\n"
    )
    with (project / "omnigraph.yaml").open("a") as file:
        file.write("policy: { file: policy.yaml }\n")
    assert call("read", "-e", PARTS)[0] == 0
    code, output, errors = call("read", "-e", PARTS, "--as", "bob")
    assert (code, output) == (1, "")
    assert errors.startswith("error: policy denied")
    code, _, errors = call("change", "--alias", "rename", "M8", "x")
    assert (code, errors.startswith("error: policy denied")) == (1, True)


def test_texts_scripts_rely_on(project: Path) -> None:
    address = "https://example.org/M8"
    done = omnigraph("read", "--alias", "part", address, "--json", folder=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["columns"] == ["p.sku", "p.name"]
    done = omnigraph("query", "stock", "--query", "parts.gq", folder=project)
    assert (done.returncode, done.stdout) == (1, "")
    assert "multiple queries" in done.stderr
    done = omnigraph("init", "new", "--schema", "stock.pg", folder=project)
    assert (done.returncode, done.stdout.startswith("initialized")) == (0, True)
    done = omnigraph("init", "http://host/new", "--schema", "stock.pg", folder=project)
    assert (done.returncode, done.stdout) == (1, "")
    assert "init is only supported against local repo URIs" in done.stderr


def test_texts_scripts_rely_on_without_a_configuration(folder: Path, full: Omnigraph) -> None:
    for ask in (["version"], ["-v"], ["--version"]):
        done = omnigraph(*ask, folder=folder)
        assert (done.returncode, done.stdout) == (0, f"omnigraph {__version__}\n")
    done = omnigraph("--config", "omnigraph.yaml", "read", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--config belongs after the command" in done.stderr
    done = omnigraph("read", "-e", PARTS, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "URI must be provided" in done.stderr
    done = omnigraph("load", "stock", "--data", "stock.jsonl", "--quiet", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    line = done.stdout.splitlines()[0]
    assert line == (
        "loaded stock branch main with overwrite: 3 nodes across 2 node types, "
        "1 edges across 1 edge types"
    )
    done = omnigraph("read", "stock", "--bogus", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
