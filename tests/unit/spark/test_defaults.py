"""What a session is started with, for each place it may run at."""

from __future__ import annotations

import sys

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.spark import defaults
from tests.support.cases import each


@pytest.fixture(autouse=True)
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "java_home", lambda: "/jdk")
    for name in ("PYSPARK_PYTHON", "SPARK_REMOTE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)


@each(
    "master",
    ["local", "local[*]", "local[4,3]", "spark://a:1,b:2", "k8s://https://h:6443", "yarn"],
)
def test_places(master: str) -> None:
    defaults.check_master(master)


@each("master", ["", "locally", "local[", "spark:/h", "mesos://h", "sc://h"])
def test_what_is_no_place(master: str) -> None:
    with pytest.raises(ConfigError, match="is no place where Spark runs"):
        defaults.check_master(master)


def test_this_machine_tries_tasks_again() -> None:
    master = defaults.local_master()
    defaults.check_master(master)
    assert master.endswith(",3]")


def test_only_this_machine_is_bound_to_itself() -> None:
    local = {
        "spark.driver.host",
        "spark.driver.bindAddress",
        "spark.driver.extraJavaOptions",
        "spark.sql.shuffle.partitions",
        "spark.python.daemon.module",
    }
    assert local <= defaults.classic("local[2]").keys()
    assert local.isdisjoint(defaults.classic("spark://h:7077"))
    assert local.isdisjoint(defaults.classic("k8s://https://h"))


def test_executors_get_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu")
    for master in ("local", "spark://h:7077"):
        found = defaults.classic(master)
        assert found["spark.executorEnv.AWS_REGION"] == "eu"
        assert found["spark.executorEnv.LANCE_CPU_THREADS"] == "2"


def test_which_python_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def python(master: str, **conf: str) -> str | None:
        return defaults.launch_variables(master, conf).get("PYSPARK_PYTHON")

    named = {"spark.pyspark.python": "/named"}
    assert python("local[2]") == sys.executable
    assert python("spark://h") is None, "the machines of a cluster have their own"
    assert python("spark://h", **named) == "/named"
    monkeypatch.setenv("PYSPARK_PYTHON", "/set")
    assert python("local[2]") == python("spark://h") == "/set"
    assert python("local[2]", **named) == "/named"


def test_what_spark_is_launched_with() -> None:
    found = defaults.launch_variables("local", {})
    assert found["SPARK_REMOTE"] is None, "else it would want to be there"
    assert found["JAVA_HOME"] == "/jdk"
