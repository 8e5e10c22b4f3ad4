"""Tests that never end, for the test that interrupts a run: not collected by other runs.

Each starts what tests of its kind start, says so with a file, and waits.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.graphs import new_graph
from tests.support.processes import say, spawn
from tests.support.server import server_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.s3 import S3Server

READY = "ENDLESS_TESTS_READY"
"""The variable that names the directory of the files."""


def test_with_services(s3_server: S3Server, spark: SparkSession, tmp_path: Path) -> None:
    assert spark.range(1).count() == 1
    (tmp_path / "file").write_bytes(b"left by a test that was interrupted")
    wait_for_the_end("services")


def test_with_processes(tmp_path: Path) -> None:
    graph = new_graph(str(tmp_path / "graph"))
    with server_process(graph.uri), spawn("tests.support.endless_tests:stay") as worker:
        assert worker.next_line() == "here"
        wait_for_the_end("processes")


def stay() -> None:
    say("here")
    signal.pause()


def wait_for_the_end(name: str) -> None:
    Path(os.environ[READY], name).touch()
    while True:
        signal.pause()
