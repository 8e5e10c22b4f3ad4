"""Reading and writing records behind a server: the same answers as from the graph itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.cli.conftest import SCHEMA, STOCK
from tests.integration.cli.process import omnigraph_process
from tests.support.ports import dead_port
from tests.support.server import serving, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.cli.conftest import Call

QUERIES = """
query parts() { match { $p: Part } return { $p.sku, $p.name, $p.price } order { $p.sku } }
query held_in($code: String) {
  match { $b: Bin { code: $code }  $b $h:holds $p }
  return { $p.sku as sku, $h.count as n }
}
query rename($sku: String, $name: String) { update Part set { name: $name } where sku = $sku }
"""
CONFIG = """
graphs:
  team: {{ uri: "{url}", bearer_token_env: TEAM_TOKEN }}
  plain: {{ uri: "{url}" }}
cli: {{ actor: nobody }}
auth: {{ env_file: .env }}
aliases:
  held: {{ command: read, query: queries.gq, name: held_in, args: [code], graph: team }}
  rename: {{ command: change, query: queries.gq, name: rename, args: [sku, name], graph: team }}
"""
TEAM = ("--target", "team")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with the stock, and the URL of a server for it that knows ada and bob."""
    folder = tmp_path_factory.mktemp("remote")
    (folder / "stock.jsonl").write_text(STOCK)
    (folder / "queries.gq").write_text(QUERIES)
    graph = Omnigraph.init(str(folder / "stock"), SCHEMA)
    graph.load(folder / "stock.jsonl", embed="off")
    known = tokens(ada="t-ada", bob="t-bob")
    with serving(str(folder / "stock"), env=known) as client:
        (folder / "omnigraph.yaml").write_text(CONFIG.format(url=client.url))
        (folder / "stock.pg").write_text(SCHEMA)
        yield folder, client.url


@pytest.fixture
def folder(place: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, with a token for the graph `team` in the environment."""
    monkeypatch.setenv("TEAM_TOKEN", "t-ada")
    return place[0]


@pytest.mark.parametrize("form", ["table", "kv", "csv", "jsonl", "json"])
def test_rows_are_the_same_in_every_form(call: Call, form: str) -> None:
    given = ("--query", "queries.gq", "--name", "parts", "--format", form)
    local = call("read", "stock", *given)
    assert (local[0], local[2]) == (0, "")
    assert call("read", *TEAM, *given) == local


@pytest.mark.parametrize(
    "command",
    [
        ("export",),
        ("lint", "--query", "queries.gq"),
        ("explain", "--query", "queries.gq", "--name", "parts"),
        ("read", "-e", "query q() { match { $p: Prt } return { $p.sku } }"),
        ("read", "--query", "queries.gq"),
        ("read", "--query", "queries.gq", "--name", "held_in", "--params", '{"code": 1, "b": 2}'),
        ("read", "--query", "queries.gq", "--name", "parts", "--branch", "none"),
        ("change", "--query", "queries.gq", "--name", "parts"),
        ("load", "--data", "bad.jsonl", "--mode", "append"),
        ("ingest", "--data", "bad.jsonl", "--branch", "main", "--dry-run"),
    ],
    ids=" ".join,
)
def test_answers_and_errors_are_the_same(folder: Path, call: Call, command: tuple[str]) -> None:
    (folder / "bad.jsonl").write_text(
        '{"type":"Part","data":{"sku":1}}\n{"type":"Prt","data":{}}\n{"type":"Bin","data":{}}\n'
    )
    local = call(*command, "--uri", "stock")
    assert (local[1] or local[2]).strip()
    assert call(*command, *TEAM) == local


def test_writes_are_the_same(folder: Path, call: Call) -> None:
    """All but what tells the two apart: the address, who acts, and which commit it is."""
    (folder / "bin.jsonl").write_text('{"type":"Bin","data":{"code":"B2"}}')

    def document(*command: str) -> dict[str, Any]:
        code, output, errors = call(*command, "--json")
        assert (code, errors) == (0, "")
        found: dict[str, Any] = json.loads(output)
        for name in ("uri", "actor_id", "commit_id", "manifest_version", "branch"):
            found.pop(name, None)
        return found

    for command in (
        ("ingest", "--data", "bin.jsonl", "--branch", "{}", "--no-embed"),
        ("load", "--data", "bin.jsonl", "--mode", "merge", "--branch", "{}", "--no-embed"),
        ("change", "--query", "queries.gq", "--name", "rename", "--branch", "{}", "--params",
         '{"sku": "M8", "name": "screw"}'),
    ):  # fmt: skip
        local = document(*(text.replace("{}", "here") for text in command), "--uri", "stock")
        assert document(*(text.replace("{}", "there") for text in command), *TEAM) == local


def test_the_token_says_who_acts(folder: Path, call: Call) -> None:
    code, output, _ = call("change", "--alias", "rename", "M10", "2026")
    assert (code, "actor_id: ada\n" in output) == (0, True)
    code, output, _ = call("read", "--alias", "held", "A1", "--format", "csv")
    assert (code, output) == (0, "sku,n\nM8,40\n")


ASK = ("--query", "queries.gq", "--name", "parts", "--format", "csv")


@pytest.mark.parametrize(
    ("target", "environment", "env_file", "code"),
    [
        ("plain", {"OMNIGRAPH_BEARER_TOKEN": "t-bob"}, "", 0),
        ("url", {"OMNIGRAPH_BEARER_TOKEN": "t-bob", "TEAM_TOKEN": "guessed"}, "", 0),
        ("team", {"TEAM_TOKEN": " t-ada ", "OMNIGRAPH_BEARER_TOKEN": "guessed"}, "", 0),
        ("team", {}, "export TEAM_TOKEN='t-ada'\n", 0),
        ("team", {"TEAM_TOKEN": "guessed"}, "TEAM_TOKEN=t-ada\n", 1),
        ("team", {}, "", 1),
        ("url", {"TEAM_TOKEN": "t-ada"}, "", 1),
    ],
)
def test_where_tokens_come_from(
    place: tuple[Path, str],
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    environment: dict[str, str],
    env_file: str,
    code: int,
) -> None:
    folder, url = place
    for name in ("TEAM_TOKEN", "OMNIGRAPH_BEARER_TOKEN"):
        monkeypatch.setenv(name, environment.get(name, ""))
        if name not in environment:
            monkeypatch.delenv(name)
    (folder / ".env").write_text(env_file)
    graph = ("--uri", url) if target == "url" else ("--target", target)
    ended, output, errors = call("read", *ASK, *graph)
    assert (ended, bool(output)) == (code, code == 0)
    assert code == 0 or "bearer token" in errors
    assert "guessed" not in errors


def test_through_a_process_of_its_own(folder: Path) -> None:
    (folder / ".env").write_text("TEAM_TOKEN=t-ada\n")
    done = omnigraph_process("read", *ASK, *TEAM, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("p.sku,p.name,p.price\nM10,")
    done = omnigraph_process("read", *ASK, *TEAM, "--branch", "none", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert "none" in done.stderr


def test_a_server_that_is_not_there(folder: Path, call: Call) -> None:
    with dead_port() as port:
        code, output, errors = call("export", f"http://127.0.0.1:{port}")
    assert (code, output) == (1, "")
    assert errors.startswith("error: ")
    assert f"127.0.0.1:{port}" in errors
