"""Work on Spark of which one task of each job waits until Spark has begun it a second time.

Functions of a runner, for whoever holds a session; arguments and results are JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.optimize import optimize
from omnigraph_core.spark.maintain.workers import Executors
from tests.support import spark_jobs
from tests.support.spark_embeds import fill
from tests.support.spark_merges import merge_there

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.spark.runner import Runner, SparkRunner


class Repeated:
    """A runner of which the second task of every job is slow until there is another attempt."""

    def __init__(self, runner: SparkRunner, directory: str) -> None:
        """
        Args:
            directory: gets a folder for each job, of a file for each attempt.
        """
        self._runner = runner
        self._directory = Path(directory)

    @property
    def parallelism(self) -> int:
        return self._runner.parallelism

    def map(self, work: Any, tasks: Any, *, name: str, on_done: Any = None) -> list[Any]:
        attempts = self._directory / name
        attempts.mkdir(parents=True, exist_ok=True)
        slow = spark_jobs.Slow(self._runner, spark_jobs.wait_for_another_attempt, str(attempts))
        return slow.map(work, tasks, name=name, on_done=on_done)

    def exchange(
        self, emit: Any, tasks: Any, meet: Any, partitions: int, *, name: str
    ) -> list[Any]:
        return self._runner.exchange(emit, tasks, meet, partitions, name=name)


def embed(
    runner: SparkRunner, graph: str, directory: str, part_rows: int, settings: Mapping[str, str]
) -> Any:
    """A backfill in parts of so many rows."""
    return fill(_repeated(runner, directory), graph, part_rows, settings)


def maintain(runner: SparkRunner, graph: str, directory: str, part_rows: int) -> Any:
    """Compaction and indexes of main, the latter in parts of so many rows."""
    workers = Executors(_repeated(runner, directory), part_rows)
    done = optimize(Omnigraph.open(graph)._context, "main", actor="ada", workers=workers)
    return [item.to_json() for item in done]


def merge(runner: SparkRunner, graph: str, directory: str, source: str, portion_rows: int) -> Any:
    """A merge into main, in portions of so many rows."""
    return merge_there(_repeated(runner, directory), graph, source, "main", portion_rows, {})


def _repeated(runner: SparkRunner, directory: str) -> Runner:
    return Repeated(runner, directory)
