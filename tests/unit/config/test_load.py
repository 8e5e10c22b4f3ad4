"""`omnigraph.yaml`: what each member becomes, and how everything wrong with it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.config.load import load_config
from omnigraph_core.config.model import (
    AliasConfig,
    CliConfig,
    Config,
    GraphConfig,
    PolicyConfig,
    ServerConfig,
)
from omnigraph_core.errors import ConfigError
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = """
project: { name: plant }
graphs:
  local: { uri: data/plant.omni }
  above: { uri: /srv/plant }
  cloud:
    uri: s3://bucket/plant
    policy: { file: cloud.yaml }
  team:
    uri: https://graphs.example.org/graphs/plant
    bearer_token_env: TEAM_TOKEN
server:
  graph: local
  bind: "127.0.0.1:8080"
  cors_origins: [https://app.example.org]
  per_actor_inflight: 8
  per_actor_bytes: 1048576
  hides_uris: true
cli:
  graph: team
  branch: 2026
  actor: ada
  output_format: kv
  table_max_column_width: 40
  table_cell_layout: wrap
query: { roots: [queries, .] }
auth: { env_file: .env.omnigraph }
aliases:
  part:
    command: query
    query: parts.gq
    name: part_by_sku
    args: [sku, least]
    graph: local
    branch: review
    format: csv
  drop: { command: mutate, query: edits.gq }
policy: { file: policy.yaml, tests: cases.yaml }
"""


def load(folder: Path, text: str) -> Config:
    path = folder / "omnigraph.yaml"
    path.write_text(text)
    return load_config(path)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load(folder, text)
    return refused.value.message.replace(f"{folder}/omnigraph.yaml:", "").splitlines()


def test_every_member(tmp_path: Path) -> None:
    assert load(tmp_path, WHOLE) == Config(
        path=tmp_path / "omnigraph.yaml",
        directory=tmp_path,
        project_name="plant",
        graphs={
            "local": GraphConfig(str(tmp_path / "data" / "plant.omni")),
            "above": GraphConfig("/srv/plant"),
            "cloud": GraphConfig("s3://bucket/plant", policy_file=tmp_path / "cloud.yaml"),
            "team": GraphConfig("https://graphs.example.org/graphs/plant", "TEAM_TOKEN"),
        },
        server=ServerConfig(
            graph="local",
            bind="127.0.0.1:8080",
            cors_origins=("https://app.example.org",),
            per_actor_inflight=8,
            per_actor_bytes=1048576,
            hides_uris=True,
        ),
        cli=CliConfig("team", "2026", "ada", "kv", 40, "wrap"),
        query_roots=(tmp_path / "queries", tmp_path),
        env_file=tmp_path / ".env.omnigraph",
        aliases={
            "part": AliasConfig(
                name="part",
                is_mutation=False,
                query="parts.gq",
                query_name="part_by_sku",
                args=("sku", "least"),
                graph="local",
                branch="review",
                format="csv",
            ),
            "drop": AliasConfig(name="drop", is_mutation=True, query="edits.gq"),
        },
        policy=PolicyConfig(tmp_path / "policy.yaml", tmp_path / "cases.yaml"),
    )


@each("text", ["", "\n# nothing\n", "---\n", "~\n", "\ufeff"])
def test_nothing_at_all(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == Config(tmp_path / "omnigraph.yaml", tmp_path)


def test_empty_values_count_as_left_out(tmp_path: Path) -> None:
    names = ("project", "graphs", "server", "cli", "query", "auth", "aliases", "policy")
    found = load(tmp_path, "".join(f"{name}:\n  # later\n" for name in names))
    assert found == Config(tmp_path / "omnigraph.yaml", tmp_path)
    found = load(tmp_path, "cli:\n  graph:\n  branch: ''\n  output_format:\n")
    assert found.cli == CliConfig()


def test_targets_are_graphs_under_their_old_name(tmp_path: Path) -> None:
    found = load(tmp_path, "targets: { a: { uri: /a } }\ngraphs: { b: { uri: /b } }\n")
    assert {name: graph.uri for name, graph in found.graphs.items()} == {"a": "/a", "b": "/b"}
    twice = problems(tmp_path, "targets:\n  a: { uri: /a }\ngraphs:\n  a: { uri: /b }\n")
    assert twice == ["2: `targets.a.uri` is given in `graphs` and in `targets`: `a`"]


def test_names_that_mean_nothing_are_warnings(tmp_path: Path) -> None:
    found = load(tmp_path, "cli:\n  grph: a\n  colour: red\nserver: { bind: b }\nservers: {}\n")
    path = tmp_path / "omnigraph.yaml"
    assert found.warnings == (
        f"{path}:2: `cli.grph` means nothing here; did you mean `graph`?",
        f"{path}:3: `cli.colour` means nothing here",
        f"{path}:5: `servers` means nothing here; did you mean `server`?",
    )
    assert found.server.bind == "b"
    found = load(tmp_path, "aliases:\n  x: { command: change, query: x.gq, format: kv }\n")
    assert found.warnings == (f"{path}:2: `aliases.x.format` means nothing here",)


def test_all_problems_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """\
project: plant
graphs:
  a: { bearer_token_env: A }
  b: /srv/b
cli:
  output_format: tabel
  table_max_column_width: 0
  graph: [a]
query:
  roots: { a: b }
server:
  hides_uris: 3
  bind: a
  bind: b
aliases:
  x: { command: delete, query: x.gq }
  y: { args: [[1]] }
"""
    assert problems(tmp_path, text) == [
        "1: `project`: expected `name: value` lines, found `plant`",
        "3: `graphs.a.uri` is missing: the address of the graph",
        "4: `graphs.b.uri` is missing: the address of the graph",
        "4: `graphs.b`: expected `name: value` lines, found `/srv/b`",
        "6: `cli.output_format`: expected table, kv, csv, jsonl or json, found `tabel`; "
        "did you mean `table`?",
        "7: `cli.table_max_column_width`: expected a whole number above zero, found `0`",
        "8: `cli.graph`: expected a text, found a list",
        "10: `query.roots`: expected a list of texts, found `name: value` lines",
        "12: `server.hides_uris`: expected true or false, found `3`",
        "14: `server.bind` is given twice",
        "16: `aliases.x.command`: expected read, query, change or mutate, found `delete`",
        "17: `aliases.y.args`: expected a list of texts, found a list",
        "17: `aliases.y.command` is missing: read or change",
        "17: `aliases.y.query` is missing: a file with queries",
    ]


@each(
    ("text", "expected"),
    [
        ("cli: {", "1: not YAML: "),
        ("cli:\n\tgraph: a", "2: not YAML: "),
        ("- a\n", "1: expected `name: value` lines, found a list"),
        ("a: 1\n---\nb: 2\n", "2: not YAML: "),
        ("[a]: b\n", "1: a name is expected, found a list"),
        ("a: " + "[" * 5_000, "nested too deeply"),
    ],
)
def test_not_a_configuration(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in problems(tmp_path, text)[0]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read configuration file none\.yaml: No such"):
        load_config(tmp_path.relative_to(tmp_path) / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"cli: { graph: \xe4 }")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(tmp_path / "latin.yaml")
