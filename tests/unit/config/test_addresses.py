"""What goes with one graph: its policy, its token, and its name in policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph_core.config.addresses import bearer_token, policy_file, resource_id
from omnigraph_core.config.model import (
    CliConfig,
    Config,
    GraphConfig,
    PolicyConfig,
    ServerConfig,
)
from tests.support.cases import each

if TYPE_CHECKING:
    import pytest

GRAPHS = {
    "team": GraphConfig("https://host/a", "TEAM_TOKEN", Path("team.yaml")),
    "open": GraphConfig("https://host/b"),
}


def test_resource() -> None:
    server, cli = ServerConfig(graph="team"), CliConfig(graph="open")
    assert resource_id(Config(project_name="p", graphs=GRAPHS, server=server)) == "p"
    assert resource_id(Config(graphs=GRAPHS, server=server, cli=cli)) == "https://host/a"
    assert resource_id(Config(graphs=GRAPHS, cli=cli)) == "https://host/b"
    assert resource_id(Config(server=server)) == "default"


def test_policy() -> None:
    config = Config(graphs=GRAPHS, policy=PolicyConfig(Path("all.yaml")))
    assert policy_file(config, "team") == Path("team.yaml")
    assert policy_file(config, "open") == policy_file(config, None) == Path("all.yaml")
    assert policy_file(Config(), None) is None


@each(
    ("name", "outside", "inside", "token"),
    [
        ("team", {}, {}, None),
        ("team", {"TEAM_TOKEN": " t ", "OMNIGRAPH_BEARER_TOKEN": "o"}, {}, "t"),
        ("team", {"TEAM_TOKEN": " ", "OMNIGRAPH_BEARER_TOKEN": "o"}, {}, "o"),
        ("team", {"TEAM_TOKEN": "t"}, {"TEAM_TOKEN": "f"}, "t"),
        ("team", {"TEAM_TOKEN": ""}, {"TEAM_TOKEN": "f"}, "f"),
        ("team", {"OMNIGRAPH_BEARER_TOKEN": "o"}, {"TEAM_TOKEN": "f"}, "f"),
        ("open", {"TEAM_TOKEN": "t"}, {"OMNIGRAPH_BEARER_TOKEN": "f"}, "f"),
        (None, {"TEAM_TOKEN": "t"}, {}, None),
        (None, {"TEAM_TOKEN": "t", "OMNIGRAPH_BEARER_TOKEN": "o"}, {}, "o"),
    ],
)
def test_token(
    name: str | None,
    outside: dict[str, str],
    inside: dict[str, str],
    token: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("TEAM_TOKEN", "OMNIGRAPH_BEARER_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in outside.items():
        monkeypatch.setenv(variable, value)
    (tmp_path / "env").write_text("".join(f"{key}={value}\n" for key, value in inside.items()))
    assert bearer_token(Config(graphs=GRAPHS, env_file=tmp_path / "env"), name) == token
