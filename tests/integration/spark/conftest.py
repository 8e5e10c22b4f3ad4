"""Spark for tests: a session in this process, a cluster and a Connect server beside it.

Each is started for the first test that needs it. The services are shared by all workers of a run;
tests of this directory follow one another, so that as a rule one worker starts a session.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.spark import DriverHere, driver_there, local_session
from tests.support.spark_cluster import ConnectServer, StandaloneCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.spark import Driver, DriverThere

_LIGHT_JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
CLUSTER_SETTINGS: Final = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.pyspark.python": sys.executable,
    "spark.executor.extraJavaOptions": _LIGHT_JAVA,
    "spark.driver.extraJavaOptions": _LIGHT_JAVA,
}
"""Two executors of one core each: small enough for two applications side by side."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on this machine: two tasks at a time, each tried three times."""
    with local_session() as session:
        yield session


@pytest.fixture(scope="session")
def cluster(shared_directory: Path) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(shared_directory / "spark-cluster") as service:
        yield service


@pytest.fixture(scope="session")
def connect_server(shared_directory: Path) -> Iterator[ConnectServer]:
    with ConnectServer(shared_directory / "spark-connect") as service:
        yield service


@pytest.fixture(scope="session")
def cluster_driver(cluster: StandaloneCluster) -> Iterator[DriverThere]:
    with driver_there("cluster", master=cluster.url, conf=CLUSTER_SETTINGS) as driver:
        yield driver


@pytest.fixture(scope="session")
def connect_driver(connect_server: ConnectServer) -> Iterator[DriverThere]:
    with driver_there("connect", remote=connect_server.url) as driver:
        yield driver


@pytest.fixture(params=["local", "cluster", "connect"])
def driver(request: pytest.FixtureRequest) -> Driver:
    """Whatever a test says of a runner holds wherever Spark runs."""
    if request.param == "local":
        return DriverHere("local", request.getfixturevalue("spark"))
    found: Driver = request.getfixturevalue(f"{request.param}_driver")
    return found
