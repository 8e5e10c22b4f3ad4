"""`omnigraph read`: which query, which snapshot, which form, and what stops it."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.cli.main import main
from omnigraph_core.history.snapshots import ReadTarget
from tests.integration.cli.outputs import Output, run_with_output
from tests.integration.cli.process import ENVIRONMENT, Command, omnigraph
from tests.support.processes import say, spawn
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

QUERIES = """
query parts($least: F64?) {
  match { $p: Part }
  return { $p.sku, $p.name, $p.price }
  order { $p.sku }
}
query held_in($code: String) {
  match { $b: Bin { code: $code }  $b $h:holds $p }
  return { $p.sku as sku, $h.count as n }
}
query remove() { delete Part where sku = "M8" }
"""
BINS = "query bins() { match { $b: Bin } return { $b.code } order { $b.code } }"
ENDLESS = """
query endless() {
  match { $a: Part  $b: Part  $c: Part  $a.price < $b.price  $b.price < $c.price }
  return { count($a) as n }
}
"""


@pytest.fixture
def stock(folder: Path, full: Omnigraph) -> Omnigraph:
    """The graph with the stock in it, and `queries.gq` beside it."""
    (folder / "queries.gq").write_text(QUERIES)
    return full


def test_a_table_is_printed(folder: Path, stock: Omnigraph) -> None:
    done = omnigraph("read", "stock", "--query", "queries.gq", "--name", "parts", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "2 rows from branch main via parts\n"
        "p.sku | p.name | p.price\n"
        "------+--------+--------\n"
        "M10   | Mutter | null   \n"
        "M8    | bolt   | 0.1    \n"
    )


HELD = ("--query", "queries.gq", "--name", "held_in")
WHOLE = {
    "json": """{
  "query_name": "held_in",
  "target": {
    "branch": "main",
    "snapshot": null
  },
  "row_count": 1,
  "columns": [
    "sku",
    "n"
  ],
  "rows": [
    {
      "sku": "M8",
      "n": 40
    }
  ]
}
""",
    "jsonl": '{"kind":"metadata","query_name":"held_in","target":{"branch":"main","snapshot":null},'
    '"row_count":1}\n{"sku":"M8","n":40}\n',
    "csv": "sku,n\nM8,40\n",
    "table": "1 rows from branch main via held_in\nsku | n \n----+---\nM8  | 40\n",
    "kv": "1 rows from branch main via held_in\nrow 1\nsku: M8\nn: 40\n",
}
"""The whole output in every form."""


@pytest.mark.parametrize("form", WHOLE)
def test_forms(folder: Path, call: Call, stock: Omnigraph, form: str) -> None:
    (folder / "params.json").write_text('{"code": "A1"}')
    given = ("--params-file", "params.json", "--format", form)
    assert call("read", "stock", *HELD, *given) == (0, WHOLE[form], "")


def test_json_is_a_form(call: Call, stock: Omnigraph) -> None:
    given = ("--uri", "stock", *HELD, "--params", '{"code": "A1"}', "--json")
    for form in ([], ["--format", "json"]):
        assert call("query", *given, *form) == (0, WHOLE["json"], "")


def test_cells_may_be_cut_or_wrapped(call: Call, stock: Omnigraph) -> None:
    query = 'query q() { match { $b: Bin } return { "twelve chars" as c } }'
    _, output, _ = call("read", "stock", "-e", query, "--max-width", "8")
    assert output.splitlines()[-1] == "twelve …"
    _, output, _ = call("read", "stock", "-e", query, "--max-width", "8", "--wrap")
    assert output.splitlines()[-2:] == ["twelve c", "hars    "]


def test_every_way_to_name_a_snapshot(call: Call, stock: Omnigraph) -> None:
    loaded = stock.snapshot()
    stock.tag_create("first", ReadTarget(snapshot_id=loaded.commit.graph_commit_id))
    stock.branch_create("review")
    stock.load(b'{"type":"Bin","data":{"code":"B2"}}', mode="merge")
    stock.load(b'{"type":"Bin","data":{"code":"C3"}}', mode="merge", branch="review")

    def bins(*arguments: object) -> list[str]:
        code, output, errors = call("read", "stock", "-e", BINS, "--format", "csv", *arguments)
        assert (code, errors) == (0, "")
        return output.splitlines()[1:]

    assert bins() == bins("--branch", "main") == ["A1", "B2"]
    assert bins("--branch", "review") == ["A1", "C3"]
    assert bins("--snapshot", loaded.commit.graph_commit_id) == ["A1"]
    assert bins("--tag", "first") == ["A1"]
    assert bins("--version", loaded.manifest_version) == ["A1"]
    assert bins("--version", "1") == []
    assert bins("--branch", "review", "--version", "2") == ["A1", "C3"]
    moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=loaded.commit.created_at)
    assert bins("--at", moment.isoformat()) == ["A1"]


def test_a_snapshot_is_told_by_its_commit(call: Call, stock: Omnigraph) -> None:
    commit_id = stock.head_commit_id_for_branch()
    for which in (["--snapshot", commit_id], ["--version", "2"]):
        _, output, _ = call("read", "stock", "-e", BINS, *which)
        assert output.startswith(f"1 rows from snapshot {commit_id} via bins\n")
        _, output, _ = call("read", "stock", "-e", BINS, *which, "--json")
        document = json.loads(output)
        assert document["target"] == {"branch": None, "snapshot": commit_id}


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["stock"], 1, "give exactly one query"),
        (["stock", "--query", "queries.gq", "-e", BINS], 1, "give exactly one query"),
        (["stock", "--query", "queries.gq", "--alias", "a"], 1, "give exactly one query"),
        (["stock", "other", "-e", BINS], 2, "one argument is expected, the graph"),
        (["--query", "queries.gq"], 2, "URI must be provided"),
        (["stock", "-e", BINS, "--branch", "main", "--snapshot", "x"], 2, "exclude each other"),
        (["stock", "-e", BINS, "--tag", "x", "--version", "1"], 2, "--tag and --version exclude"),
        (["stock", "-e", BINS, "--at", "yesterday"], 2, "--at 'yesterday'"),
        (["stock", "-e", BINS, "--json", "--format", "csv"], 2, "--json and --format csv"),
        (["stock", "-e", BINS, "--format", "xml"], 2, "'xml' is not one of"),
        (["stock", "-e", BINS, "--timeout", "0"], 2, "--timeout '0'"),
        (["stock", "-e", BINS, "--memory", "lots"], 2, "--memory 'lots'"),
        (["stock", "-e", BINS, "--params", "{}", "--params-file", "p"], 2, "exclude each other"),
        (["stock", "--query", "none.gq"], 1, "query file 'none.gq' not found"),
        (["stock", "--query", "queries.gq"], 1, "multiple queries"),
        (["stock", "--query", "queries.gq", "--name", "part"], 1, "did you mean `parts`?"),
        (["stock", "--query", "queries.gq", "--name", "remove"], 1, "run it as a mutation"),
        (["stock", "--query", "queries.gq", "--name", "held_in"], 1, "param 'code': missing"),
        (["stock", "-e", BINS.replace("$b.code", "$b.kode")], 1, "query string:1:46: error T6"),
        (["stock", "-e", BINS, "--branch", "none"], 1, "none"),
        (["stock", "-e", BINS, "--snapshot", "none"], 1, "none"),
        (["stock", "-e", BINS, "--tag", "none"], 1, "none"),
        (["stock", "-e", BINS, "--version", "99"], 1, "99"),
        (["stock", "-e", BINS, "--at", "1999-01-01"], 1, "1999-01-01"),
        (["nowhere", "-e", BINS], 1, "nowhere"),
    ],
)
def test_mistakes(call: Call, stock: Omnigraph, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call("read", *arguments)
    assert (ended, output) == (code, "")
    assert text in errors


def test_a_problem_is_reported_under_the_name_of_the_file(
    folder: Path, call: Call, stock: Omnigraph
) -> None:
    (folder / "bad.gq").write_text(BINS.replace("$b.code", "$b.kode"))
    code, output, errors = call("read", "stock", "--query", "bad.gq")
    assert (code, output) == (1, "")
    assert errors.startswith("error: ")
    assert "bad.gq:1:46: error T6: unknown property `kode` on `Bin`" in errors


@pytest.fixture
def endless(folder: Path, stock: Omnigraph) -> list[str]:
    """A command that would run for hours."""
    lines = (f'{{"type":"Part","data":{{"sku":"{n}","price":{n}}}}}\n' for n in range(6_000))
    stock.load("".join(lines).encode(), mode="merge", embed="off")
    return ["read", "stock", "-e", ENDLESS]


@pytest.mark.parametrize(
    ("limit", "text"),
    [(["--timeout", "0.5"], "longer than 0.5 s"), (["--memory", "1K"], "may use 1,024")],
)
def test_a_query_stops_at_its_limits(
    call: Call, endless: list[str], limit: list[str], text: str
) -> None:
    code, output, errors = call(*endless, *limit)
    assert (code, output) == (1, "")
    assert text in errors


def test_ctrl_c_stops_a_query(folder: Path, endless: list[str]) -> None:
    with spawn(f"{__name__}:say_when_it_begins", str(folder), endless, env=ENVIRONMENT) as command:
        assert command.next_line() == "begun"
        begun = cpu_seconds(command.pid)
        wait_until(lambda: cpu_seconds(command.pid) > begun + 0.5, "the query to be at work")
        os.kill(command.pid, signal.SIGINT)
        outcome = command.wait()
    assert (outcome.returncode, outcome.stdout) == (130, "begun\n")
    assert outcome.stderr == "interrupted: the query was stopped\n"


def say_when_it_begins(folder: str, arguments: list[str]) -> None:
    """In a process of its own: the command, which tells when its query begins."""
    from omnigraph_core.engine.omnigraph import Omnigraph

    query = Omnigraph.query

    def beginning(self: Omnigraph, *given: Any, **options: Any) -> Any:
        say("begun")
        return query(self, *given, **options)

    Omnigraph.query = beginning  # type: ignore[method-assign]
    os.chdir(folder)
    sys.argv = ["omnigraph", *arguments]
    main()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ctrl_c_stops_the_output(folder: Path, stock: Omnigraph) -> None:
    fill_bins(stock)
    reader, writer = os.pipe()
    with (
        os.fdopen(reader) as output,
        Command(
            "read", "stock", "-e", BINS, "--format", "csv", folder=folder, output=writer
        ) as command,
    ):
        os.close(writer)
        assert output.readline() == "b.code\n"
        command.interrupt()  # it waits: the pipe is full, and nobody reads on
        output.read()
        done = command.end()
    assert done.returncode == 130
    assert done.stderr == "interrupted: the output is not complete\n"


@pytest.mark.parametrize(
    ("form", "output", "message"),
    [
        ("table", Output.FULL, "error: cannot write the output: File too large\n"),
        ("jsonl", Output.UNREAD, ""),
        ("json", Output.CLOSED, "error: cannot write the output: it is closed\n"),
    ],
)
def test_output_that_cannot_be_written(
    folder: Path, stock: Omnigraph, form: str, output: Output, message: str
) -> None:
    fill_bins(stock)
    done = run_with_output(
        output, "read", "stock", "-e", BINS, "--format", form, folder=folder, room=64 * 1024
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def fill_bins(graph: Omnigraph) -> None:
    """More than a pipe can hold."""
    lines = (f'{{"type":"Bin","data":{{"code":"{n:0200}"}}}}\n' for n in range(2_000))
    graph.load("".join(lines).encode(), mode="merge")
