"""Input that cannot be right: one clear error, the exit code that belongs to it, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.process import ENVIRONMENT, OMNIGRAPH, Command, omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

BINS = "query bins() { match { $b: Bin } return { $b.code } }"
READ = ("read", "stock", "-e", BINS)
LONG = "x" * 300
"""No file system takes a name so long."""
TAKES_A_FILE = {
    "load data": ("load", "stock", "--data", "{}"),
    "ingest data": ("ingest", "stock", "--data", "{}"),
    "init schema": ("init", "new", "--schema", "{}"),
    "plan schema": ("schema", "plan", "stock", "--schema", "{}"),
    "apply schema": ("schema", "apply", "stock", "--schema", "{}"),
    "diagram schema": ("schema", "diagram", "--schema", "{}"),
    "lint schema": ("lint", "--schema", "{}", "--query", "bins.gq"),
    "explain schema": ("explain", "--schema", "{}", "-e", BINS),
    "lint query": ("lint", "stock", "--query", "{}"),
    "read query": ("read", "stock", "--query", "{}"),
    "change query": ("change", "stock", "--query", "{}"),
    "explain query": ("explain", "stock", "--query", "{}"),
    "params": (*READ, "--params-file", "{}"),
    "config": (*READ, "--config", "{}"),
    "choices": ("branch", "merge", "review", "stock", "--resolve", "{}"),
    "policy": ("policy", "validate", "--policy", "{}"),
    "seed": ("embed", "--seed", "{}"),
    "spec": ("embed", "--input", "stock.jsonl", "--output", "out.jsonl", "--spec", "{}"),
    "embed input": ("embed", "--input", "{}", "--output", "out.jsonl", "--spec", "spec.json"),
}
MAKES_A_FILE = {
    "export": ("export", "stock", "--output", "{}"),
    "parquet": ("export", "stock", "--parquet", "{}"),
    "rejects": ("load", "stock", "--data", "stock.jsonl", "--no-embed", "--rejects", "{}"),
    "blob": ("blob", "get", "Part", "M10", "drawing", "stock", "--output", "{}"),
    "diagram": ("schema", "diagram", "stock", "--output", "{}"),
    "history": ("commit", "graph", "stock", "--svg", "--output", "{}"),
}


@pytest.fixture
def stock(folder: Path, full: Omnigraph) -> Omnigraph:
    (folder / "bins.gq").write_text(BINS)
    (folder / "latin").write_bytes("Bünde".encode("latin-1"))
    (folder / "some.d").mkdir()
    spec = {"dimension": 4, "types": {"Part": {"target": "vector", "fields": ["name"]}}}
    (folder / "spec.json").write_text(json.dumps(spec))
    full.branch_create("review")
    return full


def refused(call: Call, command: tuple[str, ...], name: str) -> str:
    code, output, errors = call(*(text.replace("{}", name) for text in command))
    assert (code, output) == (1, ""), errors
    assert errors.startswith("error: ")
    return errors


@pytest.mark.parametrize("what", TAKES_A_FILE)
def test_files_that_cannot_be_read(call: Call, stock: Omnigraph, what: str) -> None:
    command = TAKES_A_FILE[what]
    before = stock.snapshot()
    missing = refused(call, command, "none.x")
    assert "none.x" in missing
    assert any(words in missing for words in ("No such file", "no such file", "not found"))
    assert any(words in refused(call, command, "some.d") for words in ("directory", "a file"))
    suffix = ".jsonl" if "data" in what else ""
    assert "File name too long" in refused(call, command, f"{LONG}{suffix}")
    assert "utf-8" in refused(call, command, "latin").lower() or suffix
    assert stock.snapshot() == before


@pytest.mark.parametrize("command", [("load", "stock"), ("ingest", "stock")])
def test_records_that_are_not_text(folder: Path, call: Call, command: tuple[str, ...]) -> None:
    (folder / "latin.jsonl").write_bytes(b'{"type":"Bin","data":{"code":"\xfc"}}\n')
    errors = refused(call, (*command, "--data", "{}"), "latin.jsonl")
    assert "latin.jsonl:1: not UTF-8" in errors
    (folder / "empty.jsonl").write_bytes(b"")
    code, output, errors = call(*command, "--data", "empty.jsonl")
    assert (code, errors) == (0, "")
    assert "commit_id" not in output


@pytest.mark.parametrize("what", MAKES_A_FILE)
def test_places_that_cannot_be_written(
    folder: Path, call: Call, stock: Omnigraph, what: str
) -> None:
    command, before = MAKES_A_FILE[what], stock.snapshot()
    below_a_file = refused(call, command, "stock.pg/out")
    assert "stock.pg" in below_a_file
    assert "File name too long" in refused(call, command, LONG)
    if what != "parquet":
        for place in ("some.d", ".", "/"):
            assert "Is a directory" in refused(call, command, place)
    assert stock.snapshot() == before
    assert not [*folder.rglob("*.part")]


def test_what_is_written_replaces_a_file_when_it_is_whole(
    folder: Path, call: Call, stock: Omnigraph
) -> None:
    for what in ("export", "blob", "diagram", "history"):
        (folder / "out").write_text("old")
        code, output, errors = call(*(text.replace("{}", "out") for text in MAKES_A_FILE[what]))
        assert (code, output, errors) == (0, "", "")
        assert (folder / "out").read_bytes() not in (b"old", b"")
    assert not [*folder.rglob("*.part")]


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("load", "stock", "--data", "stock.jsonl", "--branch", ""), "--branch"),
        ((*READ, "--branch", ""), "--branch"),
        (("load", "stock", "--data", "stock.jsonl", "--as", ""), "--as"),
        (("cleanup", "--keep", "1", "--uri", ""), "--uri"),
        (("cleanup", "--keep", "1", "--target", ""), "--target"),
        (("branch", "merge", "review", "stock", "--into", ""), "--into"),
        (("branch", "create", "next", "stock", "--from", ""), "--from"),
        (("run", "begin", "stock", "--target-branch", "", "--as", ""), "--target-branch and --as"),
        (("read", "stock", "-e", ""), "--query-string"),
    ],
)
def test_an_option_without_a_text(
    folder: Path, call: Call, stock: Omnigraph, arguments: tuple[str, ...], option: str
) -> None:
    """Such as `--branch "$BRANCH"` in a script where it was not set."""
    (folder / "omnigraph.yaml").write_text(
        "graphs: { stock: { uri: stock } }\ncli: { graph: stock, branch: review, actor: ada }\n"
    )
    before = stock.snapshot("review")
    code, output, errors = call(*arguments)
    assert (code, output) == (2, "")
    assert f"{option} must not be empty" in errors
    assert stock.snapshot("review") == before
    assert stock.branch_list() == ("main", "review")


@pytest.mark.parametrize(
    "arguments",
    [("branch", "list", ""), ("read", "", "-e", BINS), ("embed", ""), ("embed", "status", "")],
)
def test_an_argument_without_a_text(folder: Path, call: Call, arguments: tuple[str, ...]) -> None:
    (folder / "omnigraph.yaml").write_text(
        "graphs: { stock: { uri: stock } }\ncli: { graph: stock }\n"
    )
    code, output, errors = call(*arguments)
    assert (code, output) == (2, "")
    assert "URI must be provided" in errors


BRANCHES = {
    "": "must not be empty",
    " ": "must not be empty",
    "main": "`main` is reserved",
    "__run__x": "reserved for internal use",
    "__schema_apply_lock__": "reserved for internal use",
    "a//b": "two slashes",
    "../up": "`.` or `..`",
    "a\nb": "control characters",
    "a\x1b[31m": "control characters",
    LONG: "too long",
    "\udcff": "not Unicode text",
}


@pytest.mark.parametrize("name", BRANCHES, ids=ascii)
def test_names_that_no_branch_may_have(call: Call, stock: Omnigraph, name: str) -> None:
    code, output, errors = call("branch", "create", name, "stock")
    assert (code, output) == (1, "")
    assert BRANCHES[name] in errors
    assert stock.branch_list() == ("main", "review")


@pytest.mark.parametrize("name", ["a b", "-x", "ü/ñ", "MAIN", "a.b", "tag:x", "💡"])
def test_names_that_are_only_unusual(call: Call, stock: Omnigraph, name: str) -> None:
    made = call("branch", "create", "--uri", "stock", "--", name)
    assert made == (0, f"created branch {name} from main\n", "")
    assert name in call("branch", "list", "stock")[1].splitlines()
    read = call("snapshot", "stock", f"--branch={name}")
    assert (read[0], read[1].splitlines()[0]) == (0, f"branch: {name}")
    gone = call("branch", "delete", "--uri", "stock", "--", name)
    assert gone == (0, f"deleted branch {name}\n", "")


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ("{code", "--params: expected a JSON object"),
        ("", "--params must not be empty"),
        ("[1]", "--params: expected a JSON object, found [1]"),
        ("7", "found 7"),
        ('{"code": 1}', "param 'code': expected String, found number 1"),
        ('{"code": "a", "code": "b"}', "`code` is given twice"),
        ('{"code": NaN}', "NaN is not a JSON value"),
        ('{"kode": "a"}', "param 'kode': not declared by the query; did you mean `code`?"),
        ('{"code": "\\ud800"}', "half of a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_parameters(call: Call, stock: Omnigraph, params: str, text: str) -> None:
    query = "query q($code: String) { match { $b: Bin { code: $code } } return { $b.code } }"
    code, output, errors = call("read", "stock", "-e", query, "--params", params)
    assert (code, output) == (1 if params else 2, "")
    assert text in errors


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["frob"], "No such command 'frob'"),
        (["branch", "frob"], "No such command 'frob'"),
        (["branch", "list", "stock", "--bogus"], "No such option: --bogus"),
        (["branch", "list", "stock", "--branch", "x"], "No such option: --branch"),
        (["branch", "list", "stock", "more"], "unexpected extra argument"),
        (["commit", "list", "stock", "--limit", "few"], "--limit"),
        (["commit", "list", "stock", "--limit", "9" * 30], "--limit"),
        (["commit", "graph", "stock", "--limit", "9" * 30], "--limit"),
        (["branch", "diff", "main..review", "stock", "--limit", "9" * 30], "--limit"),
        (["changes", "poll", "stock", "--limit", "9" * 30], "--limit"),
        (["changes", "poll", "stock", "--commits", "9" * 30], "--commits"),
        (["cleanup", "stock", "--keep", "9" * 30], "--keep"),
        (["blob", "get", "Part", "M10", "drawing", "stock", "--offset", "9" * 30], "--offset"),
        (["blob", "get", "Part", "M10", "drawing", "stock", "--length", "9" * 30], "--length"),
        ([*READ, "--version", "9" * 30], "--version"),
        ([*READ, "--max-width", "9" * 30], "--max-width"),
        ([*READ, "--json", "--format", "csv"], "--json and --format csv exclude each other"),
        (["cleanup", "stock", "--keep", "1", "--older-than", "9" * 30 + "w"], "too long"),
    ],
)
def test_wrong_usage(call: Call, stock: Omnigraph, arguments: list[str], text: str) -> None:
    code, output, errors = call(*arguments)
    assert (code, output) == (2, "")
    assert errors.startswith("Usage: omnigraph")
    assert text in errors


def test_what_is_repeated_of_the_input_does_not_reach_the_terminal(
    call: Call, stock: Omnigraph
) -> None:
    code, _, errors = call("commit", "list", "stock", "--branch", "a\x1b[31m\x07b")
    assert (code, errors) == (1, "error: no branch `a\\x1b[31m\\x07b`\n")
    code, output, _ = call("run", "begin", "stock", "--operation-hash", "a\x1b[31mb")
    assert "operation_hash: a\\x1b[31mb\n" in output


@pytest.mark.parametrize(
    "arguments",
    [
        ["init", b"g\xff", "--schema", "stock.pg"],
        ["load", "stock", "--data", b"\xff.jsonl"],
        ["branch", "create", b"\xff", "stock"],
        ["tag", "create", b"\xff", "stock"],
        ["load", "stock", "--data", "stock.jsonl", "--as", b"\xff"],
        ["read", "stock", "-e", b'query q() { match { $b: Bin } return { "\xff" as x } }'],
        ["read", "stock", "-e", BINS, "--params", b'{"a": "\xff"}'],
        ["read", "stock", "-e", BINS, "--name", b"\xff"],
        ["export", "stock", "--type", b"\xff"],
        ["schema", "show", "stock", "--tag", b"\xff"],
    ],
    ids=ascii,
)
def test_arguments_that_are_not_utf_8(
    folder: Path, stock: Omnigraph, arguments: list[str | bytes]
) -> None:
    done = omnigraph(*map(os.fsdecode, arguments), folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")


def test_an_example_in_a_folder_with_other_things(folder: Path, call: Call) -> None:
    (folder / "schema.pg").mkdir()
    (folder / "queries.gq").write_bytes(b"\xff")
    code, output, errors = call("init", "plant", "--example")
    assert (code, output) == (1, "")
    assert f"{folder}/schema.pg is in the way\n{folder}/queries.gq is in the way\n" in errors
    assert not (folder / "plant").exists()


def test_a_folder_that_is_gone(folder: Path, stock: Omnigraph) -> None:
    """The installed command can be loaded there; which graphs it finds, it finds when it runs."""
    command = f'mkdir gone && cd gone && rmdir ../gone && "{OMNIGRAPH}" branch list "$1"'
    done = subprocess.run(
        ["bash", "-c", command, "bash", folder / "stock"],
        cwd=folder,
        env=ENVIRONMENT | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "main\nreview\n")
    assert "Traceback" not in done.stderr
    target = "tests.integration.cli.outputs:in_a_folder_that_is_gone"
    for address, code, output in ((folder / "stock", 0, "main\nreview\n"), ("stock", 1, "")):
        with Command("branch", "list", address, folder=folder, target=target) as gone:
            done = gone.end()
        assert (done.returncode, done.stdout) == (code, output)
