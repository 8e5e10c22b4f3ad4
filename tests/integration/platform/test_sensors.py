"""Sensors, tick by tick: what they ask for, what they say, and what a second tick does."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_assets.drops import LOADED, QUARANTINE, LocalDrops, digest_of
from omnigraph_assets.loads import begin_load
from omnigraph_core.history.locks import schema_lock
from omnigraph_core.history.runs import RunStatus
from tests.support.later import Later
from tests.support.platform import PEOPLE, WIDER, Platform, carry_out, look, tick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import dagster as dg

    from omnigraph_assets import dead_runs, notify
else:
    dg = Later("dagster")
    dead_runs, notify = Later("omnigraph_assets.dead_runs"), Later("omnigraph_assets.notify")

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]


def names(request: dg.RunRequest) -> list[str]:
    (plan,) = request.run_config["ops"]["people_load"]["ops"].values()
    return [address.rpartition("/")[2] for address in plan["config"]["files"]]


def test_files_are_loaded_once_when_they_have_settled(platform: Platform) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    platform.drop("unfinished.jsonl.part", "{")
    platform.graph.branch_create("side")
    platform.drop("side.jsonl", *PEOPLE, branch="side")
    platform.drop("lost.jsonl", *PEOPLE, branch="nowhere")
    first = tick(platform, "drops_sensor")
    assert first.run_requests == []
    assert "3 files have not settled" in first.skip_message
    # A branch that is new is a partition with the same tick; only an instance on disk shows it.
    sensor = platform.defs.get_repository_def().get_sensor_def("people_drops_sensor")
    with dg.build_sensor_context(instance=platform.instance, cursor=first.cursor) as context:
        (added,) = sensor(context).dynamic_partitions_requests
    assert added.partition_keys == ["side"]
    platform.instance.add_dynamic_partitions("people_branches", ["side"])
    second = tick(platform, "drops_sensor", first.cursor)
    main, side = sorted(second.run_requests, key=lambda request: request.partition_key)
    assert (main.partition_key, names(main)) == ("main", ["people.jsonl"])
    assert (side.partition_key, names(side)) == ("side", ["side.jsonl"])
    # The same files on the same commit are never asked for under another key.
    again = tick(platform, "drops_sensor", second.cursor)
    assert main.run_key in [request.run_key for request in again.run_requests]
    assert carry_out(platform, main).success
    third = tick(platform, "drops_sensor", second.cursor)
    assert [request.partition_key for request in third.run_requests] == ["side"]
    assert (platform.directory / "drops" / LOADED / "main" / "people.jsonl").exists()
    # Dropped again it is put away again, and nothing is loaded twice.
    head = platform.head()
    platform.drop("people.jsonl", *PEOPLE)
    assert [request.partition_key for request in look(platform).run_requests] == ["side"]
    assert platform.head() == head


def test_a_refused_load_is_divided_until_the_bad_file_is_alone(platform: Platform) -> None:
    platform.drop("a.jsonl", *PEOPLE)
    platform.drop("b.jsonl", {"type": "Company", "data": {"name": "hive"}})
    platform.drop("c.jsonl", {"edge": "Knows", "from": "ann", "to": "zed"})
    platform.drop("d.jsonl", {"edge": "WorksAt", "from": "ann", "to": "hive"})
    asked = []
    for _ in range(8):
        result = look(platform)
        if not result.run_requests:
            break
        (request,) = result.run_requests
        asked.append("".join(name[0] for name in names(request)))
        carry_out(platform, request)
    assert asked == ["abcd", "ab", "cd", "c", "d"][: len(asked)]
    assert platform.rows("node:Person") == 2
    assert platform.rows("edge:WorksAt") == 1
    kept = platform.directory / "drops" / QUARANTINE / "main"
    assert sorted(path.name for path in kept.iterdir()) == ["c.jsonl", "c.jsonl.reason.json"]
    # Whoever puts it back has made sure of it: it is tried anew.
    platform.drop("z.jsonl", {"type": "Person", "data": {"name": "zed"}})
    (kept / "c.jsonl").rename(platform.directory / "drops" / "main" / "c.jsonl")
    (request,) = look(platform).run_requests
    assert carry_out(platform, request).success
    assert platform.rows("edge:Knows") == 2


def test_a_load_that_was_left_is_published_by_the_guard_once(platform: Platform) -> None:
    assert tick(platform, "publish_guard").skip_message == "no load was left"
    platform.drop("people.jsonl", *PEOPLE)
    with schema_lock(platform.graph._context.store, "main", actor="somebody"):
        platform.load()  # as one that was killed after its rows were staged
        assert "waits: somebody" in tick(platform, "publish_guard").skip_message
    assert "loads under way have the files" in look(platform).skip_message
    (request,) = tick(platform, "publish_guard").run_requests
    assert request.tags["dagster/partition"] == "main"
    before = platform.graph.snapshot().manifest_version
    for _ in range(2):  # a second run of it finds it published
        result = platform.run("publish", run_config=request.run_config, tags=dict(request.tags))
        assert result.success
    assert platform.graph.snapshot().manifest_version == before + 1
    assert platform.rows("node:Person") == 2
    shown = platform.instance.get_materialized_partitions(
        dg.AssetKey(["people", "nodes", "Person"])
    )
    assert shown == {"main"}
    assert tick(platform, "publish_guard").skip_message == "no load was left"


def test_a_load_of_a_branch_that_is_gone_is_given_up(platform: Platform) -> None:
    platform.graph.branch_create("side")
    platform.instance.add_dynamic_partitions("people_branches", ["side"])
    platform.drop("people.jsonl", *PEOPLE, branch="side")
    with schema_lock(platform.graph._context.store, "side", actor="somebody"):
        platform.load("side")
    (run,) = platform.graph.list_runs(status=RunStatus.RUNNING)
    platform.graph.abort_run(run.run_id)
    platform.graph.branch_delete("side")
    synced = tick(platform, "branch_sync")
    (gone,) = synced.dynamic_partitions_requests
    assert gone.partition_keys == ["side"]
    assert "there is no branch `side`" in look(platform).skip_message
    assert not platform.load("side").success


def test_partitions_follow_branches(platform: Platform) -> None:
    platform.graph.branch_create("a/b")
    platform.instance.add_dynamic_partitions("people_branches", ["invented"])
    requests = tick(platform, "branch_sync").dynamic_partitions_requests
    assert [request.partition_keys for request in requests] == [["a/b"], ["invented"]]


def test_commits_of_others_are_shown_and_own_ones_are_not_repeated(platform: Platform) -> None:
    first = tick(platform, "manifest_watch")
    platform.graph.load(b'{"type": "Company", "data": {"name": "hive"}}', actor="somebody")
    second = tick(platform, "manifest_watch", first.cursor)
    shown = [(event.asset_key.path[-1], event.partition) for event in second.asset_events]
    assert shown == [("Company", "main"), ("manifest", "main")]
    platform.drop("people.jsonl", *PEOPLE)
    assert platform.load().success
    third = tick(platform, "manifest_watch", second.cursor)
    assert third.asset_events == []
    assert json.loads(third.cursor) == {"main": platform.head()}


def test_another_schema_refreshes_the_definitions(platform: Platform) -> None:
    assert "those of the accepted schema" in tick(platform, "schema_watch").skip_message
    platform.graph.schema_apply(WIDER)
    (request,) = tick(platform, "schema_watch").run_requests
    assert request.run_key == platform.graph.schema_show().hash
    assert platform.run("refresh").success


def test_a_planned_load_that_nobody_works_on_is_planned_again(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = platform.drop("people.jsonl", *PEOPLE)
    store = LocalDrops(path.parent.parent)
    (file,) = store.list()
    schema = platform.graph.schema_show().hash
    run = begin_load(platform.graph, platform.config, "main", [digest_of(store, file)], schema)
    assert "loads under way" in look(platform).skip_message
    monkeypatch.setattr("omnigraph_assets.drop_sensor._ABANDONED_US", -1)
    (request,) = look(platform).run_requests
    assert platform.graph.get_run(run.run_id).status is RunStatus.ABORTED
    assert carry_out(platform, request).success


def test_a_process_is_told_from_a_later_one_of_its_number() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert not dead_runs.is_alive(ended.pid, time.time())
    assert dead_runs.is_alive(os.getpid(), time.time())
    assert not dead_runs.is_alive(os.getpid(), time.time() - 365 * 86_400)


@contextmanager
def listening(heard: list[dict[str, Any]]) -> Iterator[str]:
    """Somebody who takes messages, and the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_failures_are_posted() -> None:
    heard: list[dict[str, Any]] = []
    with listening(heard) as address:
        notify.post(address, {"job": "load"})
    assert heard == [{"job": "load"}]
    with pytest.raises(dg.Failure, match="nobody at"):
        notify.post(address, {})


