"""Ctrl-C, and readers that go away, at any moment: no traceback, and an exit code that tells."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

import pytest

from tests.integration.cli.process import ENVIRONMENT, Command

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

INTERRUPTED_WHILE_IMPORTING: Final = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

from omnigraph_core.cli.main import main
sys.meta_path.insert(0, Interrupting())
sys.argv = ["omnigraph", "branch", "list", "stock"]
main()
"""


@pytest.mark.parametrize("module", ["typer", "lance"])
def test_while_the_command_is_still_being_read(folder: Path, module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_IMPORTING.format(module=module)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    "command",
    [
        ("branch", "list"),
        ("branch", "create", "next"),
        ("commit", "list"),
        ("snapshot",),
        ("schema", "show"),
        ("export",),
        ("load", "--data", "stock.jsonl"),
    ],
    ids=" ".join,
)
def test_while_a_server_does_not_answer(folder: Path, command: tuple[str, ...]) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        with Command(*command, "--uri", url, folder=folder) as process:
            silent.settimeout(120)
            connection, _ = silent.accept()
            with closing(connection):
                connection.recv(1)  # it waits for the answer now
                process.interrupt()
                done = process.end(120)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.startswith("interrupted")
    assert done.stderr.count("\n") == 1


def test_a_terminal_is_told_what_it_waits_for(folder: Path) -> None:
    """Whatever takes longer than a second; a log gets nothing of it, as the test before shows."""
    terminal, other_end = pty.openpty()
    shown = b""
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Command("branch", "list", url, folder=folder, errors=other_end) as command:
            os.close(other_end)
            while "reading branches … 2 s".encode() not in shown:
                shown += os.read(terminal, 4096)
            command.interrupt()
            assert command.end(120).returncode == 130
    with suppress(OSError):  # how a terminal says that nobody writes to it any more
        while found := os.read(terminal, 4096):
            shown += found
    os.close(terminal)
    assert shown.endswith(b"\r\x1b[Kinterrupted\r\n")


def test_while_a_file_is_written(folder: Path, full: Omnigraph) -> None:
    """A pipe that nobody reads on from is a file that takes its time."""
    fill(full)
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    with (
        Command("export", "stock", "--output", pipe, folder=folder) as command,
        pipe.open("rb") as reader,
    ):
        assert reader.read(1) == b"{"
        command.interrupt()
        done = command.end(120)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "interrupted: the export is not complete\n"
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    "command",
    [
        ("export", "stock"),
        ("read", "stock", "--format", "csv", "-e", "query q() { match { $b: Bin } return { $b } }"),
        ("read", "stock", "--format", "kv", "-e", "query q() { match { $b: Bin } return { $b } }"),
        ("branch", "diff", "tag:empty..main", "stock"),
        ("branch", "diff", "tag:empty..main", "stock", "--json"),
        ("schema", "show", "stock"),
        ("commit", "graph", "stock"),
    ],
    ids=" ".join,
)
def test_a_reader_that_has_seen_enough(
    folder: Path, graph: Omnigraph, command: tuple[str, ...]
) -> None:
    graph.tag_create("empty")
    fill(graph)
    reader, writer = os.pipe()
    with Command(*command, folder=folder, output=writer) as process:
        os.close(writer)
        with os.fdopen(reader) as output:
            assert output.readline().endswith("\n")
        done = process.end()
    assert done.stderr == ""


def fill(graph: Omnigraph) -> None:
    """More than a pipe can hold."""
    lines = (f'{{"type":"Bin","data":{{"code":"{n:0200}"}}}}\n' for n in range(2_000))
    graph.load("".join(lines).encode(), mode="merge")
