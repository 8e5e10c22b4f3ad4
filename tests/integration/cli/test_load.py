"""`omnigraph load`: what it prints, what it leaves, how it stops."""

from __future__ import annotations

import gzip
import json
import os
import pty
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.conftest import STOCK
from tests.integration.cli.process import ENVIRONMENT, Command, omnigraph
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

WRONG = """\
{"type":"Part","data":{"sku":"M8","price":-1}}
{"type":"Part","data":{"name":"no key"}}
{"type":"Part","data":{"sku":"M9","state":"newish"}}
// the next one is a typing mistake
{"type":"Prt","data":{"sku":"M8"}}
{"type":"Bin","data":{"code":"A1"}}
{"edge":"Holds","from":"A1","to":"M99"}
"""
PROBLEMS = [
    "wrong.jsonl:1: @range violation on Part.price",
    "wrong.jsonl:2: missing required property `sku` on Part",
    "wrong.jsonl:3: invalid enum value 'newish' on Part.state",
    "wrong.jsonl:5: unknown node type `Prt`; did you mean `Part`?",
    "wrong.jsonl:7: dst 'M99' not found in Part",
]


def rows(graph: Omnigraph, branch: str = "main") -> dict[str, int]:
    tables = graph.snapshot(branch).tables
    return {key: entry.row_count for key, entry in tables.items()}


def records(graph: Omnigraph, branch: str = "main") -> list[dict[str, object]]:
    return [json.loads(line) for line in b"".join(graph.export_jsonl(branch)).splitlines()]


def test_a_line_for_people(folder: Path, graph: Omnigraph) -> None:
    done = omnigraph("load", "stock", "--data", "stock.jsonl", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "loaded stock branch main with overwrite: 3 nodes across 2 node types, "
        f"1 edges across 1 edge types\ncommit_id: {graph.head_commit_id_for_branch()}\n"
    )
    assert rows(graph) == {"edge:Holds": 1, "node:Bin": 1, "node:Part": 2}


