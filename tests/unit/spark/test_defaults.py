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
    for name in ("PYSPARK_PYTHON", "SPARK_REMOTE", "AWS_REGION", "SPARK_LOCAL_IP"):
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
        "spark.driver.bindAddress",
        "spark.driver.extraJavaOptions",
        "spark.sql.shuffle.partitions",
        "spark.python.daemon.module",
    }
    assert local <= defaults.classic("local[2]").keys()
    assert local.isdisjoint(defaults.classic("spark://127.0.0.1:7077"))
    assert local.isdisjoint(defaults.classic("k8s://https://127.0.0.1"))


@each("master", ["spark://127.0.0.1:7077,127.0.0.2:7077", "k8s://https://127.0.0.1:6443", "local"])
def test_the_ui_listens_on_loopback(master: str) -> None:
    conf = defaults.classic(master)
    assert conf["spark.driver.host"] == "127.0.0.1", "the way to the cluster"
    found = defaults.launch_variables(master, conf)
    assert found["SPARK_LOCAL_IP"] == found["SPARK_PUBLIC_DNS"] == "127.0.0.1"


def test_the_ui_listens_where_spark_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "spark.driver.host" not in defaults.classic("yarn")
    assert "SPARK_LOCAL_IP" not in defaults.launch_variables("yarn", {}), "behind YARN's proxy"
    monkeypatch.setenv("SPARK_LOCAL_IP", "10.0.0.1")
    master = "spark://127.0.0.1:7077"
    assert "SPARK_LOCAL_IP" not in defaults.launch_variables(master, defaults.classic(master))


SECRET = [
    *("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "OPENAI_API_KEY"),
    *("spark.hadoop.fs.s3a.access.key", "spark.ssl.keyStorePassword", "OMNIGRAPH_BEARER_TOKEN"),
    *("spark.hadoop.fs.azure.account.key.x", "spark.authenticate.secret"),
]


@each("name", SECRET)
def test_names_of_secrets(name: str) -> None:
    assert defaults.is_secret(name)


@each("name", ["AWS_REGION", "spark.executor.memory", "spark.ui.port", "OMNIGRAPH_EMBED_MODEL"])
def test_names_of_no_secrets(name: str) -> None:
    assert not defaults.is_secret(name)


def test_executors_get_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu")
    for master in ("local", "spark://127.0.0.1:7077"):
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
