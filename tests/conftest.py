"""Fixtures and profiles for every test."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.s3 import S3Server
from tests.support.stores import Store, new_prefix, new_root

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.register_assert_rewrite("tests.support.corpus")

# Deadlines measure the machine, not the code; examples are derandomised so that a red run repeats.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A run in the background may ignore interrupts, and so would every process that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Without bytecode every worker rewrites every test module, which takes 20 CPU-seconds, and every
# process of a test compiles what it imports.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False
    prefix = str(Path(__file__).parent.parent / "build" / "bytecode")
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", prefix)

# Some of these win over what a client is told: no test may reach a real account.
_ACCOUNTS = ("AWS_", "GEMINI_", "OPENAI_", "OPENROUTER_", "OMNIGRAPH_EMBED", "NANOGRAPH_")
for _name in [name for name in os.environ if name.startswith(_ACCOUNTS)]:
    del os.environ[_name]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: packed ones hold the second they were packed in, and
    workers that name a test differently refuse to run."""
    return argname if isinstance(val, bytes) else None


_SPARK = "tests/integration/spark/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts clusters comes first: then one worker does all of it, and they start once."""
    items.sort(key=lambda item: not item.nodeid.startswith(_SPARK))


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One server for the whole run, also when it is spread over several workers."""
    base = tmp_path_factory.getbasetemp()
    directory = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with S3Server(directory / "s3") as server:
        yield server


@pytest.fixture
def s3_root(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty prefix of a bucket; the environment says how to reach it."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return new_prefix(s3_server.bucket)


@pytest.fixture(params=list(Store))
def graph_root(request: pytest.FixtureRequest) -> str:
    """An empty root for a graph, once per store."""
    return new_root(request.param, request)
