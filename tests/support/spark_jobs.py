"""Jobs for a runner, and the tasks they are made of: what is to hold wherever Spark runs.

Each job takes a runner first and returns JSON, so that it can be called through a `Driver`. Tasks
leave files behind as evidence, for they run in processes of their own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import traceback
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnigraph_core.errors import MergeConflicts, OmnigraphError, QueryCancelled, StorageError
from omnigraph_core.interruption import interrupted_by
from omnigraph_core.spark.blocks import Blocks
from omnigraph_core.spark.runner import SparkRunner
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.spark.blocks import Received
    from omnigraph_core.spark.runner import Runner

CONFLICTS: Final = [{"table_key": "node:Part", "row_id": "p1", "kind": "both_changed"}]
BEATING_SECONDS: Final = 240
PARTITIONS: Final = 4
SLOTS: Final = 2
"""Tasks that each place of the tests does at a time."""


def slow_square(number: int) -> int:
    """The first take longest: results do not come in the order of the tasks."""
    time.sleep(max(0.0, 0.3 - number * 0.1))
    return number * number


def squares(runner: Runner, count: int) -> list[int]:
    return runner.map(slow_square, range(count), name="squares")


def rich_values(runner: Runner) -> bool:
    """Tasks and results are whatever can be pickled, a function of the caller included."""
    shift = 3

    def shifted(pair: tuple[int, Path]) -> dict[str, Any]:
        return {"sum": pair[0] + shift, "path": pair[1] / "x", "none": None, "ids": {pair[0]}}

    found = runner.map(shifted, [(1, Path("a")), (2, Path("b"))], name="shifted")
    return found == [
        {"sum": 4, "path": Path("a/x"), "none": None, "ids": {1}},
        {"sum": 5, "path": Path("b/x"), "none": None, "ids": {2}},
    ]


def spark_task(_: int) -> tuple[int, str | None, str | None]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    tags = context.getLocalProperty("spark.job.tags")
    return context.partitionId(), context.getLocalProperty("spark.job.description"), tags


def spark_tasks(runner: Runner, count: int, name: str) -> list[Any]:
    """Which Spark task did each task, and how its job is called."""
    return runner.map(spark_task, range(count), name=name)


def wait_for_news(task: tuple[str, int]) -> None:
    """All tasks but the first end when somebody has heard of the first."""
    directory, number = task
    if number:
        heard = Path(directory)
        wait_until(lambda: list(heard.glob("heard-*")), "news", seconds=BEATING_SECONDS)


def told(runner: Runner, directory: str, count: int) -> list[int]:
    """How many tasks were said to be done, as it went on."""
    heard: list[int] = []

    def hear(done: int) -> None:
        heard.append(done)
        (Path(directory) / f"heard-{done}").touch()

    tasks = [(directory, number) for number in range(count)]
    runner.map(wait_for_news, tasks, name="news", on_done=hear)
    return heard


def fail_from_two(number: int) -> int:
    if number >= 2:
        raise MergeConflicts(f"conflict in task {number}", CONFLICTS)
    return number


def divide(number: int) -> float:
    return 6 / (number % 2)


def return_a_lock(_: int) -> object:
    return threading.Lock()


def hold_a_lock(_: int) -> object:
    error = MergeConflicts("it cannot travel", CONFLICTS)
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    raise error


def failure(runner: Runner, task: str) -> dict[str, Any]:
    """What a job of four tasks raises, and how many tasks were done."""
    done: list[int] = []
    try:
        runner.map(globals()[task], range(4), name="four tasks", on_done=done.append)
    except OmnigraphError as error:
        return {
            "type": type(error).__name__,
            "message": error.message,
            "details": error.details(),
            "notes": getattr(error, "__notes__", []),
            "cause": "".join(traceback.format_exception(error.__cause__)),
            "done": done[-1] if done else 0,
        }
    raise AssertionError("nothing was raised")


def send_a_lock(runner: Runner) -> str:
    """Work that cannot be sent anywhere."""
    lock = threading.Lock()
    try:
        runner.map(lambda _: lock.locked(), [1], name="locks")
    except OmnigraphError as error:
        return f"{type(error).__name__}: {error.message}"
    raise AssertionError("nothing was raised")


def leave_a_file(directory: str, prefix: str) -> int:
    """How many such files there were."""
    before = len(list(Path(directory).glob(f"{prefix}*")))
    (Path(directory) / f"{prefix}{uuid.uuid4().hex}").touch()
    return before


def die_twice(task: tuple[str, int]) -> int:
    """The worker of the third task is killed in the midst of it, and so is the next one."""
    directory, number = task
    before = leave_a_file(directory, f"attempt-{number}-")
    if number == 2 and before < 2:
        os.kill(os.getpid(), signal.SIGKILL if before else signal.SIGSEGV)
    return number * 10


def die_always(_: int) -> None:
    os._exit(13)


def survive(runner: Runner, directory: str) -> list[int]:
    return runner.map(die_twice, [(directory, number) for number in range(5)], name="survive")


def perish(runner: Runner) -> dict[str, str]:
    try:
        runner.map(die_always, [0], name="perish")
    except OmnigraphError as error:
        return {"type": type(error).__name__, "message": error.message}
    raise AssertionError("nothing was raised")


def beat(task: tuple[str, int]) -> None:
    """Write on and on, far longer than any test waits; tell who writes, and that it came to an end
    by itself."""
    directory, number = task
    path = Path(directory) / f"beat-{number}"
    (Path(directory) / f"worker-{os.getpid()}").touch()
    deadline = time.monotonic() + BEATING_SECONDS
    while time.monotonic() < deadline:
        with path.open("a") as file:
            file.write(".")
        time.sleep(0.05)
    (Path(directory) / f"ended-{number}").touch()


def workers(directory: str) -> list[int]:
    """The processes that ran such tasks and are still there."""
    told = [path.name.removeprefix("worker-") for path in Path(directory).glob("worker-*")]
    return [int(pid) for pid in told if Path("/proc", pid).exists()]


def beats(directory: str) -> int:
    return sum(path.stat().st_size for path in Path(directory).glob("beat-*"))


def interrupt(runner: Runner, directory: str, how: str) -> dict[str, Any]:
    """A job of eight long tasks that is stopped once its first tasks are under way.

    Every place of the tests does two tasks at a time. Both have begun by then: a third would be
    one that Spark starts after the stop.
    """

    def is_under_way() -> bool:
        return len(list(Path(directory).glob("beat-*"))) >= SLOTS and beats(directory) > 4

    def check() -> None:
        if is_under_way():
            raise QueryCancelled

    def press() -> None:
        wait_until(is_under_way, "the first tasks", seconds=BEATING_SECONDS)
        os.kill(os.getpid(), signal.SIGINT)

    stopping: contextlib.AbstractContextManager[None] = interrupted_by(check)
    if how == "keyboard":
        threading.Thread(target=press, daemon=True).start()
        stopping = contextlib.nullcontext()
    try:
        with stopping:
            runner.map(beat, [(directory, number) for number in range(8)], name="beats")
    except (KeyboardInterrupt, QueryCancelled) as stop:
        ended = [path.name for path in Path(directory).glob("ended-*")]
        return {"raised": type(stop).__name__, "ended": ended}
    raise AssertionError("nothing was raised")


def side_by_side(runner: Runner, directory: str) -> dict[str, Any]:
    """Two jobs of one session: one is stopped, the other is not."""
    stopped: list[str] = []

    def stop() -> None:
        if beats(directory):
            raise QueryCancelled

    def run_beats() -> None:
        try:
            with interrupted_by(stop):
                runner.map(beat, [(directory, 0)], name="beats")
        except QueryCancelled as error:
            stopped.append(type(error).__name__)

    beating = threading.Thread(target=run_beats, daemon=True)
    beating.start()
    found = runner.map(slow_square, range(6), name="squares")
    beating.join()
    return {"found": found, "stopped": stopped}


def region(_: int) -> str | None:
    return os.environ.get("AWS_REGION")


@contextlib.contextmanager
def region_set_to(name: str | None) -> Iterator[None]:
    before = os.environ.pop("AWS_REGION", None)
    if name is not None:
        os.environ["AWS_REGION"] = name
    try:
        yield
    finally:
        os.environ.pop("AWS_REGION", None)
        if before is not None:
            os.environ["AWS_REGION"] = before


def regions(runner: SparkRunner) -> dict[str, list[str | None]]:
    """What tasks see of a variable of the driver, which changes from job to job."""
    found = {}
    for name in ("first", "second", None):
        with region_set_to(name):
            found[str(name)] = runner.map(region, range(3), name="regions")
    given = SparkRunner(runner.session, environment={"AWS_REGION": "given"})
    found["given"] = given.map(region, range(3), name="regions")
    return found


def lose_the_executor(task: tuple[str, int]) -> int:
    """The third task kills the Java process that runs it, with all it holds, the first time."""
    directory, number = task
    if number == 2:
        lose_its_executor(directory)
    return number * 10


def multiples(task: tuple[str, int]) -> Iterator[Blocks]:
    """A number for each partition: that of the task times that of the partition."""
    directory, number = task
    if directory and leave_a_file(directory, f"emit-{number}-") == 0 and number == 1:
        raise StorageError("the store is away for a moment", retryable=True)
    numbers = np.arange(PARTITIONS, dtype=np.int64) * number
    yield Blocks(0, np.arange(PARTITIONS + 1) * numbers.itemsize, numbers)


def met(directory: str, partition: int, received: Received) -> list[int]:
    if directory and partition == 1:
        lose_its_executor(directory)
    writers = [writer for writer, _ in received[0]]
    assert writers == sorted(writers)
    return [int(np.frombuffer(block, np.int64)[0]) for _, block in received[0]]


def exchange(runner: Runner, count: int, shaky: str = "", mortal: str = "") -> list[list[int]]:
    """What meets in each partition.

    Args:
        shaky: a directory; a task fails the first time.
        mortal: a directory; an executor is killed after it has emitted.
    """
    tasks = [(shaky, number) for number in range(count)]
    return runner.exchange(multiples, tasks, partial(met, mortal), PARTITIONS, name="multiples")


def lose_its_executor(directory: str) -> None:
    """Kill the Java process that runs this task, with all it holds, the first time."""
    if leave_a_file(directory, "lost-") == 0:
        daemon = os.getppid()
        executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
        assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
        os.kill(executor, signal.SIGKILL)
        time.sleep(BEATING_SECONDS)


def lose_an_executor(runner: Runner, directory: str) -> list[int]:
    tasks = [(directory, number) for number in range(5)]
    return runner.map(lose_the_executor, tasks, name="lose an executor")


def package_of_executors(runner: Runner) -> list[str]:
    """Where executors import our package from, asked by a function that needs no other."""

    def locate(_: int) -> str:
        import omnigraph_core

        return str(omnigraph_core.__file__)

    return sorted(set(runner.map(locate, range(4), name="locate the package")))


def bare_executors(runner: SparkRunner) -> dict[str, Any]:
    """Executors that lack our package are sent it, once."""
    from omnigraph_core.spark.packaging import ship_package

    try:
        package_of_executors(runner)
        before = "nothing was raised"
    except OmnigraphError as error:
        before = str(error)
    is_sent = [ship_package(runner.session) for _ in range(2)]
    return {"before": before, "is_sent": is_sent, "found": package_of_executors(runner)}


def sent_package(runner: SparkRunner) -> dict[str, Any]:
    """Executors that have our package are sent it only if told to, and for one session alone."""
    from omnigraph_core.spark.packaging import send_package, ship_package

    def arrived(_: int) -> list[str]:
        import sys
        from importlib.machinery import PathFinder

        archives = [path for path in sys.path if path.endswith("omnigraph_core.zip")]
        found = PathFinder.find_spec("omnigraph_core", archives)
        return [] if found is None else [str(found.origin)]

    session = runner.session.newSession()
    is_needed = ship_package(session)
    send_package(session)
    return {
        "is_needed": is_needed,
        "there": SparkRunner(session).map(arrived, range(2), name="find the package"),
        "elsewhere": runner.map(arrived, range(2), name="find the package"),
    }


def wait_for_another_attempt(directory: str, number: int) -> None:
    """The first attempt of the second task waits until there is another one."""
    if leave_a_file(directory, f"attempt-{number}-") == 0 and number == 1:
        wait_until(
            lambda: len(list(Path(directory).glob(f"attempt-{number}-*"))) > 1,
            "another attempt",
            seconds=BEATING_SECONDS,
        )


def wait_for_a_sign(directory: str, number: int) -> None:
    """Every task says that it has begun, and waits for a file of the name `go`."""
    leave_a_file(directory, f"attempt-{number}-")
    wait_until((Path(directory) / "go").exists, "the sign to go on", seconds=BEATING_SECONDS)


class Slow:
    """A runner whose tasks wait for something before they do their work.

    Tasks of exchanges do not: they run after those that do.
    """

    def __init__(self, runner: SparkRunner, wait: Any, directory: str) -> None:
        self._runner = runner
        self._wait = partial(wait, directory)

    @property
    def parallelism(self) -> int:
        return self._runner.parallelism

    def map(self, work: Any, tasks: Any, *, name: str, on_done: Any = None) -> list[Any]:
        wait = self._wait

        def waiting(numbered: tuple[int, Any]) -> Any:
            wait(numbered[0])
            return work(numbered[1])

        return self._runner.map(waiting, list(enumerate(tasks)), name=name, on_done=on_done)

    def exchange(
        self, emit: Any, tasks: Any, meet: Any, partitions: int, *, name: str
    ) -> list[Any]:
        return self._runner.exchange(emit, tasks, meet, partitions, name=name)


class Forgetting:
    """A runner that loses what one task of each job has done, once: the store was away when it
    was to answer."""

    def __init__(self, runner: SparkRunner, directory: str, number: int) -> None:
        """
        Args:
            directory: of files, one for each attempt of such a task.
            number: of the task in its job.
        """
        self._runner = runner
        self._directory = directory
        self._number = number

    @property
    def parallelism(self) -> int:
        return self._runner.parallelism

    def map(self, work: Any, tasks: Any, *, name: str, on_done: Any = None) -> list[Any]:
        forget = partial(_forget_once, self._directory, name, self._number)

        def forgetful(numbered: tuple[int, Any]) -> Any:
            done = work(numbered[1])
            forget(numbered[0])
            return done

        return self._runner.map(forgetful, list(enumerate(tasks)), name=name, on_done=on_done)

    def exchange(
        self, emit: Any, tasks: Any, meet: Any, partitions: int, *, name: str
    ) -> list[Any]:
        forget = partial(_forget_once, self._directory, name, self._number)

        def forgetful(numbered: tuple[int, Any]) -> Iterator[Blocks]:
            yield from emit(numbered[1])
            forget(numbered[0])

        numbered = list(enumerate(tasks))
        return self._runner.exchange(forgetful, numbered, meet, partitions, name=name)


def _forget_once(directory: str, name: str, forgotten: int, number: int) -> None:
    if number == forgotten and leave_a_file(directory, f"{name}-") == 0:
        raise StorageError("the store is away for a moment", retryable=True)


def wait_for_idle_executors(runner: SparkRunner) -> int:
    """How many executors are left when Spark has let go of those that had nothing to do."""
    context: Any = runner.session.sparkContext
    tracker = context._jsc.sc()
    wait_until(lambda: tracker.getExecutorIds().size() == 0, "idle executors to end", seconds=120)
    return int(tracker.getExecutorIds().size())


def outlive_its_session(runner: SparkRunner, graph: str) -> dict[str, Any]:
    """The server closes the session of this process, before a question, a job and a query."""
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.job_report import job_facts
    from omnigraph_core.spark.session import open_session

    def close() -> str:
        client: Any = runner.session.client
        before = str(client._session_id)
        other: Any = type(runner.session)(connection=client._builder)
        other.client.release_session()
        other.client.close()
        return before

    before = [close()]
    parallelism = runner.parallelism
    before.append(close())
    with job_facts(operation="load", run="01RUN", branch="main", type="node:Part") as report:
        squared = squares(runner, 3)
        tags = spark_tasks(runner, 1, "tagged")[0][2]
    before.append(close())
    text = "query parts() { match { $p: Part } return { $p.sku as sku } }"
    found = Omnigraph.open(graph).query("main", text, engine="spark")
    now: Any = open_session()
    return {
        "before": before,
        "found": found.to_pylist(),
        "now": now.client._session_id,
        "parallelism": parallelism,
        "squares": squared,
        "tags": tags,
        "jobs": report.to_json()["jobs"],
    }
