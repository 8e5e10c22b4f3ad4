"""Work on many tasks at once: each is one Spark task, and each has exactly one result.

A task is a small description of work, as are results; rows never pass through here. The same
functions run one after the other in this process, on this machine, on a cluster and behind Spark
Connect. A worker that dies is replaced by Spark; an attempt that lost against another leaves no
result behind, but may leave files: they belong to no version and are cleaned up like any others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from omnigraph_core import interruption
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.spark.outcomes import attempt, values
from omnigraph_core.spark.settings import for_executors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
R = TypeVar("R")

_UNKNOWN: Final = "16"
"""Tasks done at once behind a server that does not say how many."""


class Runner(Protocol):
    """Does the tasks of a job, wherever it may be."""

    @property
    def parallelism(self) -> int:
        """How many tasks are done at once, as far as is known."""
        ...

    def map(
        self,
        work: Callable[[T], R],
        tasks: Sequence[T],
        *,
        name: str,
        on_done: Callable[[int], None] | None = None,
    ) -> list[R]:
        """What `work` returns for each task, in their order.

        All tasks are done, also if some fail; then the first failure is raised.

        Args:
            name: of the job, for those who watch it and in errors.
            on_done: told how many tasks are done, as it goes on.

        Raises:
            OmnigraphError: an error of ours that a task raised, as it was.
            JobFailed: a task raised anything else, or the job could not be run to its end.
        """
        ...


class InProcessRunner:
    """One task after the other, in this process."""

    parallelism = 1

    def map(
        self,
        work: Callable[[T], R],
        tasks: Sequence[T],
        *,
        name: str,
        on_done: Callable[[int], None] | None = None,
    ) -> list[R]:
        outcomes = []
        for task in tasks:
            interruption.pause()
            outcomes.append(attempt(work, task))
            if on_done is not None:
                on_done(len(outcomes))
        return values(outcomes, name=name)


class SparkRunner:
    """Every task is one Spark task of a session, classic or Connect."""

    def __init__(
        self, session: SparkSession, *, environment: Mapping[str, str] | None = None
    ) -> None:
        """A runner on a session.

        Args:
            environment: variables that tasks see. Unset: the settings of this process, if Spark
                was started by it; the executors of a Connect server have their own.
        """
        self.session = session
        self._environment = environment

    @property
    def parallelism(self) -> int:
        from omnigraph_core.spark.session import is_connect

        if is_connect(self.session):
            return int(self.session.conf.get("spark.default.parallelism", _UNKNOWN) or _UNKNOWN)
        return int(self.session.sparkContext.defaultParallelism)

    def map(
        self,
        work: Callable[[T], R],
        tasks: Sequence[T],
        *,
        name: str,
        on_done: Callable[[int], None] | None = None,
    ) -> list[R]:
        if not tasks:
            return []
        # Imported here: in-process work needs none of it.
        from omnigraph_core.spark.jobs import collect
        from omnigraph_core.spark.worker import OUTCOMES, batch_worker, unpack

        def planned() -> DataFrame:
            worker = batch_worker(work, variables)
            return _task_frame(self.session, tasks).mapInArrow(worker, OUTCOMES)

        variables = self.variables()
        rows = collect(self.session, planned, name=name, count=len(tasks), on_done=on_done)
        outcomes = {row["task"]: row["outcome"] for row in rows}
        if len(rows) != len(tasks) or outcomes.keys() != set(range(len(tasks))):
            raise InvariantBroken(f"`{name}` has one result for each task")
        return values([unpack(bytes(outcomes[at])) for at in range(len(tasks))], name=name)

    def variables(self) -> Mapping[str, str]:
        """What tasks see of the environment of whoever asks for them."""
        from omnigraph_core.spark.session import is_connect

        if self._environment is not None:
            return self._environment
        return {} if is_connect(self.session) else for_executors()


def _task_frame(session: SparkSession, tasks: Sequence[object]) -> DataFrame:
    """A row for each task, each in a partition of its own."""
    import pyarrow as pa

    from omnigraph_core.spark.worker import TASKS, pack

    numbers = pa.array(range(len(tasks)), pa.int32())
    payloads = pa.array([pack(task) for task in tasks], pa.binary())
    table = pa.table([numbers, payloads], schema=TASKS)
    return session.createDataFrame(table).repartitionById(len(tasks), "task")
