"""A session is adopted if there is one, and started with what jobs need if there is none."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.job_report import job_facts
from omnigraph_core.spark import connect
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.session import is_connect, open_session
from tests.support import spark_jobs as jobs
from tests.support.processes import spawn
from tests.support.spark import LOCAL
from tests.support.spark_ui import PAGES, REST, command_lines, listening_at, shown_pages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.spark import DriverThere
    from tests.support.spark_cluster import ConnectServer


def test_an_active_session_is_adopted(spark: SparkSession) -> None:
    assert open_session() is spark
    assert open_session(master=LOCAL) is spark
    found: list[SparkSession] = []
    thread = threading.Thread(target=lambda: found.append(open_session()))
    thread.start()
    thread.join()
    assert found[0].sparkContext is spark.sparkContext, "from any thread"
    assert not is_connect(spark)


@pytest.mark.parametrize("place", [{"master": "spark://h:7077"}, {"remote": "sc://h:15002"}])
def test_an_active_session_is_not_moved(spark: SparkSession, place: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        open_session(**place)  # type: ignore[arg-type]
    (wanted,) = place.values()
    assert caught.value.message == (
        f"a Spark session is active in this process on {LOCAL}; {wanted} was asked for"
    )


def test_settings_of_an_active_session(spark: SparkSession) -> None:
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    try:
        open_session(conf={name: "7"})
        assert spark.conf.get(name) == "7"
    finally:
        spark.conf.set(name, before)
    with pytest.raises(ConfigError) as caught:
        open_session(
            conf={
                "spark.executor.memory": "9g",
                "spark.driver.host": "elsewhere",
                "spark.master": LOCAL,
                name: "9",
            }
        )
    assert caught.value.message == (
        "a Spark session is active in this process with other settings: "
        "spark.driver.host is '127.0.0.1', not 'elsewhere'; "
        "spark.executor.memory is None, not '9g'"
    )
    assert spark.conf.get(name) == before, "all or nothing"


def test_defaults(spark: SparkSession) -> None:
    wanted = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.daemon.module": "omnigraph_core.spark.daemon",
    }
    assert {name: spark.conf.get(name) for name in wanted} == wanted
    variables = SparkRunner(spark).map(variables_of_a_worker, [0], name="variables")[0]
    assert variables["LANCE_CPU_THREADS"] == "2"
    assert variables["python"] == sys.executable


def variables_of_a_worker(_: int) -> dict[str, str]:
    return {**os.environ, "python": sys.executable}


def test_a_connect_session_has_the_settings_of_sql(connect_driver: DriverThere) -> None:
    found = connect_driver.call(connect_settings)
    assert found["is_connect"]
    assert found["timeZone"] == "UTC"
    assert found["same"]
    assert "spark.executor.memory is None, not '9g'" in found["fixed"]
    assert re.search(r"active in this process on sc://127.0.0.1:\d+; local was", found["local"])
    assert "sc://127.0.0.1:1 was asked for" in found["elsewhere"]


def connect_settings(runner: SparkRunner) -> dict[str, Any]:
    session = runner.session
    here = f"sc://{session.client._builder.endpoint}"
    return {
        "is_connect": is_connect(session),
        "timeZone": session.conf.get("spark.sql.session.timeZone"),
        "same": open_session() is session and open_session(remote=here) is session,
        "fixed": refusal(conf={"spark.executor.memory": "9g"}),
        "local": refusal(master="local"),
        "elsewhere": refusal(remote="sc://127.0.0.1:1/;token=hunter2"),
    }


def refusal(**arguments: Any) -> str:
    try:
        open_session(**arguments)
    except ConfigError as error:
        return str(error)
    raise AssertionError("nothing was raised")


def test_what_cannot_be_opened(tmp_path: Path, connect_server: ConnectServer) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        '#!/bin/sh\ncase "$*" in *-version*) echo \'version "17"\'; exit 0;; esac\nexit 1\n'
    )
    java.chmod(0o755)
    env = {"JAVA_HOME": str(tmp_path / "jdk"), "OMNIGRAPH_SPARK_MASTER": "spark://nowhere:7077"}
    with spawn(f"{__name__}:refusals", connect_server.url, env=env) as worker:
        found = worker.wait(300).result()
    assert found["both"] == "a Spark session has a master or a remote server, not both"
    assert "hunter2" not in str(found)
    assert found["url"] == "'http://x/' is no Spark Connect server\nhint: as sc://host:15002"
    assert found["nobody"].startswith("no Spark Connect server answers at sc://127.0.0.1:")
    assert "runs with other settings: spark.executor.memory is None, not" in found["settings"]
    assert found["master"].startswith("'nonsense://x' is no place where Spark runs\nhint: ")
    assert found["java"].startswith("Spark does not start on local[1]: ")
    assert "JAVA_GATEWAY_EXITED" in found["java"]
    assert found["environment"].startswith("Spark does not start on spark://nowhere:7077: ")
    assert found["missing"] == (
        "Spark needs the package `pyspark`\nhint: pip install 'omnigraph[spark]'"
    )


def refusals(server: str) -> dict[str, str]:
    """In a process without a session."""
    connect.START_SECONDS = 1.0  # type: ignore[misc]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nobody = refusal(remote=f"sc://127.0.0.1:{probe.getsockname()[1]}/;token=hunter2")
    found = {
        "both": refusal(master="local", remote="sc://h"),
        "url": refusal(remote="http://x/;token=hunter2"),
        "nobody": nobody,
        "settings": refusal(remote=server, conf={"spark.executor.memory": "9g"}),
        "master": refusal(master="nonsense://x"),
        "java": refusal(master="local[1]"),
        "environment": refusal(),
    }
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        del sys.modules[name]
    sys.modules["pyspark"] = None  # type: ignore[assignment]
    return found | {"missing": refusal()}


def test_a_session_from_nothing_but_packages(tmp_path: Path) -> None:
    """No Java on the PATH, settings in the environment, secrets that nobody may see."""
    secrets = {name: f"hidden-{uuid.uuid4().hex}" for name in (*SECRET_VARIABLES, *SECRET_CONF)}
    events = tmp_path / "events"
    events.mkdir()
    conf = {
        "spark.app.name": "mine",
        "spark.speculation": True,
        "spark.eventLog.enabled": True,
        "spark.eventLog.dir": str(events),
        "spark.eventLog.compress": False,
        **{name: secrets[name] for name in SECRET_CONF},
    }
    tools = tmp_path / "path"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "env", "ps", "uname", "chmod"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    env = {
        "PATH": str(tools),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "OMNIGRAPH_SPARK_MASTER": "local[1,2]",
        "OMNIGRAPH_SPARK_CONF": json.dumps(conf),
        **{name: secrets[name] for name in SECRET_VARIABLES},
        "JAVA_HOME": "",
        "SPARK_CONNECT_MODE_ENABLED": "1",  # as it is after a session of the other kind
    }
    with spawn(f"{__name__}:from_nothing", env=env) as worker:
        outcome = worker.wait(600)
    found = outcome.result()
    assert found["conf"] == {
        "spark.app.name": "given",
        "spark.master": "local[1,2]",
        "spark.speculation": "true",
    }
    assert found["squares"] == [0, 1, 4]
    assert found["seen"] == {name: secrets[name] for name in SECRET_VARIABLES}
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", found["ui"])
    assert found["listening"] == ["127.0.0.1"]
    assert "load: squares (run 01RUN, branch main, type node:Part)" in found["pages"]["stages"]
    assert found["pages"].keys() == {*REST, *PAGES}
    written = b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert b"SparkListenerJobStart" in written
    assert b"load: squares (run 01RUN, branch main, type node:Part)" in written
    shown = {"event log": written.decode(), "commands": found["commands"], **found["pages"]}
    for name, secret in secrets.items():
        assert [place for place, text in shown.items() if secret in text] == [], name
    assert "redacted" in found["pages"]["environment"]
    assert str(tmp_path / "cache") in found["home"]
    assert found["is_restored"]
    said = [line for line in outcome.stderr.splitlines() if "incubator" not in line]
    assert [line for line in said if not line.startswith("WARNING: ")] == []


SECRET_VARIABLES = ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "OPENAI_API_KEY")
SECRET_CONF = ("spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key")


def from_nothing() -> dict[str, Any]:
    """In a process without a session."""
    before = standing()
    session = open_session(conf={"spark.app.name": "given"})
    is_restored = standing() == before
    names = ("spark.app.name", "spark.master", "spark.speculation")
    runner = SparkRunner(session)
    java = session.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    with job_facts(operation="load", run="01RUN", branch="main", type="node:Part") as report:
        squared = jobs.squares(runner, 3)
    variables = runner.map(variables_of_a_worker, [0], name="x")[0]
    assert report.ui is not None
    found = {
        "conf": {name: session.conf.get(name) for name in names},
        "squares": squared,
        "seen": {name: variables.get(name) for name in SECRET_VARIABLES},
        "commands": command_lines(),
        "ui": report.ui,
        "listening": listening_at(int(report.ui.rpartition(":")[2])),
        "pages": shown_pages(report.ui),
        "home": variables_of_process(java)["JAVA_HOME"],
        "is_restored": is_restored,
    }
    session.stop()  # the event log is whole then
    return found


def standing() -> tuple[Any, ...]:
    """What starting Spark changes for a while: variables, and who handles interrupts."""
    names = ("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP")
    return *(os.environ.get(name) for name in names), signal.getsignal(signal.SIGINT)


def variables_of_process(number: int) -> dict[str, str]:
    pairs = Path(f"/proc/{number}/environ").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
