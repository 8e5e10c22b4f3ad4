"""Every command is the same for a graph behind a server as for the graph itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.settings import EMBEDDINGS_MOCK
from tests.integration.cli.conftest import SCHEMA, STOCK
from tests.integration.cli.process import run_here
from tests.support.server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.cli.conftest import Call

BIN = b'{"type":"Bin","data":{"code":"B2"}}'


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """A graph with a branch, a tag, a run and a merge behind it."""
    folder = tmp_path_factory.mktemp("remote")
    (folder / "stock.pg").write_text(SCHEMA)
    (folder / "wider.pg").write_text(SCHEMA.replace("enum(new, used)", "enum(new, used, lost)"))
    graph = Omnigraph.init(str(folder / "stock"), SCHEMA)
    graph.load(STOCK.encode(), embed="off")
    graph.tag_create("v1")
    graph.branch_create("review")
    graph.load(BIN, mode="merge", branch="review", actor="ada")
    graph.branch_merge("review", actor="ada")
    graph.load(BIN.replace(b"B2", b"C3"), mode="merge", branch="review")
    graph.begin_run(operation_hash="night")
    return graph


@pytest.fixture(scope="module")
def url(stock: Omnigraph) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(EMBEDDINGS_MOCK.name, "1")
        with serving(stock.uri) as client:
            yield client.url


@pytest.fixture
def both(stock: Omnigraph, url: str) -> Call:
    """Run a command on the graph and on the server; what both say, which must be the same."""

    def run(*arguments: object) -> tuple[int, str, str]:
        said = [once(arguments, address) for address in (stock.uri, url)]
        local, remote = said
        assert remote == local
        return local

    return run


def once(arguments: tuple[object, ...], address: str) -> tuple[int, str, str]:
    """With the address as the graph; in what is said it is called GRAPH."""
    done = run_here(*arguments, "--uri", address, folder=Path.cwd(), environment=dict(os.environ))
    output, errors = done.stdout.replace(address, "GRAPH"), done.stderr.replace(address, "GRAPH")
    return done.returncode, output, errors


READS = [
    "branch list --json",
    "commit list",
    "commit list --branch review --limit 2 --json",
    "commit graph --all --json",
    "tag list --json",
    "run list --json",
    "snapshot --branch review --json",
    "snapshot --version 1 --json",
    "snapshot --at 2099-01-01T00:00:00Z",
    "schema show --json",
    "schema diagram",
    "branch diff main..review",
    "branch diff tag:v1..main --json",
    "branch diff tag:v1..main --stat --json",
    "branch diff tag:v1..main --no-values --limit 0 --json",
    "branch merge review --dry-run --json",
    "branch reset main --to tag:v1 --json",
    "index status --json",
    "embed status --json",
    "blob get Part M10 drawing",
    "blob stat Part M10 drawing --json",
    "cleanup --keep 1 --older-than 1d --json",
    "changes cursor --json",
]


@pytest.mark.parametrize("command", READS)
def test_reads(both: Call, command: str) -> None:
    code, output, _ = both(*command.split())
    assert code == 0
    assert output


def test_commits(both: Call, stock: Omnigraph) -> None:
    merge = stock.snapshot().commit.graph_commit_id
    for command in ("show", "changes"):
        for form in ((), ("--json",)):
            assert both("commit", command, merge, *form)[0] == 0
    for command in (("commit", "revert", merge), ("commit", "pick", merge)):
        assert both(*command, "--dry-run", "--json")[0] == 0
    (run,) = [run for run in stock.list_runs() if run.operation_hash == "night"]
    assert both("run", "show", run.run_id)[0] == 0
    assert both("run", "publish", run.run_id, "--dry-run")[0] == 0


def test_a_schema_that_is_planned(
    both: Call, stock: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stock.uri.rpartition("/")[0])
    for form in ((), ("--json",)):
        assert both("schema", "plan", "--schema", "wider.pg", *form)[0] == 0
        assert both("schema", "apply", "--schema", "wider.pg", "--dry-run", *form)[0] == 0


def test_a_schema_that_is_wrong(
    both: Call, stock: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(stock.uri).parent
    monkeypatch.chdir(folder)
    (folder / "broken.pg").write_text("node Part {\n  sku: Strin\n")
    (folder / "other.pg").write_text(SCHEMA.replace("name: String?", "name: Bool?"))
    for name, line, shown in (("broken.pg", 2, "  sku: Strin"), ("other.pg", 4, "  name: Bool?")):
        code, output, errors = both("schema", "apply", "--schema", name)
        assert (code, output) == (1, "")
        assert errors.startswith(f"error: {name}:{line}:")
        assert shown in errors


def test_a_repeat_is_told(
    both: Call,
    stock: Omnigraph,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(Path(stock.uri).parent)
    Path("bin.jsonl").write_bytes(BIN)
    command = ("load", "--data", "bin.jsonl", "--mode", "merge", "--idempotency-key", "night")
    assert once(command, url)[1].startswith("loaded GRAPH")
    code, output, _ = both(*command)
    assert (code, output.startswith("already loaded GRAPH")) == (0, True)


@pytest.mark.parametrize("depth", [(), ("--deep",)])
def test_a_check(
    stock: Omnigraph,
    url: str,
    depth: tuple[str, ...],
) -> None:
    """A server keeps a record of it as of other long work, so the counts may differ."""
    for address in (stock.uri, url):
        code, output, errors = once(("verify", *depth, "--json"), address)
        document = json.loads(output)
        assert (code, errors, document["uri"], document["is_sound"]) == (0, "", "GRAPH", True)
        assert (document["is_deep"], document["checked"]["tags"]) == (bool(depth), 1)


def test_changes_that_follow(both: Call, stock: Omnigraph) -> None:
    first = stock.list_commits()[-1].graph_commit_id
    cursor = stock.cursor_at(first)
    for form in ((), ("--json",)):
        assert both("changes", "poll", "--cursor", cursor, *form)[0] == 0


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("branch create main", 1),
        ("branch delete main", 1),
        ("branch merge main", 1),
        ("branch merge review --if-commit 01ARZ3NDEKTSV4RRFFQ69G5FAV", 4),
        ("branch diff main..none", 1),
        ("commit show none", 1),
        ("tag create v1", 1),
        ("run show none", 1),
        ("snapshot --version 99", 1),
        ("schema show --tag none", 1),
        ("blob get Part none drawing", 1),
        ("blob get Part M8 drawing", 1),
        ("optimize --branch none", 1),
        ("cleanup --keep 1 --branch none", 1),
        ("changes poll --cursor nonsense", 1),
    ],
)
def test_refusals(both: Call, command: str, code: int) -> None:
    ended, output, errors = both(*command.split())
    assert (ended, output) == (code, "")
    assert errors.startswith("error: ")


def test_writes_reach_the_graph(stock: Omnigraph, url: str) -> None:
    def call(text: str) -> str:
        code, output, errors = once((*text.split(), "--json"), url)
        assert (code, errors) == (0, ""), errors
        return output

    made = json.loads(call("branch create next --from review"))
    assert list(made) == ["uri", "from", "name", "actor_id", "commit_id"]
    assert json.loads(call("branch merge next --into main --delete-branch"))["outcome"] == "merged"
    head = stock.snapshot().commit
    assert (head.operation, stock.branch_list()) == ("merge", ("main", "review"))
    call(f"commit revert {head.graph_commit_id}")
    assert stock.snapshot().commit.operation == "revert"
    reset = json.loads(call(f"branch reset main --to {head.graph_commit_id} --yes"))
    assert reset["graph_commit_id"] == stock.head_commit_id_for_branch()
    assert json.loads(call("tag create v2"))["commit_id"] == reset["graph_commit_id"]
    call("tag delete v2")
    assert [tag.tag for tag in stock.tag_list()] == ["v1"]
    run = json.loads(call("run begin --operation-hash day"))
    stock.load(BIN.replace(b"B2", b"E5"), mode="merge", branch=run["run_branch"])
    assert json.loads(call(f"run publish {run['run_id']}"))["status"] == "published"
    run = json.loads(call("run begin"))
    assert json.loads(call(f"run abort {run['run_id']}"))["status"] == "aborted"
    assert json.loads(call("index ensure"))["indexes"]
    assert json.loads(call("optimize"))["tables"]
    assert json.loads(call("embed backfill"))["vectors_made"] == 1
    assert json.loads(call("cleanup --keep 1 --confirm"))["is_preview"] is False
    jobs = json.loads(call("job list"))["jobs"]
    for job in jobs:
        assert json.loads(call(f"job show {job['job_id']}"))["status"] == "done"


def test_who_acts_is_told_by_the_token(stock: Omnigraph, url: str) -> None:
    arguments = ("branch", "create", "x", "--as", "ada")
    code, output, errors = once(arguments, url)
    assert (code, output) == (2, "")
    assert "the token says who acts" in errors
