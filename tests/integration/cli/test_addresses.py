"""Every command takes its graph in every form: as an argument, with `--uri`, and with `--target`,
which takes the name of a graph or the URL of a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
import typer

from omnigraph_core.cli.app import app
from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.cli.conftest import SCHEMA, STOCK
from tests.integration.cli.process import omnigraph_process
from tests.support.server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.cli.conftest import Call

WITHOUT_A_GRAPH: Final = {
    "version",
    "completion",
    "serve",
    "graphs list",
    "policy validate",
    "policy test",
    "policy explain",
    "policy matrix",
}
WITHOUT_A_DOCUMENT: Final = {"completion", "serve", "blob get"}
"""What they print is no document: a script, the log of a server, bytes."""
QUERY: Final = "query parts() { match { $p: Part } return { $p.sku, $p.name } order { $p.sku } }"


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", {})
    if not children:
        yield " ".join(path), command
    for name, child in children.items():
        yield from leaves(child, (*path, name))


COMMANDS: Final = dict(leaves(typer.main.get_command(app)))


def spellings(command: Any) -> set[str]:
    return {spelling for item in command.params for spelling in item.opts}


def test_every_command_offers_every_form() -> None:
    offered = {name: spellings(command) for name, command in COMMANDS.items()}
    lacking = {
        name
        for name, found in offered.items()
        if not {"--uri", "--target", "--config", "--as"} <= found or not {"uri", "args"} & found
    }
    assert lacking == WITHOUT_A_GRAPH
    assert {name for name, found in offered.items() if "--json" not in found} == WITHOUT_A_DOCUMENT


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with a graph and a configuration that calls it `here`, and the URL of its server."""
    folder = tmp_path_factory.mktemp("addresses")
    (folder / "queries.gq").write_text(QUERY)
    (folder / "stock.pg").write_text(SCHEMA)
    graph = Omnigraph.init(str(folder / "stock"), SCHEMA)
    graph.load(STOCK.encode(), embed="off")
    graph.branch_create("review")
    graph.tag_create("v1")
    graph.begin_run()
    (folder / "omnigraph.yaml").write_text("graphs: { here: { uri: stock } }\n")
    with serving(graph.uri) as client:
        yield folder, client.url


@pytest.fixture
def folder(place: tuple[Path, str]) -> Path:
    return place[0]


READS: Final = [
    "read --query queries.gq --json",
    "query --query queries.gq --json",
    "explain --query queries.gq",
    "lint --query queries.gq",
    "snapshot",
    "export",
    "branch list",
    "branch diff tag:v1..review",
    "branch merge review --dry-run",
    "commit list",
    "commit graph",
    "tag list",
    "run list",
    "schema show",
    "schema plan --schema stock.pg",
    "schema diagram",
    "index status",
    "embed status",
    "changes poll",
    "blob stat Part M10 drawing",
    "cleanup --keep 1",
]


@pytest.mark.parametrize("command", READS)
def test_every_form_is_the_same_graph(place: tuple[Path, str], call: Call, command: str) -> None:
    folder, url = place
    forms = {
        "argument": ("stock",),
        "--uri": ("--uri", "stock"),
        "--target": ("--target", "here"),
        "--target URL": ("--target", url),
        "argument URL": (url,),
        "--uri URL": ("--uri", url),
    }
    said = {form: call(*command.split(), *given) for form, given in forms.items()}
    for form, (code, output, errors) in said.items():
        assert code == 0, (form, errors)
        for address in (str(folder / "stock"), url):
            output = output.replace(address, "stock")
        said[form] = (code, output, errors)
    assert len({*said.values()}) == 1


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        (["stock", "--uri", "stock"], 2, "the argument and --uri exclude each other"),
        (["--uri", "stock", "--target", "here"], 2, "--uri and --target exclude each other"),
        (["stock", "--target", "here"], 2, "the argument and --target exclude each other"),
        ([], 2, "URI must be provided"),
        (["--target", "there"], 1, "graph 'there' not found in omnigraph.yaml"),
        (["--target", "stock"], 1, "graph 'stock' not found in omnigraph.yaml"),
        (["ftp://host/stock"], 1, "ftp"),
        (["http://"], 1, "http://"),
        (["http://[::1"], 1, "not the address of a server"),
        (["http://127.0.0.1:99999"], 1, "not the address of a server"),
        (["s3://"], 1, "s3://"),
        (["file://host/stock"], 1, "file://host"),
    ],
)
def test_mistakes(call: Call, given: list[str], code: int, text: str) -> None:
    ended, output, errors = call("branch", "list", *given)
    assert (ended, output) == (code, "")
    assert text in errors


def test_as_a_process(place: tuple[Path, str]) -> None:
    folder, url = place
    for given in (("stock",), ("--uri", "stock"), ("--target", "here"), ("--target", url)):
        done = omnigraph_process("branch", "list", *given, folder=folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "main\nreview\n", "")
