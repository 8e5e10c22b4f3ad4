"""A command in the process of a test is what it is in one of its own, and leaves no trace."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.cli.process import omnigraph, omnigraph_process

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph

POLICY = """\
version: 1
owner: ada
groups: { team: [ada] }
rules:
  - { id: a, allow: { actors: { group: team }, actions: [read], branch_scope: any } }
"""


@pytest.mark.parametrize(
    "command",
    ["--help", "branch list stock", "branch delete main stock", "read", "read stock --bogus",
     "load stock --data - --dry-run", "export stock", "branch list --as ada", "branch list"],
)  # fmt: skip
def test_both_say_the_same(folder: Path, full: Omnigraph, command: str) -> None:
    """Also what is logged, here of a policy with a key that nobody knows."""
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "omnigraph.yaml").write_text(
        "graphs: { stock: { uri: stock } }\npolicy: { file: policy.yaml }\ncli: { graph: stock }\n"
    )
    here, elsewhere = (
        run(*command.split(), folder=folder, stdin=b'{"type":"Bin","data":{"code":"\xc3\xbc"}}')
        for run in (omnigraph, omnigraph_process)
    )
    assert (here.returncode, here.stdout) == (elsewhere.returncode, elsewhere.stdout)
    assert here.stderr == elsewhere.stderr
    assert here.stdout or here.stderr


def test_a_warning_is_heard(folder: Path, full: Omnigraph) -> None:
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "omnigraph.yaml").write_text("policy: { file: policy.yaml }\n")
    done = omnigraph("branch", "list", "stock", "--as", "ada", folder=folder)
    assert (done.returncode, done.stdout) == (0, "main\n")
    assert "unknown key `owner`" in done.stderr


def test_this_process_stays_as_it_is(
    folder: Path, full: Omnigraph, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / ".env").write_text("FOUND_IN_A_FILE=1\n")
    (folder / "omnigraph.yaml").write_text("auth: { env_file: .env }\n")
    before = state()
    for command in ("branch list stock", "branch delete main stock", "read", "load x --data -"):
        omnigraph(*command.split(), folder=folder, FOUND_NOWHERE="1")
        assert state() == before
    print("still heard")  # noqa: T201
    os.write(2, b"also below Python\n")
    assert capfd.readouterr() == ("still heard\n", "also below Python\n")


def state() -> list[object]:
    """What commands change in a process."""
    return [
        dict(os.environ), Path.cwd(), sys.argv, sys.stdin, sys.stdout, sys.stderr,
        [*logging.root.handlers], logging.root.level, [*sys.meta_path],
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGURG)],
        [os.fstat(number).st_ino for number in range(3)],
    ]  # fmt: skip
