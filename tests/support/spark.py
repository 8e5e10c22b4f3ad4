"""Spark sessions for tests: one in this process, others in processes of their own.

A process has one session, so whatever is to hold on this machine, on a cluster and behind Connect
is written as a function of a runner, and called through a `Driver`: in this process, or in one that
holds the session of a cluster or of a server. Arguments and results are JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from omnigraph_core.spark.runner import InProcessRunner, SparkRunner
from omnigraph_core.spark.session import open_session
from tests.support.examples import LONG
from tests.support.processes import hear, say, spawn
from tests.support.spark_cluster import QUICK_TO_ACT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from tests.support.processes import Worker

ROOT: Final = Path(__file__).parent.parent.parent
LOCAL: Final = "local[2,3]"
SECONDS: Final = 600
"""Busy machines start Spark slowly; what hangs is ended all the same."""

_SETTINGS: Final = (
    QUICK_TO_ACT
    | {"spark.ui.enabled": "false"}
    | (
        {}
        if LONG
        else {
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.shuffle.partitions": "2",
        }
    )
)
"""To compile a query takes longer than to run it over the few rows of a test. Other places, and
all of them in the long run, compile as they do at work."""

_MARK: Final = "\x1eanswer "
"""Before lines of ours: Spark's process writes to the same output."""


@contextlib.contextmanager
def local_session() -> Iterator[SparkSession]:
    """A session of this process, and no trace of it afterwards."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)  # tasks of tests are found by name
    try:
        session = open_session(master=LOCAL, conf=_SETTINGS)
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    try:
        yield session
    finally:
        end(session)


def end(session: SparkSession) -> None:
    """Stop a session of this process together with Spark's process."""
    from pyspark import SparkContext

    session.stop()
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(SECONDS)
    SparkContext._gateway = SparkContext._jvm = None


class Driver(Protocol):
    """Whoever holds a session."""

    name: str

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns for a runner and the arguments."""
        ...


class DriverHere:
    """A session of this process."""

    def __init__(self, name: str, session: SparkSession) -> None:
        self.name = name
        self._runner = SparkRunner(session)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return json.loads(json.dumps(function(self._runner, *arguments)))


class DoingTwice(InProcessRunner):
    """Every task is done two times, as where Spark takes one for slow; the second answer counts."""

    def map(self, work: Any, tasks: Any, *, name: str, on_done: Any = None) -> list[Any]:
        def twice(task: Any) -> Any:
            work(task)
            return work(task)

        return super().map(twice, tasks, name=name, on_done=on_done)


class DriverThere:
    """A session of a process that does what it is told."""

    def __init__(self, name: str, worker: Worker) -> None:
        self.name = name
        self.worker = worker

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.start(function, *arguments)
        return self.result()

    def start(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have a function called, and go on meanwhile."""
        target = f"{function.__module__}:{function.__name__}"
        self.worker.send(json.dumps({"target": target, "arguments": arguments}))

    def result(self) -> Any:
        """What the function returned that was started last."""
        for line in self.worker.lines(SECONDS):
            if line.startswith(_MARK):
                answer = json.loads(line.removeprefix(_MARK))
                assert "error" not in answer, answer["error"]
                return answer["value"]
        raise AssertionError(f"the driver ended\n{self.worker.wait().stderr}")


@contextlib.contextmanager
def driver_there(name: str, **where: Any) -> Iterator[DriverThere]:
    """A process with a session of its own; `where` are arguments of `open_session`."""
    with spawn("tests.support.spark:drive", where, env={"PYTHONPATH": str(ROOT)}) as worker:
        yield DriverThere(name, worker)


def drive(where: dict[str, Any]) -> None:
    """The body of such a process."""
    runner = SparkRunner(open_session(**where))
    while (line := hear()) is not None:
        told = json.loads(line)
        module, _, name = told["target"].partition(":")
        try:
            function = getattr(importlib.import_module(module), name)
            answer = {"value": function(runner, *told["arguments"])}
        except BaseException:  # noqa: BLE001 - whoever asked is to see it, whatever it is
            answer = {"error": traceback.format_exc()}
        say(_MARK + json.dumps(answer))
    sys.exit(0)
