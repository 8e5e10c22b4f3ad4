"""Drivers: the same call on a session of this process, on a cluster and behind Connect."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from tests.support.run_directory import LIGHT_JAVA
from tests.support.scripted_spark import ScriptedServer
from tests.support.spark import DriverHere, DriverThere, driver_there
from tests.support.spark_cluster import QUICK_TO_ACT, StandaloneCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.spark import Driver
    from tests.support.spark_cluster import ConnectServer

CLUSTER_SETTINGS: Final = {
    **QUICK_TO_ACT,
    "spark.ui.enabled": "false",
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.python.daemon.module": "omnigraph_core.spark.daemon",
    "spark.driver.host": "127.0.0.1",
    "spark.pyspark.python": sys.executable,
    # Executors are killed, and what Java has unpacked would stay.
    "spark.executor.extraJavaOptions": f"-Djava.io.tmpdir={tempfile.gettempdir()} {LIGHT_JAVA}",
    "spark.driver.extraJavaOptions": LIGHT_JAVA,
}
"""Two executors of one core each: small enough for two applications side by side."""


@pytest.fixture(scope="session")
def cluster_driver(cluster: StandaloneCluster) -> Iterator[DriverThere]:
    with driver_there("cluster", master=cluster.url, conf=CLUSTER_SETTINGS) as driver:
        yield driver


@pytest.fixture(scope="session")
def connect_driver(connect_server: ConnectServer) -> Iterator[DriverThere]:
    with driver_there("connect", remote=connect_server.url) as driver:
        yield driver


class Mortal(NamedTuple):
    """A session whose tasks are done by executors that can be killed."""

    driver: DriverThere
    cluster: StandaloneCluster


@pytest.fixture(scope="session")
def mortal_connect(shared_directory: Path) -> Iterator[Mortal]:
    """Behind a server whose executors are those of a cluster of its own: it takes all there are."""
    directory = shared_directory / f"connect-cluster-{os.getpid()}"
    with StandaloneCluster(directory) as cluster:
        (directory / "server").mkdir()
        server = ScriptedServer(directory / "server", master=cluster.url)
        try:
            with driver_there("connect", remote=server.url) as driver:
                yield Mortal(driver, cluster)
        finally:
            server.kill()


@pytest.fixture
def mortal(request: pytest.FixtureRequest) -> Mortal:
    """On a cluster, or on one behind a Connect server."""
    if request.param == "connect":
        found: Mortal = request.getfixturevalue("mortal_connect")
        return found
    return Mortal(*(request.getfixturevalue(name) for name in ("cluster_driver", "cluster")))


_ELSEWHERE = pytest.mark.long(
    "loads, reads and jobs in all places: test_loads, test_query_places, test_runner, test_cluster"
)
ON_CLUSTERS = pytest.mark.parametrize(
    "mortal",
    ["cluster", pytest.param("connect", marks=pytest.mark.long("the same on the cluster"))],
    indirect=True,
)
NOT_ON_THE_CLUSTER = pytest.mark.parametrize(
    "driver", ["local", pytest.param("cluster", marks=_ELSEWHERE), "connect"], indirect=True
)
ON_THIS_MACHINE = pytest.mark.parametrize(
    "driver",
    ["local", *(pytest.param(place, marks=_ELSEWHERE) for place in ("cluster", "connect"))],
    indirect=True,
)
"""In the usual run; the long one has all places for all tests."""


@pytest.fixture(params=["local", "cluster", "connect"])
def driver(request: pytest.FixtureRequest) -> Driver:
    """Whatever a test says of a runner holds wherever Spark runs."""
    if request.param == "local":
        return DriverHere("local", request.getfixturevalue("spark"))
    found: Driver = request.getfixturevalue(f"{request.param}_driver")
    return found
