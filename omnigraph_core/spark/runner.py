"""Work on many tasks at once: each is one Spark task, and each has exactly one result.

A task is a small description of work, as are results; rows never pass through here. Keys do, in an
exchange: tasks emit blocks of bytes, which Spark's shuffle brings together by partition. The same
functions run one after the other in this process, on this machine, on a cluster and behind Spark
Connect. Spark repeats a task that raises or whose worker dies; an attempt that lost against another
leaves no result behind, but may leave files: they belong to no version and are cleaned up like any
others.
"""

from __future__ import annotations

import itertools
import traceback
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from omnigraph_core import interruption
from omnigraph_core.errors import InvariantBroken, JobFailed, OmnigraphError
from omnigraph_core.job_report import NOTHING
from omnigraph_core.spark.blocks import Gathered
from omnigraph_core.spark.outcomes import Returned, attempt, error_of, settled, values
from omnigraph_core.spark.settings import for_executors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from omnigraph_core.spark.blocks import Blocks, Received
    from omnigraph_core.spark.jobs import Collected
    from omnigraph_core.spark.outcomes import Failed

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

        An error of ours that no retry can change does not stop the other tasks; the first is raised
        when all are done. Whatever else a task raises, Spark tries it again.

        Args:
            name: of the job, for those who watch it and in errors.
            on_done: told how many tasks are done, as it goes on.

        Raises:
            OmnigraphError: an error of ours that a task raised, as it was.
            JobFailed: a task raised anything else again and again, or the job could not be run to
                its end.
        """
        ...

    def exchange(
        self,
        emit: Callable[[T], Iterable[Blocks]],
        tasks: Sequence[T],
        meet: Callable[[int, Received], R],
        partitions: int,
        *,
        name: str,
    ) -> list[R]:
        """What `meet` returns for each partition that blocks were emitted for, in their order.

        Args:
            emit: the blocks of a task, the same in every attempt, each section at most once.
            meet: is given the number of a partition and all blocks for it.

        Raises:
            OmnigraphError, JobFailed: as for `map`.
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
        outcomes: list[Returned[R] | Failed] = []
        for task in tasks:
            interruption.pause()
            outcomes.append(_attempt(work, task, name=name, number=len(outcomes), count=len(tasks)))
            if on_done is not None:
                on_done(len(outcomes))
        return values(outcomes, name=name)

    def exchange(
        self,
        emit: Callable[[T], Iterable[Blocks]],
        tasks: Sequence[T],
        meet: Callable[[int, Received], R],
        partitions: int,
        *,
        name: str,
    ) -> list[R]:
        import pyarrow as pa

        gathered = Gathered()
        for writer, emitted in enumerate(self.map(lambda task: list(emit(task)), tasks, name=name)):
            for blocks in emitted:
                content = memoryview(pa.py_buffer(blocks.content))
                for partition, (start, end) in enumerate(itertools.pairwise(blocks.ends.tolist())):
                    if end > start:
                        block = bytes(content[start:end])
                        gathered.add(partition, writer, blocks.section, block)
        return self.map(lambda received: meet(*received), list(gathered.partitions()), name=name)


def _attempt(
    work: Callable[[T], R], task: T, *, name: str, number: int, count: int
) -> Returned[R] | Failed:
    """The same as on Spark, where nothing would be tried again."""
    done = settled(lambda: attempt(work, task, number))
    problem = done.exception()
    if problem is None:
        return done.result()
    if isinstance(problem, OmnigraphError):
        raise problem
    trace = "".join(traceback.format_exception(problem))
    told = traceback.format_exception_only(problem)[0].strip()
    raise error_of(trace, summary=told, name=name, count=count) or problem


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

        if not is_connect(self.session):
            return int(self.session.sparkContext.defaultParallelism)
        from omnigraph_core.spark.jobs import call

        def asked(session: SparkSession) -> int:
            name = "spark.default.parallelism"
            told = call(session, lambda: session.conf.get(name, _UNKNOWN), name=name)
            return int(told or _UNKNOWN)

        return self._on_a_session(asked)

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
        from omnigraph_core.spark.worker import OUTCOMES, batch_worker

        def planned(session: SparkSession) -> DataFrame:
            worker = batch_worker(work, variables)
            return _task_frame(session, tasks).mapInArrow(worker, OUTCOMES)

        variables = self.variables()
        outcomes = self._outcomes(planned, name=name, count=len(tasks), on_done=on_done)
        if outcomes.keys() != set(range(len(tasks))):
            raise InvariantBroken(f"`{name}` has one result for each task")
        return values(list(outcomes.values()), name=name)

    def exchange(
        self,
        emit: Callable[[T], Iterable[Blocks]],
        tasks: Sequence[T],
        meet: Callable[[int, Received], R],
        partitions: int,
        *,
        name: str,
    ) -> list[R]:
        if not tasks:
            return []
        from omnigraph_core.spark.worker import BLOCKS, OUTCOMES, emitter, meeter

        def planned(session: SparkSession) -> DataFrame:
            blocks = _task_frame(session, tasks).mapInArrow(
                emitter(emit, partitions, variables), BLOCKS
            )
            met = blocks.repartitionById(partitions, "partition")
            return met.mapInArrow(meeter(meet, variables), OUTCOMES)

        variables = self.variables()
        return values(
            list(self._outcomes(planned, name=name, count=partitions).values()), name=name
        )

    def _outcomes(
        self,
        planned: Callable[[SparkSession], DataFrame],
        *,
        name: str,
        count: int,
        on_done: Callable[[int], None] | None = None,
    ) -> dict[int, Returned[Any] | Failed]:
        """What became of the tasks of a job, by number; the job is reported."""
        from omnigraph_core.spark.jobs import collect
        from omnigraph_core.spark.worker import unpack

        def done(session: SparkSession) -> Collected:
            return collect(
                session, lambda: planned(session), name=name, count=count, on_done=on_done
            )

        collected = self._on_a_session(done)
        found = {row["task"]: unpack(bytes(row["outcome"])) for row in collected.rows}
        if len(found) != len(collected.rows):
            raise InvariantBroken(f"`{name}` has one result for each task")
        outcomes = dict(sorted(found.items()))
        written = (one.written for one in outcomes.values() if isinstance(one, Returned))
        collected.report(sum(written, NOTHING))
        return outcomes

    def _on_a_session(self, work: Callable[[SparkSession], T]) -> T:
        """What work on the session returns, tried once more if the session is gone meanwhile.

        A job that was cut off may have written files. No version refers to them.
        """
        from omnigraph_core.spark.session import replacement

        try:
            return work(self.session)
        except JobFailed as failure:
            another = replacement(self.session, failure)
            if another is None:
                raise
            self.session = another
        return work(self.session)

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
