"""Which graph and which branch a command line means, beside a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typer

from omnigraph_core.cli.target import ChosenGraph, GivenGraph
from omnigraph_core.config.model import AliasConfig
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """
graphs:
  local: { uri: /srv/local }
  team: { uri: https://host/team }
cli: { graph: local, branch: review, actor: ada, grph: x }
"""
ALIAS = AliasConfig("a", is_mutation=False, query="q.gq", graph="team", branch="spring")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "omnigraph.yaml").write_text(CONFIG)
    return tmp_path / "omnigraph.yaml"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    path = tmp_path / "bare.yaml"
    path.write_text("")
    return path


def test_what_is_given_is_stronger_than_what_is_configured(config: Path) -> None:
    assert GivenGraph().chosen() == ChosenGraph("/srv/local", "local")
    assert GivenGraph(target="team").chosen() == ChosenGraph("https://host/team", "team")
    for given in (GivenGraph(uri="a"), GivenGraph(uri_option="a"), GivenGraph().at("a")):
        assert (given.chosen(), given.address) == (ChosenGraph("a"), "a")
    assert GivenGraph(target="http://host").chosen() == ChosenGraph("http://host")
    assert GivenGraph().by_alias(ALIAS).chosen().name == "team"
    assert GivenGraph(target="local").by_alias(ALIAS).chosen().name == "local"
    assert GivenGraph(uri_option="a").by_alias(ALIAS).address == "a"


def test_the_address_is_given_once(config: Path) -> None:
    with pytest.raises(typer.BadParameter, match="the argument and --uri exclude each other"):
        GivenGraph(uri="a", uri_option="a").chosen()
    with pytest.raises(typer.BadParameter, match="--uri and --target exclude each other"):
        GivenGraph(uri_option="a", target="local").chosen()


def test_no_address(bare: Path) -> None:
    given = GivenGraph(config=bare)
    assert not given.is_known
    with pytest.raises(typer.BadParameter, match="URI must be provided"):
        given.chosen()


def test_an_empty_argument_is_not_the_graph_of_the_configuration(config: Path) -> None:
    for name in (lambda: GivenGraph(uri=""), lambda: GivenGraph().at("")):
        with pytest.raises(typer.BadParameter, match="URI must be provided: the argument is empty"):
            name()


def test_a_name_nobody_knows(config: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        GivenGraph(target="tema").chosen()
    assert refused.value.message == "graph 'tema' not found in omnigraph.yaml"
    assert refused.value.hint == "did you mean `team`? graphs there: local, team"


def test_branch(config: Path, bare: Path) -> None:
    assert GivenGraph().branch("b") == "b"
    assert GivenGraph().branch(None) == "review"
    assert GivenGraph().by_alias(ALIAS).branch(None) == "spring"
    assert GivenGraph().by_alias(ALIAS).branch("b") == "b"
    assert GivenGraph(config=bare).branch(None) == "main"


def test_actor(config: Path, bare: Path) -> None:
    assert GivenGraph().actor == "ada"
    assert GivenGraph(actor="bob").actor == "bob"
    assert GivenGraph(uri="a", config=bare).actor is None
    assert GivenGraph(target="team").actor is None
    with pytest.raises(typer.BadParameter, match="the token says who acts"):
        _ = GivenGraph(target="team", actor="bob").actor


def test_warnings_are_told_once(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = GivenGraph()
    given.by_alias(ALIAS).at("a").branch(None)
    given.branch(None)
    assert capsys.readouterr().err == (
        f"warning: {config}:5: `cli.grph` means nothing here; did you mean `graph`?\n"
    )
