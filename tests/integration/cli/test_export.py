"""`omnigraph export`, alone and before `omnigraph load`."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.cli.conftest import SCHEMA
from tests.integration.cli.process import ENVIRONMENT, OMNIGRAPH, Command, omnigraph

if TYPE_CHECKING:
    from pathlib import Path


def names(text: str) -> list[str]:
    """Type and id of every record."""
    found = [json.loads(line) for line in text.splitlines()]
    return [f"{item.get('type') or item['edge']} {item['data']['id']}" for item in found]


def test_everything_goes_to_standard_output(folder: Path, full: Omnigraph) -> None:
    done = omnigraph("export", "stock", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert names(done.stdout) == ["Holds h1", "Bin A1", "Part M10", "Part M8"]
    assert done.stdout.encode() == b"".join(full.export_jsonl())


def test_what_is_asked_for(folder: Path, full: Omnigraph) -> None:
    loaded = full.head_commit_id_for_branch()
    full.branch_create("review")
    full.load(b'{"type":"Bin","data":{"code":"B2"}}', branch="review")

    def exported(*arguments: str) -> list[str]:
        done = omnigraph("export", "--uri", "stock", *arguments, folder=folder)
        assert (done.returncode, done.stderr) == (0, "")
        return names(done.stdout)

    assert exported("--branch", "review", "--type", "Bin") == ["Bin A1", "Bin B2"]
    assert exported("--snapshot", loaded, "--type", "Bin") == ["Bin A1"]
    assert exported("--table", "node:Bin", "--type", "Holds") == ["Holds h1", "Bin A1"]


def test_a_copy_of_a_graph_through_a_pipe_is_the_same(folder: Path, full: Omnigraph) -> None:
    full.load(
        b'{"type":"Part","data":{"sku":"M\\u00fc \\"\\u2028","price":1e-7,"vector":[1,0.1,-0.0,3]}}'
    )
    copy = Omnigraph.init(str(folder / "copy"), SCHEMA)
    reader, writer = os.pipe()
    with (
        Command("export", "stock", folder=folder, output=writer) as export,
        Command(
            "load", "copy", "--data", "-", "--no-embed", "--quiet", folder=folder, stdin=reader
        ) as load,
    ):
        os.close(writer)
        os.close(reader)
        exported, loaded = export.end(), load.end()
    assert (exported.returncode, exported.stderr) == (0, "")
    assert (loaded.returncode, loaded.stderr) == (0, "")
    assert "4 nodes across 2 node types, 1 edges across 1 edge types" in loaded.stdout
    assert b"".join(copy.export_jsonl()) == b"".join(full.export_jsonl())


def test_a_file_appears_whole(folder: Path, full: Omnigraph) -> None:
    (folder / "out.jsonl").write_text("old")
    done = omnigraph("export", "stock", "--output", "out.jsonl", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "out.jsonl").read_bytes() == b"".join(full.export_jsonl())
    assert not [*folder.glob("out.jsonl.*")]


def test_parquet_files_load_again(folder: Path, full: Omnigraph) -> None:
    done = omnigraph("export", "stock", "--parquet", "out", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "edge:Holds rows=1 out/edges/Holds.parquet",
        "node:Bin rows=1 out/nodes/Bin.parquet",
        "node:Part rows=2 out/nodes/Part.parquet",
    ]
    copy = Omnigraph.init(str(folder / "copy"), SCHEMA)
    files = [f"--data={line.split()[-1]}" for line in done.stdout.splitlines()]
    done = omnigraph("load", "copy", "--no-embed", *files, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert b"".join(copy.export_jsonl()) == b"".join(full.export_jsonl())


def test_documents_for_machines(folder: Path, full: Omnigraph) -> None:
    done = omnigraph("export", "stock", "--output", "out.jsonl", "--json", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    size = (folder / "out.jsonl").stat().st_size
    expected = {"uri": "stock", "format": "jsonl", "rows": 4, "bytes": size, "path": "out.jsonl"}
    assert list(json.loads(done.stdout).items()) == list(expected.items())
    given = ("--parquet", "out", "--type", "Bin", "--json")
    done = omnigraph("export", "stock", *given, folder=folder)
    assert json.loads(done.stdout) == {
        "uri": "stock",
        "format": "parquet",
        "files": [{"table_key": "node:Bin", "rows": 1, "path": "out/nodes/Bin.parquet"}],
    }


def test_the_old_flag_is_taken_with_a_note(folder: Path, full: Omnigraph) -> None:
    done = omnigraph("export", "stock", "--jsonl", folder=folder)
    assert (done.returncode, done.stdout.encode()) == (0, b"".join(full.export_jsonl()))
    assert done.stderr.startswith("note: --jsonl")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ('ulimit -f 64; "$@" > full', "error: cannot write the output: File too large\n"),
        ('"$@" | true', ""),
        ('"$@" >&-', "error: cannot write the output: it is closed\n"),
    ],
)
def test_output_that_cannot_be_written(
    folder: Path, full: Omnigraph, command: str, message: str
) -> None:
    """With the installed command and a shell: that it is heard depends on how Python starts, finds
    its streams and ends. Other commands write to the same outputs in `outputs.py`.
    """
    # More than a pipe or such a file can hold.
    full.load(
        "".join(f'{{"type":"Bin","data":{{"code":"{n:0200}"}}}}\n' for n in range(2000)).encode()
    )
    done = subprocess.run(
        ["bash", "-c", command, "bash", OMNIGRAPH, "export", "stock"],
        cwd=folder,
        env=ENVIRONMENT | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("", message)
    assert done.returncode == (1 if message else 0)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ([], 2, "URI must be provided"),
        (["stock", "--branch", "main", "--snapshot", "x"], 2, "exclude each other"),
        (["stock", "--parquet", "out", "--output", "o"], 2, "--parquet excludes"),
        (["stock", "--parquet", "out", "--jsonl"], 2, "--parquet excludes"),
        (["stock", "--json"], 2, "--json goes with --output or --parquet"),
        (["stock", "--type", "Prt"], 1, "Part"),
        (["stock", "--table", "node:Holds"], 1, "node:Holds"),
        (["stock", "--branch", "none"], 1, "none"),
        (["stock", "--snapshot", "none"], 1, "none"),
        (["stock", "--output", "none/out.jsonl"], 1, "cannot write none/out.jsonl"),
    ],
)
def test_mistakes(folder: Path, arguments: list[str], code: int, text: str) -> None:
    done = omnigraph("export", *arguments, folder=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