def test_directories_and_patterns(folder: Path, graph: Omnigraph) -> None:
    exports = folder / "exports"
    (exports / "nodes").mkdir(parents=True)
    (exports / "stock.jsonl").write_text(STOCK)
    (exports / "nodes" / "Bin.csv").write_text("code\nB1\nB2\n")
    (exports / "_SUCCESS").touch()
    done = omnigraph("load", "stock", "--data", "exports", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(graph) == {"edge:Holds": 1, "node:Bin": 3, "node:Part": 2}
    done = omnigraph("load", "stock", "--data", "exports/*.jsonl", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(graph) == {"edge:Holds": 1, "node:Bin": 1, "node:Part": 2}


def test_a_mistake_in_the_third_file_of_a_directory(folder: Path, graph: Omnigraph) -> None:
    (folder / "exports").mkdir()
    (folder / "exports" / "1.jsonl").write_text(STOCK)
    (folder / "exports" / "2.jsonl.gz").write_bytes(gzip.compress(b""))
    (folder / "exports" / "wrong.jsonl").write_text(WRONG)
    done = omnigraph("load", "stock", "--data", "exports", folder=folder)
    assert done.returncode != 0
    for problem in PROBLEMS:
        assert f"exports/{problem}" in done.stderr
    assert not any(rows(graph).values())


def test_inputs_that_cannot_be_loaded(folder: Path) -> None:
    (folder / "exports").mkdir()
    (folder / "exports" / "stock.jsonl").write_text(STOCK)
    (folder / "exports" / "README.md").touch()
    (folder / "empty").mkdir()
    data = [word for name in ("exports", "empty", "none/*.csv") for word in ("--data", name)]
    done = omnigraph("load", "stock", *data, folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: 3 inputs cannot be loaded:\n"
        "  exports/README.md: cannot tell the format from the name\n"
        "  no files to load in the directory empty\n"
        "  no file matches none/*.csv\n"
        "hint: name the format, or use one of the suffixes .jsonl .ndjson .json .csv .parquet "
        ".arrow .feather .ipc; names that begin with `_` or `.` are left out; `*` and `?` match "
        "within a name, but no `_` or `.` at its start; `**` matches directories; leave files out "
        "with a pattern, as in 'exports/*.jsonl'\n"
    )


def test_a_document_for_machines(folder: Path, graph: Omnigraph) -> None:
    done = omnigraph(
        "load", "--uri", "stock", "--data", "stock.jsonl", "--mode", "merge", "--as", "ada",
        "--json", folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    commit = graph.snapshot().commit
    assert commit.actor_id == "ada"
    expected = {
        "uri": "stock",
        "branch": "main",
        "mode": "merge",
        "nodes_loaded": 3,
        "edges_loaded": 1,
        "node_types_loaded": 2,
        "edge_types_loaded": 1,
        "commit_id": commit.graph_commit_id,
        "manifest_version": 2,
        "records_rejected": 0,
        "vectors_made": 1,
        "vectors_pending": 0,
        "dry_run": False,
        "repeated": False,
    }
    found = json.loads(done.stdout)
    assert list(found.items()) == list(expected.items())


def test_every_mistake_is_told_with_its_place(folder: Path, graph: Omnigraph) -> None:
    before = graph.snapshot()
    (folder / "wrong.jsonl").write_text(WRONG)
    done = omnigraph("load", "stock", "--data", "wrong.jsonl", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    first, *problems, last = done.stderr.splitlines()
    assert (first, last) == ("error: 5 problems", "hint: nothing was written")
    assert len(problems) == len(PROBLEMS)
    for found, expected in zip(problems, PROBLEMS, strict=True):
        assert found.startswith(expected)
    assert graph.snapshot() == before


def test_bad_records_can_be_put_aside_mended_and_loaded(folder: Path, graph: Omnigraph) -> None:
    (folder / "wrong.jsonl").write_text(WRONG)
    done = omnigraph(
        "load", "stock", "--data", "wrong.jsonl", "--skip-bad", "--rejects", "bad/rejects.jsonl",
        folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("rejected: 5 records, see bad/rejects.jsonl\n")
    assert rows(graph) == {"edge:Holds": 0, "node:Bin": 1, "node:Part": 0}
    lines = (folder / "bad" / "rejects.jsonl").read_text().splitlines()
    rejects = [json.loads(line) for line in lines]
    assert [item["line"] for item in rejects] == [1, 2, 3, 5, 7]
    assert [item["record"] for item in rejects] == [
        WRONG.splitlines()[n - 1] for n in (1, 2, 3, 5, 7)
    ]
    for item, expected in zip(rejects, PROBLEMS, strict=True):
        (problem,) = item["problems"]
        assert expected.endswith(problem[: len(expected) - len("wrong.jsonl:1: ")])

    mended = "\n".join(item["record"] for item in rejects)
    for wrong, right in [("-1", "1"), ('"name":', '"sku":'), ("newish", "new"), ("Prt", "Part"),
                         ("M99", "M9"), ('"M8"}', '"M12"}')]:  # fmt: skip
        mended = mended.replace(wrong, right)
    done = omnigraph(
        "load", "stock", "--data", "-", "--mode", "merge", "--rejects", "bad/rejects.jsonl",
        folder=folder, stdin=mended.encode(),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(graph) == {"edge:Holds": 1, "node:Bin": 1, "node:Part": 4}
    assert (folder / "bad" / "rejects.jsonl").read_text() == ""


def test_skipped_records_without_a_file_are_still_counted(folder: Path) -> None:
    (folder / "wrong.jsonl").write_text(WRONG)
    done = omnigraph("load", "stock", "--data", "wrong.jsonl", "--skip-bad", folder=folder)
    assert "rejected: 5 records, name a file with --rejects to see them" in done.stdout


def test_standard_input_and_its_lines(folder: Path, graph: Omnigraph) -> None:
    done = omnigraph("load", "stock", "--data", "-", folder=folder, stdin=WRONG.encode())
    assert done.returncode == 1
    assert "<stdin>:2: missing required property `sku` on Part" in done.stderr
    done = omnigraph("load", "stock", "--data", "-", folder=folder, stdin=STOCK.encode())
    assert done.returncode == 0
    assert rows(graph)["node:Part"] == 2


def test_files_of_several_formats_at_once(folder: Path, graph: Omnigraph) -> None:
    (folder / "stock.jsonl.gz").write_bytes(gzip.compress(STOCK.encode()))
    (folder / "edges").mkdir()
    (folder / "edges" / "Holds.csv").write_text("from,to,count\nA1,M10,7\n")
    done = omnigraph(
        "load", "stock", "--data", "stock.jsonl.gz", "--data", "edges/Holds.csv", folder=folder
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(graph) == {"edge:Holds": 2, "node:Bin": 1, "node:Part": 2}


def test_a_format_and_type_the_name_does_not_tell(folder: Path, graph: Omnigraph) -> None:
    table = b"sku,name,price\nM8,bolt,0.1\nM10,,0.2\n"
    done = omnigraph(
        "load", "stock", "--data", "-", "--format", "csv", "--type", "Part",
        folder=folder, stdin=table,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert {item["data"]["sku"]: item["data"]["name"] for item in records(graph)} == {  # type: ignore[index]
        "M8": "bolt",
        "M10": None,
    }


def test_a_dry_run_checks_and_leaves_no_trace(folder: Path, graph: Omnigraph) -> None:
    before = graph.snapshot()
    (folder / "wrong.jsonl").write_text(WRONG)
    good = omnigraph("load", "stock", "--data", "stock.jsonl", "--dry-run", folder=folder)
    bad = omnigraph("load", "stock", "--data", "wrong.jsonl", "--dry-run", folder=folder)
    assert (good.returncode, good.stdout) == (
        0,
        "checked stock branch main with overwrite: 3 nodes across 2 node types, "
        "1 edges across 1 edge types\n",
    )
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "wrong.jsonl:7: dst 'M99' not found in Part" in bad.stderr
    assert graph.snapshot() == before


def test_append_refuses_what_is_there(folder: Path, full: Omnigraph) -> None:
    before = full.snapshot()
    done = omnigraph("load", "stock", "--data", "stock.jsonl", "--mode", "append", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: 4 problems" in done.stderr
    assert "stock.jsonl:2: " in done.stderr
    assert "already exists" in done.stderr
    assert full.snapshot() == before


def test_a_repeat_under_one_key_loads_once(folder: Path, graph: Omnigraph) -> None:
    arguments = ("load", "stock", "--data", "stock.jsonl", "--idempotency-key", "monday")
    first = omnigraph(*arguments, folder=folder)
    head = graph.head_commit_id_for_branch()
    again = omnigraph(*arguments, folder=folder)
    assert (first.returncode, again.returncode) == (0, 0)
    assert again.stdout == f"already {first.stdout}"
    assert graph.head_commit_id_for_branch() == head
    other = omnigraph(*arguments, "--mode", "append", folder=folder)
    assert (other.returncode, other.stdout) == (1, "")
    assert "used for another request" in other.stderr


def test_another_head_than_expected_has_its_own_exit_code(folder: Path, full: Omnigraph) -> None:
    (init, head) = reversed([commit.graph_commit_id for commit in full.list_commits()])
    arguments = ("load", "stock", "--data", "stock.jsonl", "--if-commit")
    late = omnigraph(*arguments, init, folder=folder)
    assert (late.returncode, late.stdout) == (4, "")
    assert f"error: head is {head}, expected {init}" in late.stderr
    assert omnigraph(*arguments, head, folder=folder).returncode == 0


@pytest.mark.parametrize(
    ("choice", "code", "told"),
    [
        ([], 1, "GEMINI_API_KEY"),
        (["--embed", "defer"], 0, "pending: 1 vector, make them with `omnigraph embed stock`"),
        (["--embed", "off"], 0, "pending: 1 vector"),
        (["--no-embed"], 0, "pending: 1 vector"),
    ],
)
def test_vectors_without_a_provider(
    folder: Path, graph: Omnigraph, choice: list[str], code: int, told: str
) -> None:
    done = omnigraph(
        "load", "stock", "--data", "stock.jsonl", *choice,
        folder=folder, OMNIGRAPH_EMBEDDINGS_MOCK="0",
    )  # fmt: skip
    assert done.returncode == code
    assert told in done.stdout + done.stderr
    assert len(graph.list_commits()) == (1 if code else 2)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--data", "stock.jsonl"], 2, "URI must be provided"),
        (["stock"], 2, "--data"),
        (["stock", "--data", "stock.jsonl", "--mode", "replace"], 2, "'replace' is not one of"),
        (["stock", "--data", "-", "--data", "-"], 2, "can be read once"),
        (["stock", "--data", "stock.jsonl", "--no-embed", "--embed", "now"], 2, "exclude"),
        (["none", "--data", "stock.jsonl"], 1, "no graph at"),
        (["stock", "--data", "none.jsonl"], 1, "no such file: none.jsonl"),
        (["stock", "--data", "stock.pg"], 1, "cannot tell the format"),
        (["stock", "--data", "stock.jsonl", "--branch", "review"], 1, "review"),
    ],
)
def test_mistakes(folder: Path, arguments: list[str], code: int, text: str) -> None:
    done = omnigraph("load", *arguments, folder=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr


class Loading:
    """A load with a terminal as its stderr."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self._terminal, other_end = pty.openpty()
        self.command = Command(
            "load", "stock", *arguments,
            folder=folder, errors=other_end, environment=ENVIRONMENT | environment,
        )  # fmt: skip
        os.close(other_end)
        self.shown = ""
        self.output = ""

    def wait_for(self, text: str) -> None:
        while text not in self.shown:
            self.shown += os.read(self._terminal, 4096).decode()

    def interrupt(self) -> int:
        """The exit code."""
        self.command.interrupt()
        return self.finish()

    def finish(self) -> int:
        """The exit code, when it has come to an end."""
        with suppress(OSError):  # how a terminal says that nobody writes to it any more
            while found := os.read(self._terminal, 4096):
                self.shown += found.decode()
        os.close(self._terminal)
        with self.command:
            done = self.command.end()
        self.output = done.stdout
        return done.returncode


def test_an_interrupted_load_leaves_the_graph_as_it_was(folder: Path, full: Omnigraph) -> None:
    before = full.snapshot()
    with (folder / "many.jsonl").open("w") as file:
        for number in range(200_000):
            data = f'"sku":"S{number}","name":"screw {number}","price":{number % 100}.5'
            file.write(f'{{"type":"Part","data":{{{data}}}}}\n')
    # A load this quick could be over before the signal comes.
    loading = Loading(
        folder, "--data", "many.jsonl", OMNIGRAPH_FAILPOINTS="publish.before_image=sleep(60000)"
    )
    loading.wait_for("rows read")
    code = loading.interrupt()
    assert (code, loading.output) == (130, "")
    assert loading.shown.endswith("\r\ninterrupted: nothing was loaded\r\n")
    assert full.snapshot() == before
    assert omnigraph("load", "stock", "--data", "stock.jsonl", folder=folder).returncode == 0


def test_an_interrupt_after_the_commit_does_not_claim_otherwise(
    folder: Path, graph: Omnigraph
) -> None:
    before = graph.head_commit_id_for_branch()
    loading = Loading(
        folder,
        "--data",
        "stock.jsonl",
        "--quiet",
        OMNIGRAPH_FAILPOINTS="publish.after_image=sleep(60000)",
    )

    def has_landed() -> bool:
        assert not loading.command.has_ended()
        return graph.head_commit_id_for_branch() != before

    wait_until(has_landed, "the commit")
    head = graph.head_commit_id_for_branch()
    code = loading.interrupt()
    assert (code, loading.output) == (130, "")
    assert loading.shown == (
        f"interrupted: the write may have landed, main is at commit {head} now\r\n"
    )
    assert rows(graph)["node:Part"] == 2


def test_a_terminal_shows_how_far_it_is(folder: Path) -> None:
    loading = Loading(folder, "--data", "stock.jsonl")
    assert loading.finish() == 0
    assert "\r\x1b[K4 rows read, 4 validated, 1 embedded, 4 staged" in loading.shown
    assert loading.shown.endswith(" rows/s\r\n")
    assert loading.output.startswith("loaded stock ")
