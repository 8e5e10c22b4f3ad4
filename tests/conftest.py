"""Fixtures and profiles for every test."""

from __future__ import annotations

import gc
import os
import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.costs import CostReport
from tests.support.examples import LONG
from tests.support.run_directory import RunDirectory
from tests.support.s3 import S3Server
from tests.support.schedule import UnitScheduling, order
from tests.support.stores import Store, new_prefix, new_root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from xdist.remote import Producer

    from tests.support.spark_cluster import ConnectServer, StandaloneCluster

QUICK = ("tests/unit/", "tests/guards/")
"""Folders of the quick tier: all but their tests on S3."""

pytest.register_assert_rewrite("tests.support.corpus")

# Deadlines measure the machine, not the code; examples are derandomised so that a red run repeats.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("long" if LONG else "ci")

# A run in the background may ignore interrupts, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Some of these win over what a client is told: no test may reach a real account.
_ACCOUNTS = (
    *("AWS_", "GEMINI_", "GOOGLE_", "OPENAI_", "OPENROUTER_"),
    *("OMNIGRAPH_EMBED", "NANOGRAPH_"),
)
for _name in [name for name in os.environ if name.startswith(_ACCOUNTS)]:
    del os.environ[_name]


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its options
def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins of a run; the long profile draws a seed, which `--hypothesis-seed` can
    repeat. Workers do not get options that are set here, but they inherit the environment.
    """
    config.pluginmanager.register(CostReport())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunDirectory())
        if hasattr(os, "SCHED_BATCH"):
            # The processes of a run interrupt each other less: a twentieth of the CPU time.
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    if LONG and config.option.hypothesis_seed is None:
        drawn = str(random.SystemRandom().getrandbits(32))
        config.option.hypothesis_seed = os.environ.setdefault("HYPOTHESIS_SEED", drawn)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the seed at the end: a quiet run has no header."""
    if config.option.hypothesis_seed is not None:
        seed = config.option.hypothesis_seed
        terminalreporter.write_line(f"examples were drawn with --hypothesis-seed={seed}")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: packed ones hold the second they were packed in, and
    workers that name a test differently refuse to run."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick tier, hold that whatever is left to the long run says why, and order."""
    for item in items:
        long = item.get_closest_marker("long")
        if long is not None and not long.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker `long` takes a reason")
        fixtures = getattr(item, "fixturenames", ())
        if long is None and item.nodeid.startswith(QUICK) and "s3_server" not in fixtures:
            item.add_marker("quick")
    order(items)


def pytest_collection_finish() -> None:
    """What collection made stays for the run: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> UnitScheduling | None:
    """Ours, unless `--dist` names another one."""
    if config.getvalue("dist") != "load":
        return None
    config.option.loadscopereorder = False
    return UnitScheduling(config, log)


@pytest.fixture(scope="session")
def shared_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for the whole run, also when it is spread over several workers."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def s3_server(shared_directory: Path) -> Iterator[S3Server]:
    """One server for the whole run."""
    with S3Server(shared_directory / "s3") as server:
        yield server


# Importing Spark is slow, and most workers never need it: hence inside the fixtures.


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session of this process: two tasks at a time, each tried three times."""
    from tests.support.spark import local_session

    with local_session() as session:
        yield session


@pytest.fixture(scope="session")
def cluster(shared_directory: Path) -> Iterator[StandaloneCluster]:
    """A master and two workers for the whole run."""
    from tests.support.spark_cluster import StandaloneCluster

    with StandaloneCluster(shared_directory / "spark-cluster") as service:
        yield service


@pytest.fixture(scope="session")
def connect_server(shared_directory: Path) -> Iterator[ConnectServer]:
    """A Spark Connect server for the whole run."""
    from tests.support.spark_cluster import ConnectServer

    with ConnectServer(shared_directory / "spark-connect") as service:
        yield service


@pytest.fixture
def s3_root(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty prefix of a bucket; the environment says how to reach it."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return new_prefix(s3_server.bucket)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`graph_root` on every store; on S3 only in the long run, where a module says why."""
    if "graph_root" in metafunc.fixturenames:
        later = metafunc.definition.get_closest_marker("long_on_s3")
        marks = [pytest.mark.long(*later.args)] if later is not None else []
        stores = [Store.LOCAL, pytest.param(Store.S3, marks=marks)]
        metafunc.parametrize("graph_root", stores, indirect=True)


@pytest.fixture
def graph_root(request: pytest.FixtureRequest) -> str:
    """An empty root for a graph, once per store."""
    return new_root(request.param, request)
