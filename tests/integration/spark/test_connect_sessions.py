"""A session of a Connect server ends, or the server does: whoever uses it does not notice."""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING, Final

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.session import ui_address
from tests.support import spark_jobs as jobs
from tests.support import spark_loads
from tests.support.load_worlds import SCHEMA
from tests.support.scripted_spark import ScriptedServer
from tests.support.spark import SECONDS, driver_there
from tests.support.spark_ui import command_lines, page, shown_pages
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.spark_cluster import ConnectServer

PARTS: Final = 2_000
SECRET: Final = f"hidden-{uuid.uuid4().hex}"


def test_a_closed_session_has_a_successor(connect_server: ConnectServer, tmp_path: Path) -> None:
    """Three times; the server takes the ids of closed sessions from nobody."""
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    graph.load(b'{"type": "Part", "data": {"sku": "p1"}}')
    first = str(uuid.uuid4())
    remote = f"{connect_server.url}/;user_id=alone;session_id={first}"
    with driver_there("alone", remote=remote) as driver:
        found = driver.call(jobs.outlive_its_session, graph.uri)
    ids = [*found["before"], found["now"]]
    assert ids == [first, *(str(uuid.uuid5(uuid.UUID(first), str(n))) for n in (1, 2, 3))]
    assert found["found"] == [{"sku": "p1"}]
    assert found["parallelism"] > 0
    assert found["squares"] == [0, 1, 4]
    for fact in ("operation=load", "run=01RUN", "branch=main", "type=node:Part"):
        assert f"_Tag_{fact}" in found["tags"]
    squares, tagged = found["jobs"]
    assert (squares["name"], squares["tasks"], tagged["name"]) == ("squares", 3, "tagged")
    assert squares["shuffle_bytes"] > 0
    assert squares["spilled_bytes"] == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    secrets = {"OPENAI_API_KEY": SECRET}
    found = ScriptedServer(tmp_path_factory.mktemp("server"), variables=secrets)
    try:
        yield found
    finally:
        found.kill()


@pytest.mark.long("test_a_session_from_nothing_but_packages: the same on this machine")
def test_a_server_shows_no_secret(server: ScriptedServer) -> None:
    """Neither one of its own, nor one that travels with a job."""
    sent = f"hidden-{uuid.uuid4().hex}"
    with driver_there("secretive", remote=server.url) as driver:
        assert driver.call(key_of_tasks, None) == [SECRET]
        assert driver.call(key_of_tasks, sent) == [sent]
        ui = driver.call(address_of_the_ui)
        shown = shown_pages(ui) | {"/connect/": page(f"{ui}/connect/")}
    shown["commands"] = command_lines()
    shown["event log"] = "".join(
        path.read_text() for path in server.events.rglob("*") if path.is_file()
    )
    assert "keys of tasks" in shown["jobs"].replace("-", " ")
    assert "SparkListenerJobStart" in shown["event log"]
    for secret in (SECRET, sent):
        assert [place for place, text in shown.items() if secret in text] == []


def key_of_tasks(runner: SparkRunner, secret: str | None) -> list[str | None]:
    environment = None if secret is None else {"OPENAI_API_KEY": secret}
    other = SparkRunner(runner.session, environment=environment)
    return other.map(key_of_a_task, [0], name="keys of tasks")


def key_of_a_task(_: int) -> str | None:
    return os.environ.get("OPENAI_API_KEY")


def address_of_the_ui(runner: SparkRunner) -> str | None:
    return ui_address(runner.session)


def require_once(graph: Omnigraph, rows: int, loads: int) -> None:
    assert graph.snapshot().table("node:Part").row_count == rows
    assert len(graph.list_commits()) == loads + 1
    assert graph.verify(is_deep=True).is_sound


def parts_from(first: int) -> str:
    numbers = range(first, first + PARTS)
    rows = ({"type": "Part", "data": {"sku": f"p{number}"}} for number in numbers)
    return "\n".join(map(json.dumps, rows))


@pytest.mark.long("test_a_closed_session_has_a_successor: a session that the server has closed")
@pytest.mark.parametrize("when", ["during a job", "between jobs"])
def test_a_load_lands_once_though_the_server_restarts(
    server: ScriptedServer, tmp_path: Path, when: str
) -> None:
    first, second, signs = tmp_path / "1.jsonl", tmp_path / "2.jsonl", tmp_path / "signs"
    first.write_text(parts_from(0))
    second.write_text(parts_from(PARTS))
    signs.mkdir()
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    with driver_there("restarted", remote=server.url) as driver:
        assert driver.call(spark_loads.load, graph.uri, [str(first)])[0] == "loaded"
        slowly = (graph.uri, [str(second)], str(signs), "wait_for_a_sign", 20_000)
        if when == "during a job":
            driver.start(spark_loads.load_slowly, *slowly)
            wait_until(lambda: list(signs.iterdir()), "the first task", seconds=SECONDS)
            server.kill()
            (signs / "go").touch()
            server.start()
        else:
            (signs / "go").touch()
            server.interrupt()
            server.start()
            driver.start(spark_loads.load_slowly, *slowly)
        assert driver.result()[0] == "loaded"
    require_once(graph, 2 * PARTS, 2)
