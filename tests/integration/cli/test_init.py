"""`omnigraph init`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph_core.cli import scaffold
from omnigraph_core.config.load import load_config
from omnigraph_core.config.model import GraphConfig
from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.cli.process import omnigraph

EXAMPLE = Path(__file__).parents[3] / "examples" / "maintenance"
SERIAL = '{"serial": "PR-100"}'


def test_makes_an_empty_graph(folder: Path) -> None:
    done = omnigraph("init", "new", "--schema", "stock.pg", "--as", "ada", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "initialized new\n", "")
    graph = Omnigraph.open(str(folder / "new"))
    assert list(graph.snapshot().tables) == ["edge:Holds", "node:Bin", "node:Part"]
    assert graph.snapshot().commit.actor_id == "ada"


def test_a_configuration_is_written_beside_the_graph_once(folder: Path) -> None:
    omnigraph("init", "plant/new", "--schema", "stock.pg", folder=folder)
    path = folder / "plant" / "omnigraph.yaml"
    config = load_config(path)
    assert (config.project_name, config.warnings) == ("new", ())
    assert dict(config.graphs) == {"local": GraphConfig(str(folder / "plant" / "new"))}
    assert (config.cli.graph, config.cli.branch, config.server.graph) == ("local", "main", "local")
    assert config.query_roots == (folder / "plant" / "queries", folder / "plant")
    listed = omnigraph("branch", "list", folder=folder / "plant")
    assert (listed.returncode, listed.stdout) == (0, "main\n")
    path.write_text("cli: {}\n")
    omnigraph("init", "plant/other", "--schema", "stock.pg", folder=folder)
    assert path.read_text() == "cli: {}\n"


def test_a_document_for_machines(folder: Path) -> None:
    done = omnigraph("init", "plant/new", "--schema", "stock.pg", "--json", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    head = Omnigraph.open(str(folder / "plant" / "new")).head_commit_id_for_branch()
    config = str(folder / "plant" / "omnigraph.yaml")
    expected = {"uri": "plant/new", "commit_id": head, "config": config}
    assert list(json.loads(done.stdout).items()) == list(expected.items())
    done = omnigraph("init", "plant/other", "--example", "--json", folder=folder)
    found = json.loads(done.stdout)
    other = Omnigraph.open(str(folder / "plant" / "other"))
    assert (found["config"], found["commit_id"]) == (None, other.head_commit_id_for_branch())


def test_a_graph_is_made_even_if_its_configuration_cannot_be(folder: Path) -> None:
    (folder / "omnigraph.yaml").symlink_to(folder / "gone" / "omnigraph.yaml")
    done = omnigraph("init", "new", "--schema", "stock.pg", folder=folder)
    assert (done.returncode, done.stdout) == (0, "initialized new\n")
    assert done.stderr == (
        f"note: cannot write {folder}/omnigraph.yaml: No such file or directory\n"
    )
    assert Omnigraph.open(str(folder / "new")).branch_list() == ("main",)


def test_an_example_is_a_project_to_try(tmp_path: Path) -> None:
    for number, name in enumerate(([], ["maintenance"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = omnigraph("init", "plant", "--example", *name, folder=folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "initialized plant\n", "")
        for source in EXAMPLE.iterdir():
            assert (folder / source.name).read_bytes() == source.read_bytes()
    given = ("--query", "queries.gq", "--name", "parts_of_machine", "--params", SERIAL)
    done = omnigraph("read", *given, folder=folder)
    assert done.stdout.startswith("2 rows from branch main via parts_of_machine\n")


def test_an_example_leaves_files_of_others_alone(tmp_path: Path) -> None:
    (tmp_path / "schema.pg").write_text("node A { x: String }\n")
    done = omnigraph("init", "plant", "--example", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "schema.pg is in the way" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["schema.pg"]


def test_the_packaged_example_is_the_one_of_the_repository() -> None:
    packaged = Path(scaffold.__file__).parent / "examples" / EXAMPLE.name
    assert {path.name for path in packaged.iterdir()} == {path.name for path in EXAMPLE.iterdir()}
    for path in EXAMPLE.iterdir():
        assert (packaged / path.name).read_bytes() == path.read_bytes()


def test_the_address_may_be_an_option(folder: Path) -> None:
    done = omnigraph("init", "--uri", folder / "new", "--schema", "stock.pg", folder=folder)
    assert (done.returncode, done.stdout) == (0, f"initialized {folder / 'new'}\n")
    assert Omnigraph.open(str(folder / "new")).branch_list() == ("main",)


def test_a_graph_that_is_there_stays(folder: Path, graph: Omnigraph) -> None:
    before = graph.snapshot()
    done = omnigraph("init", "stock", "--schema", "stock.pg", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: there is a graph at {folder / 'stock'}")
    assert graph.snapshot() == before


def test_a_wrong_schema_is_shown_where_it_stands(folder: Path) -> None:
    (folder / "wrong.pg").write_text("node A { x: Strin }\nnode B { y: Integer }\n")
    done = omnigraph("init", "new", "--schema", "wrong.pg", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert "wrong.pg:1:13" in done.stderr
    assert "wrong.pg:2:13" in done.stderr
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--schema", "stock.pg"], 2, "URI must be provided"),
        (["new", "--uri", "other", "--schema", "stock.pg"], 2, "exclude each other"),
        (["new"], 2, "--schema"),
        (["new", "--schema", "stock.pg", "--example"], 2, "--schema, or --example"),
        (["new", "--example=stock"], 1, "no example `stock`"),
        (["http://host/new", "--schema", "stock.pg"], 1, "only supported against local repo URIs"),
        (["new", "--schema", "none.pg"], 1, "cannot read schema file none.pg"),
        (["ftp://host/new", "--schema", "stock.pg"], 1, "ftp"),
    ],
)
def test_mistakes(folder: Path, arguments: list[str], code: int, text: str) -> None:
    done = omnigraph("init", *arguments, folder=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
