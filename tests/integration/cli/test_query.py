"""`omnigraph query …`: output, streams, exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core import __version__
from tests.integration.cli.outputs import Output, run_with_output
from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "node Part { sku: String @key  name: String? }\n"
GOOD = 'query parts() { match { $p: Part { sku: "ä" } } return { $p.sku } }\n'
BAD = "query parts() { match { $p: Part } return { $p.skus } }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "good.gq").write_text(GOOD)
    (tmp_path / "bad.gq").write_text(BAD)
    return tmp_path


def test_json_report(folder: Path) -> None:
    done = omnigraph(
        "query", "lint", "--schema", "s.pg", "--query", "good.gq", "--json", folder=folder
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('{\n  "status": "ok",\n')
    assert json.loads(done.stdout) == {
        "status": "ok",
        "schema_source": {"kind": "file", "path": "s.pg"},
        "query_path": "good.gq",
        "queries_processed": 1,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [
            {
                "name": "parts",
                "kind": "read",
                "status": "ok",
                "operation": {
                    "result": [{"name": "p.sku", "kind": "string", "nullable": False}],
                    "reads": [{"kind": "node", "type_name": "Part"}],
                    "writes": [],
                },
            }
        ],
        "findings": [],
    }


def test_a_refused_query_exits_1_and_keeps_stdout_for_the_report(folder: Path) -> None:
    done = omnigraph(
        "query", "lint", "--schema", "s.pg", "--query", "bad.gq", "--json", folder=folder
    )
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr, report["status"]) == (1, "", "error")
    (result,) = report["results"]
    assert result["error"] == "type error: T6: unknown property `skus` on `Part`"
    (diagnostic,) = result["diagnostics"]
    start = BAD.index("skus")
    assert diagnostic["column"] == start + 1
    assert diagnostic["span"] == {"start": start, "end": start + 4}
    assert diagnostic["hint"] == "did you mean `sku`?"


def test_check_is_lint(folder: Path) -> None:
    arguments = ("--schema", "s.pg", "--query", "bad.gq")
    lint = omnigraph("query", "lint", *arguments, folder=folder)
    check = omnigraph("query", "check", *arguments, folder=folder)
    assert (check.returncode, check.stdout) == (lint.returncode, lint.stdout)
    assert "ERROR query `parts`: type error: T6" in lint.stdout


def test_a_broken_schema_is_a_failure_with_every_problem(folder: Path) -> None:
    (folder / "s.pg").write_text("node A { x: Strin }\nnode B { y: Integer }\n")
    done = omnigraph("query", "lint", "--schema", "s.pg", "--query", "good.gq", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert "s.pg:1:13" in done.stderr
    assert "s.pg:2:13" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["query", "lint", "--schema", "s.pg"], 2, "--query"),
        (["query", "lint", "--schema", "s.pg", "--query", "good.gq", "--jsn"], 2, "No such option"),
        (["query", "mend"], 1, "give exactly one query"),
        (["query", "lint", "--schema", "s.pg", "--query", "none.gq"], 1, "'none.gq' not found"),
        (["query", "lint", "--schema", "none.pg", "--query", "good.gq"], 1, "cannot read schema"),
        (["query", "lint", "--schema", "s.pg", "--query", "latin.gq"], 1, "not UTF-8"),
        (["query", "explain", "--schema", "s.pg", "--query", "good.gq", "--name", "part"], 1,
         "did you mean `parts`?"),
        (["query", "explain", "--schema", "s.pg", "--query", "bad.gq"], 1, "T6"),
    ],
)  # fmt: skip
def test_mistakes(folder: Path, arguments: list[str], code: int, text: str) -> None:
    (folder / "latin.gq").write_bytes(b'query q() { match { $p: Part { sku: "\xe4" } } }')
    done = omnigraph(*arguments, folder=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_byte_order_mark_is_not_part_of_the_text(folder: Path) -> None:
    for name in ("s.pg", "bad.gq"):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())
    done = omnigraph("query", "lint", "--schema", "s.pg", "--query", "bad.gq", folder=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"bad.gq:1:{BAD.index('skus') + 1}: error T6" in done.stdout


def test_spans_count_the_line_ends_of_the_file(folder: Path) -> None:
    text = BAD.replace(" return", "\r\nreturn")
    (folder / "bad.gq").write_bytes(text.encode())
    done = omnigraph(
        "query", "lint", "--schema", "s.pg", "--query", "bad.gq", "--json", folder=folder
    )
    (diagnostic,) = json.loads(done.stdout)["results"][0]["diagnostics"]
    assert diagnostic["span"]["start"] == text.index("skus")
    assert (diagnostic["line"], diagnostic["column"]) == (2, len("return { $p.") + 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "lint", "--schema", "s.pg", "--query", "good.gq"],
        ["query", "lint", "--schema", "s.pg", "--query", "good.gq", "--json"],
        ["query", "explain", "--schema", "s.pg", "--query", "good.gq"],
        ["--help"],
    ],
)
@pytest.mark.parametrize("output", Output)
def test_output_that_cannot_be_written(folder: Path, arguments: list[str], output: Output) -> None:
    done = run_with_output(output, *arguments, folder=folder)
    message = "error: cannot write the output: File too large\n" if output is Output.FULL else ""
    assert (done.stdout, done.stderr) == ("", message)
    assert done.returncode == (0 if output is Output.CLOSED else 1)


def test_explain(folder: Path) -> None:
    done = omnigraph("query", "explain", "--schema", "s.pg", "--query", "good.gq", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert 'scan $p: Part where $p.sku = "ä"' in done.stdout


@pytest.mark.parametrize("arguments", [["version"], ["--version"], ["-v"]])
def test_version(folder: Path, arguments: list[str]) -> None:
    done = omnigraph(*arguments, folder=folder)
    assert (done.returncode, done.stdout) == (0, f"omnigraph {__version__}\n")
