"""`omnigraph serve` and `omnigraph job …`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.process import Command, omnigraph_process
from tests.support.server import Client

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call


def test_the_process_becomes_the_server(folder: Path, full: Omnigraph) -> None:
    reader, writer = os.pipe()
    arguments = ("serve", "stock", "--bind", "127.0.0.1:0")
    with os.fdopen(reader) as log, Command(*arguments, folder=folder, errors=writer) as process:
        os.close(writer)
        lines = iter(log.readline, "")
        url = next(found[1] for line in lines if (found := re.search(r"(http://\S+:\d+)", line)))
        with Client(url) as client:
            assert client.get("/branches").json()["branches"] == ["main"]
        process.send_signal(signal.SIGTERM)
        log.read()
        assert process.end(120).returncode == 0


def test_wrong_options_are_told_by_the_server(folder: Path) -> None:
    done = omnigraph_process("serve", "stock", "--nonsense", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--nonsense" in done.stderr


def test_the_command_line_does_not_need_the_server() -> None:
    code = "import sys, omnigraph_core.cli.app; print('omnigraph_core.server' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("arguments", [["list"], ["show", "01J"], ["cancel", "01J"]])
def test_a_graph_in_a_store_has_no_jobs(call: Call, arguments: list[str]) -> None:
    code, output, errors = call("job", *arguments, "--uri", "stock")
    assert (code, output) == (1, "")
    assert f"`job {arguments[0]}` is only supported against a server" in errors
