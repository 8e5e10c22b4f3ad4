"""Values of aliases, and which arguments are values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer

from omnigraph_core.cli.aliases import Asked, asked, value_of
from omnigraph_core.cli.target import GivenGraph
from omnigraph_core.errors import ConfigError, QueryNotFound, QuerySyntaxError
from omnigraph_core.query.ast import TypeRef
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """
graphs: {{ team: {{ uri: /srv/team }} }}
cli: {cli}
query: {{ roots: [more] }}
aliases:
  part: {{ command: read, query: q.gq, name: part, args: [sku, least], format: kv }}
  named: {{ command: read, query: q.gq, name: part, args: [sku], graph: team }}
  rooted: {{ command: read, query: rooted.gq, args: [n] }}
  bare: {{ command: read, query: q.gq }}
  drop: {{ command: change, query: q.gq, name: drop, args: [sku] }}
  lost: {{ command: read, query: lost.gq }}
  wrong: {{ command: read, query: wrong.gq, args: [sku] }}
"""
QUERIES = """
query part($sku: String, $least: I64?) {
  match { $p: Part { sku: $sku } }
  return { $p.sku }
}
query drop($sku: String) { delete Part where sku = $sku }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    configure(tmp_path, "{}")
    (tmp_path / "q.gq").write_text(QUERIES)
    (tmp_path / "wrong.gq").write_text("query part(")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "rooted.gq").write_text(QUERIES.split("query drop")[0])
    return tmp_path


def configure(folder: Path, cli: str) -> None:
    (folder / "omnigraph.yaml").write_text(CONFIG.format(cli=cli))


def ask(*args: str, graph: GivenGraph | None = None, **options: Any) -> Asked:
    usual = {"alias": None, "query": None, "query_string": None, "name": None, "is_mutation": False}
    return asked(graph or GivenGraph(), args, **(usual | options))


def test_the_first_argument_is_the_graph_if_nothing_else_says_which(folder: Path) -> None:
    found = ask("stock", "M8", "2", alias="part")
    assert (found.graph.address, found.params({})) == ("stock", {"sku": "M8", "least": 2})
    assert (found.name, found.form, found.query.name) == ("part", "kv", "q.gq")
    assert found.query.text == QUERIES


@pytest.mark.parametrize(
    ("cli", "graph", "alias", "address"),
    [
        ("{ graph: team }", {}, "part", "/srv/team"),
        ("{}", {"target": "team"}, "part", "/srv/team"),
        ("{}", {"uri_option": "stock"}, "part", "stock"),
        ("{}", {}, "named", "/srv/team"),
    ],
)
def test_else_every_argument_is_a_value(
    folder: Path, cli: str, graph: dict[str, Any], alias: str, address: str
) -> None:
    configure(folder, cli)
    found = ask("https://host/M8", graph=GivenGraph(**graph), alias=alias)
    assert (found.graph.address, found.params({})) == (address, {"sku": "https://host/M8"})


def test_without_an_alias_there_is_one_argument(folder: Path) -> None:
    found = ask("stock", query_string="query q() {}", name="q")
    assert (found.graph.address, found.name, found.params({"a": 1})) == ("stock", "q", {"a": 1})
    with pytest.raises(typer.BadParameter, match="one argument is expected"):
        ask("stock", "M8", query_string="query q() {}")


def test_values_by_name_are_stronger(folder: Path) -> None:
    found = ask("stock", "M8", "2", alias="part")
    assert found.params({"least": 7}) == {"sku": "M8", "least": 7}


def test_fewer_values_are_fine_and_more_are_not(folder: Path) -> None:
    assert ask("stock", alias="part").params({}) == {}
    with pytest.raises(ConfigError, match="alias 'part' takes 2 values, got 3"):
        ask("stock", "a", "b", "c", alias="part")
    with pytest.raises(ConfigError, match="alias 'bare' takes 0 values, got 1"):
        ask("stock", "a", alias="bare")


def test_files_are_looked_for_in_the_places_for_queries(folder: Path) -> None:
    found = ask("stock", "7", alias="rooted")
    assert found.params({}) == {"n": 7}  # not declared: as JSON says
    inner = folder / "more"
    assert ask(query=inner / "rooted.gq").query.name == str(inner / "rooted.gq")


def test_a_file_of_the_current_directory_is_found_last(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = folder / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    (inner / "q.gq").write_text("query near() {}")
    (inner / "own.gq").write_text("query own() {}")
    assert ask(query=inner.relative_to(inner) / "own.gq").query.text == "query own() {}"
    assert ask(query=inner.relative_to(inner) / "q.gq").query.text == QUERIES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give exactly one query"),
        ({"alias": "part", "query_string": "x"}, "give exactly one query"),
        ({"alias": "prat"}, "alias 'prat' not found in omnigraph.yaml"),
        ({"alias": "drop"}, "alias 'drop' is for `change`"),
        ({"alias": "part", "is_mutation": True}, "alias 'part' is for `read`"),
        ({"alias": "lost"}, "query file 'lost.gq' not found"),
    ],
)
def test_mistakes(folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ask("stock", **options)
    assert refused.value.message.startswith(message)


def test_text_that_is_no_query(folder: Path) -> None:
    with pytest.raises(QuerySyntaxError, match=r"wrong\.gq:1"):
        ask("stock", "M8", alias="wrong")
    with pytest.raises(QueryNotFound):
        ask("stock", "M8", alias="part", name="parts")


@each(
    ("argument", "declared", "value"),
    [
        ("2026", TypeRef("String"), "2026"),
        ("true", TypeRef("String"), "true"),
        ('"a b"', TypeRef("String"), "a b"),
        ("[1]", TypeRef("String"), "[1]"),
        ("null", TypeRef("String"), "null"),
        ("null", TypeRef("String", is_nullable=True), None),
        ("2026-01-02", TypeRef("Date"), "2026-01-02"),
        ("29", TypeRef("I64"), 29),
        ("x", TypeRef("I64"), "x"),
        ("NaN", TypeRef("F64"), "NaN"),
        ("true", TypeRef("Bool"), True),
        ('["a", "b"]', TypeRef("String", is_list=True), ["a", "b"]),
        ("29", None, 29),
        ("abc", None, "abc"),
        ("null", None, None),
        ("[" * 100_000, None, "[" * 100_000),
    ],
)  # fmt: skip
def test_values(argument: str, declared: TypeRef | None, value: object) -> None:
    found = value_of(argument, declared)
    assert (found, type(found)) == (value, type(value))