def test_failed_runs_of_jobs_and_of_automation_are_told_of(platform: Platform) -> None:
    heard: list[dict[str, Any]] = []
    with listening(heard) as address:
        platform.config = replace(platform.config, failure_webhook=address)
        platform.reload()
        platform.drop("bad.jsonl", "{")
        failed = platform.load()
        assert not failed.success
        tell(platform, failed, failed.dagster_run)
        key = dg.AssetKey(["people", "embeddings", "Person.vector"])
        for chosen in (key, dg.AssetKey(["others", "topology"])):
            run = failed.dagster_run._replace(
                job_name="__ASSET_JOB", run_id=str(chosen), asset_selection=frozenset({chosen})
            )
            tell(platform, failed, run)
    assert [(one["job"], one["graph"], one["branch"]) for one in heard] == [
        ("people_load_job", "people", "main"),
        ("__ASSET_JOB", "people", "main"),
    ]
    assert "people_load" in heard[0]["problem"]
    assert heard[0]["run_id"] == failed.run_id


def tell(platform: Platform, failed: dg.ExecuteInProcessResult, run: dg.DagsterRun) -> None:
    """Have the hook look at a failed run."""
    hook = platform.defs.get_repository_def().get_sensor_def("people_failure_hook")
    context = dg.build_run_status_sensor_context(
        sensor_name="people_failure_hook",
        dagster_instance=platform.instance,
        dagster_run=run,
        dagster_event=failed.get_run_failure_event(),
    )
    hook(context.for_run_failure())


def test_a_drop_directory_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert LocalDrops(tmp_path / "nowhere").list() == []
