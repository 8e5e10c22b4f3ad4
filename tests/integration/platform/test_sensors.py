"""Sensors, tick by tick: what they ask for, what they say, and what a second tick does."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from omnigraph_assets.loads.run_records import LoadFile, begin_load
from omnigraph_assets.resources.landing import LOADED, QUARANTINE, LocalDrops
from omnigraph_core.errors import StorageError
from omnigraph_core.history.locks import schema_lock
from omnigraph_core.history.runs import RunStatus
from tests.support.later import Later
from tests.support.platform import PEOPLE, SCHEMA, WIDER, Platform, carry_out, look, tick
from tests.support.privileges import modes_hold

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import dagster as dg

    from omnigraph_assets import instance as instances
    from omnigraph_assets import orphaned_runs
    from omnigraph_assets.sensors import backoff, failures, landing
else:
    dg = Later("dagster")
    instances = Later("omnigraph_assets.instance")
    orphaned_runs = Later("omnigraph_assets.orphaned_runs")
    backoff = Later("omnigraph_assets.sensors.backoff")
    failures = Later("omnigraph_assets.sensors.failures")
    landing = Later("omnigraph_assets.sensors.landing")

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]


def names(request: dg.RunRequest) -> list[str]:
    (plan,) = request.run_config["ops"]["people_load"]["ops"].values()
    return [address.rpartition("/")[2] for address in plan["config"]["files"]]


def test_files_are_loaded_once_when_they_have_settled(platform: Platform) -> None:
    platform.config = replace(platform.config, settle_seconds=3600.0)
    platform.reload()
    platform.drop("people.jsonl", *PEOPLE)
    platform.drop("unfinished.jsonl.part", "{")
    platform.graph.branch_create("side")
    platform.drop("side.jsonl", *PEOPLE, branch="side")
    platform.drop("lost.jsonl", *PEOPLE, branch="nowhere")
    assert tick(platform, "drops_sensor").skip_message == "3 files have not settled yet"
    platform.config = replace(platform.config, settle_seconds=0.0)
    platform.reload()
    # A branch that is new is a partition with the same tick; only an instance on disk shows it.
    sensor = platform.defs.get_repository_def().get_sensor_def("people_drops_sensor")
    with dg.build_sensor_context(instance=platform.instance) as context:
        (added,) = sensor(context).dynamic_partitions_requests
    assert added.partition_keys == ["side"]
    platform.instance.add_dynamic_partitions("people_branches", ["side"])
    first = tick(platform, "drops_sensor")
    main, side = sorted(first.run_requests, key=lambda request: request.partition_key)
    assert (main.partition_key, names(main)) == ("main", ["people.jsonl"])
    assert (side.partition_key, names(side)) == ("side", ["side.jsonl"])
    # The same files on the same commit are never asked for under another key.
    again = tick(platform, "drops_sensor", first.cursor)
    assert main.run_key in [request.run_key for request in again.run_requests]
    assert carry_out(platform, main).success
    second = tick(platform, "drops_sensor", first.cursor)
    assert [request.partition_key for request in second.run_requests] == ["side"]
    assert (platform.directory / "drops" / LOADED / "main" / "people.jsonl").exists()
    # Dropped again, its run finds that the branch has it: nothing is loaded twice.
    head = platform.head()
    platform.drop("people.jsonl", *PEOPLE)
    repeated = next(r for r in look(platform).run_requests if r.partition_key == "main")
    assert carry_out(platform, repeated).success
    assert [request.partition_key for request in look(platform).run_requests] == ["side"]
    assert platform.head() == head


def test_odd_files_are_reported_once_and_keep_no_other_from_being_loaded(
    platform: Platform, tmp_path: Path
) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    platform.drop("secret.jsonl", *PEOPLE, branch="elsewhere")
    drops = platform.directory / "drops"
    main = drops / "main"
    (main / "folder.jsonl").mkdir()
    (main / "link.jsonl").symlink_to(drops / "elsewhere" / "secret.jsonl")
    (main / "loop.jsonl").symlink_to("loop.jsonl")
    (main / "two\nlines.jsonl").write_text("{}\n")
    (tmp_path / "target").mkdir()
    (drops / "linked").symlink_to(tmp_path / "target")
    os.mkfifo(main / "pipe.jsonl")
    (main / os.fsdecode(b"\xff.jsonl")).write_text("{}\n")
    platform.drop("shut.jsonl", *PEOPLE).chmod(0)
    platform.drop("people.jsonl", *PEOPLE, branch="shut").parent.chmod(0)
    for name in ("%20", "main%20", "__run__a", "%2F..", "a%0Ab"):
        platform.drop("people.jsonl", *PEOPLE, branch=name)
    with modes_hold():
        first = tick(platform, "drops_sensor")
    (request,) = first.run_requests
    assert (request.partition_key, names(request)) == ("main", ["people.jsonl"])
    said = sorted(event.description.rpartition("/")[2] for event in first.asset_events)
    assert said == [
        "\\udcff.jsonl' has a name that is not UTF-8",
        "a%0Ab' has a name with control characters",
        "folder.jsonl' is not a regular file",
        "link.jsonl' is a symbolic link",
        "linked' is a symbolic link",
        "loop.jsonl' is a symbolic link",
        "pipe.jsonl' is not a regular file",
        "shut' cannot be listed: Permission denied",
        "shut.jsonl' cannot be read: Permission denied",
        "two\\nlines.jsonl' has a name with control characters",
    ]
    assert carry_out(platform, request).success
    with modes_hold():
        second = tick(platform, "drops_sensor", first.cursor)
        assert (second.run_requests, second.asset_events) == ([], [])
        assert "left out: " in second.skip_message
        assert ", and 9 more" in second.skip_message
        (main / "pipe.jsonl").unlink()
        (main / "pipe.jsonl").symlink_to("nowhere")
        (event,) = tick(platform, "drops_sensor", second.cursor).asset_events
    assert "pipe.jsonl' is a symbolic link" in event.description


def test_of_many_odd_files_the_first_are_reported(platform: Platform) -> None:
    folder = platform.drop("people.jsonl", *PEOPLE).parent
    for number in range(100):
        (folder / f"{number:03}.jsonl").mkdir()
    first = tick(platform, "drops_sensor")
    assert len(first.asset_events) == 32
    assert len(first.cursor) < 1000
    assert tick(platform, "drops_sensor", first.cursor).asset_events == []


def test_only_the_types_of_a_small_file_are_asked_for(platform: Platform) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    (request,) = look(platform).run_requests
    assert [key.path[-1] for key in request.asset_selection] == ["Knows", "Person", "manifest"]
    result = carry_out(platform, request)
    staged = [event.step_key for event in result.filter_events(lambda e: e.is_step_success)]
    assert [key for key in staged if "stage_" in key] == [
        "people_load.people_stage_node[Person]",
        "people_load.people_stage_edge[Knows]",
    ]
    platform.drop("odd.jsonl", *PEOPLE[:2], '{"type": "Persn", "data": {"name": "eve"}}')
    (request,) = look(platform).run_requests
    assert request.asset_selection is None  # whatever is wrong with it, the load reports


def test_many_small_files_are_not_opened_by_the_sensor(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    usual = LocalDrops.open
    monkeypatch.setattr(
        LocalDrops, "open", lambda store, file: opened.append(file) or usual(store, file)
    )
    for number in range(landing._LOOKED_AT + 1):
        platform.drop(f"{number}.jsonl", {"type": "Company", "data": {"name": str(number)}})
    (request,) = look(platform).run_requests
    assert (opened, request.asset_selection) == ([], None)


@pytest.mark.parametrize("problem", [PermissionError("no"), StorageError("no")])
def test_a_file_that_cannot_be_read_is_reported_by_its_load_not_by_the_sensor(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def refuse(*_: object) -> object:
        raise problem

    platform.drop("people.jsonl", *PEOPLE)
    monkeypatch.setattr(LocalDrops, "open", refuse)
    (request,) = look(platform).run_requests
    assert request.asset_selection is None


def test_nothing_is_opened_while_nothing_changes(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    usual = type(platform.config).open
    monkeypatch.setattr(
        type(platform.config), "open", lambda config: opened.append(config) or usual(config)
    )
    assert tick(platform, "drops_sensor").skip_message == "no file waits"
    platform.drop("lost.jsonl", *PEOPLE, branch="nowhere")
    first = tick(platform, "drops_sensor")
    assert "there is no branch `nowhere`" in first.skip_message
    assert len(opened) == 1
    second = tick(platform, "drops_sensor", first.cursor)
    assert (second.skip_message, second.cursor) == (first.skip_message, first.cursor)
    assert len(opened) == 1
    for number in range(50):
        platform.drop(f"{number}.jsonl", *PEOPLE, branch="nowhere")
    third = tick(platform, "drops_sensor", second.cursor)
    assert len(opened) == 2
    assert len(third.cursor) < 700  # whatever waits
    idle = tick(platform, "publish_guard")
    assert idle.skip_message == "no load was left"
    before = len(opened)
    assert tick(platform, "publish_guard", idle.cursor).skip_message == "no run has moved"
    assert len(opened) == before


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


def test_a_bad_file_under_two_names_does_not_hold_up_the_good_ones(platform: Platform) -> None:
    lost = {"edge": "Knows", "from": "ann", "to": "zed"}
    platform.drop("a.jsonl", lost)
    platform.drop("b.jsonl", lost)
    platform.drop("c.jsonl", *PEOPLE)
    for _ in range(8):
        result = look(platform)
        if not result.run_requests:
            break
        carry_out(platform, result.run_requests[0])
    assert platform.rows("node:Person") == 2
    kept = platform.directory / "drops" / QUARANTINE / "main"
    assert {path.name for path in kept.glob("*.jsonl")} == {"a.jsonl", "b.jsonl"}
    assert not list((platform.directory / "drops" / "main").iterdir())


def test_a_file_is_not_put_away_for_types_that_were_chosen_by_hand(platform: Platform) -> None:
    path = platform.drop("people.jsonl", *PEOPLE)
    knows = dg.AssetKey(["people", "edges", "Knows"])
    assert not platform.load(asset_selection=[knows]).success, "its ends are not chosen"
    (request,) = look(platform).run_requests
    assert path.exists()
    assert carry_out(platform, request).success
    assert (platform.rows("node:Person"), platform.rows("edge:Knows")) == (2, 1)
    # What is left of a file, and is refused, is refused as a whole.
    person = dg.AssetKey(["people", "nodes", "Person"])
    lost = {"edge": "Knows", "from": "ann", "to": "zed"}
    path = platform.drop("lost.jsonl", {"type": "Person", "data": {"name": "cid"}}, lost)
    assert platform.load(asset_selection=[person]).success
    (request,) = look(platform).run_requests
    assert not carry_out(platform, request).success
    assert look(platform).run_requests == []
    assert not path.exists()


def test_the_rest_of_a_file_that_is_bad_does_not_hold_up_other_files(platform: Platform) -> None:
    lost = {"edge": "Knows", "from": "cid", "to": "zed"}
    platform.drop("a.jsonl", {"type": "Person", "data": {"name": "cid"}}, lost)
    person = dg.AssetKey(["people", "nodes", "Person"])
    assert platform.load(asset_selection=[person]).success
    platform.drop("b.jsonl", {"type": "Company", "data": {"name": "hive"}})
    asked = []
    for _ in range(4):
        result = look(platform)
        if not result.run_requests:
            break
        asked.append("".join(name[0] for name in names(result.run_requests[0])))
        carry_out(platform, result.run_requests[0])
    assert asked == ["ab", "b"]
    assert platform.rows("node:Company") == 1
    kept = platform.directory / "drops" / QUARANTINE / "main"
    assert {path.name for path in kept.glob("*.jsonl")} == {"a.jsonl"}
    assert not list((platform.directory / "drops" / "main").iterdir())


def test_files_of_one_content_are_loaded_once_and_archived_together(platform: Platform) -> None:
    platform.config = replace(platform.config, mode="append")
    platform.reload()
    for name in ("a.jsonl", "b.jsonl"):
        platform.drop(name, *PEOPLE)
    assert platform.load().success
    assert (platform.rows("node:Person"), platform.rows("edge:Knows")) == (2, 1)
    assert not list((platform.directory / "drops" / "main").iterdir())


def test_files_outlast_an_outage(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    keys = []
    for _ in range(backoff.ATTEMPTS):
        (request,) = look(platform).run_requests
        keys.append(request.run_key)
        run = dg.DagsterRun("people_load_job", str(uuid4()), tags=request.tags)
        platform.instance.add_run(run)
        platform.instance.report_run_failed(run)
    assert len(set(keys)) == backoff.ATTEMPTS
    reason = look(platform).skip_message
    assert "failed 3 times: look at their runs; they are tried again in 1 min" in reason
    monkeypatch.setattr("omnigraph_assets.sensors.backoff.BACKOFF_SECONDS", (0.0,))
    (request,) = look(platform).run_requests
    assert request.run_key not in keys
    assert carry_out(platform, request).success


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


def test_a_publish_whose_run_died_is_reported_with_the_checks_it_has_passed(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.drop("bad.jsonl", {"type": "Person", "data": {"name": "cid", "age": 200}})
    assert not platform.load().success
    platform.drop("people.jsonl", *PEOPLE)

    def die(*_: object) -> None:
        raise RuntimeError("stands for a SIGKILL after the publish")

    with monkeypatch.context() as patch:
        patch.setattr("omnigraph_assets.assets.load.table_outputs", die)
        assert not platform.load().success
    assert platform.rows("node:Person") == 2
    monkeypatch.setattr("omnigraph_assets.sensors.publish._GRACE_US", 0)
    first = tick(platform, "publish_guard")
    person = dg.AssetKey(["people", "nodes", "Person"])
    keys = [
        dg.AssetCheckKey(person, "staged_rows"),
        dg.AssetCheckKey(dg.AssetKey(["people", "manifest"]), "staged_records"),
    ]
    for key in keys:
        (found,) = platform.instance.event_log_storage.get_asset_check_partition_info([key])
        assert found.partition_key == "main"
        assert found.latest_execution_status.value == "SUCCEEDED"
        assert found.is_current
    # It is reported once.
    wanted = dg.AssetRecordsFilter(person, asset_partitions=["main"])
    for cursor in (first.cursor, None):
        tick(platform, "publish_guard", cursor)
        assert len(platform.instance.fetch_materializations(wanted, limit=9).records) == 1


def test_a_load_that_was_left_outlasts_an_outage(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    with schema_lock(platform.graph._context.store, "main", actor="somebody"):
        platform.load()
    cursor = None
    keys = set()
    for number in range(9):
        found = tick(platform, "publish_guard", cursor)
        cursor = found.cursor
        if not found.run_requests:
            assert number == backoff.ATTEMPTS
            assert "failed 3 times: look at its runs; it is tried again in 1 min" in (
                found.skip_message
            )
            monkeypatch.setattr("omnigraph_assets.sensors.backoff.BACKOFF_SECONDS", (0.0,))
            continue
        (request,) = found.run_requests
        keys.add(request.run_key)
        run = dg.DagsterRun("people_publish_job", str(uuid4()), tags=request.tags)
        platform.instance.add_run(run)
        platform.instance.report_run_failed(run)
    assert len(keys) == 8  # and so on
    (request,) = tick(platform, "publish_guard", cursor).run_requests
    result = platform.run("publish", run_config=request.run_config, tags=dict(request.tags))
    assert result.success
    assert platform.rows("node:Person") == 2


def test_a_load_of_a_branch_that_is_gone_is_given_up(platform: Platform) -> None:
    platform.graph.branch_create("side")
    platform.instance.add_dynamic_partitions("people_branches", ["side"])
    platform.drop("people.jsonl", *PEOPLE, branch="side")
    with schema_lock(platform.graph._context.store, "side", actor="somebody"):
        platform.load("side")
    (run,) = platform.graph.list_runs(status=RunStatus.RUNNING)
    platform.graph.abort_run(run.run_id)
    platform.graph.branch_delete("side")
    synced = tick(platform, "commits")
    (gone,) = synced.dynamic_partitions_requests
    assert gone.partition_keys == ["side"]
    assert "there is no branch `side`" in look(platform).skip_message
    assert not platform.load("side").success


def test_partitions_follow_branches(platform: Platform) -> None:
    platform.graph.branch_create("a/b")
    platform.instance.add_dynamic_partitions("people_branches", ["invented"])
    requests = tick(platform, "commits").dynamic_partitions_requests
    assert [request.partition_keys for request in requests] == [["a/b"], ["invented"]]


def test_commits_of_others_are_shown_and_own_ones_are_not_repeated(platform: Platform) -> None:
    first = tick(platform, "commits")
    platform.graph.load(b'{"type": "Company", "data": {"name": "hive"}}', actor="somebody")
    second = tick(platform, "commits", first.cursor)
    shown = [(event.asset_key.path[-1], event.partition) for event in second.asset_events]
    assert shown == [("Company", "main"), ("manifest", "main")]
    platform.drop("people.jsonl", *PEOPLE)
    assert platform.load().success
    third = tick(platform, "commits", second.cursor)
    assert third.asset_events == []
    assert json.loads(third.cursor)["heads"] == {"main": platform.head()}


COMPANY = b'{"type": "Company", "data": {"name": "hive"}}'


def shown(result: Any) -> list[tuple[str, str]]:
    return [(event.asset_key.path[-1], event.partition) for event in result.asset_events]


def test_a_new_branch_shows_what_others_changed_since_it_was_forked(platform: Platform) -> None:
    platform.graph.load("\n".join(map(json.dumps, PEOPLE)).encode(), actor="somebody")
    first = tick(platform, "commits")
    assert ("Person", "main") in shown(first)
    assert not any("preview" in event.metadata for event in first.asset_events)
    for name in ("still", "moved"):
        platform.graph.branch_create(name)
    platform.graph.load(COMPANY, branch="moved", actor="somebody")
    second = tick(platform, "commits", first.cursor)
    assert shown(second) == [("Company", "moved"), ("manifest", "moved")]
    # The job that merges shows no table.
    with platform.config.open() as graph:
        graph.branch_merge("moved")
    third = tick(platform, "commits", second.cursor)
    assert shown(third) == [("Company", "main"), ("manifest", "main")]


def test_a_tick_without_time_goes_on_with_the_next_branch(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    branches = ["a", "b", "main"]
    for branch in branches:
        if branch != "main":
            platform.graph.branch_create(branch)
        platform.graph.load(COMPANY, branch=branch, actor="somebody")
    monkeypatch.setattr("omnigraph_assets.sensors.commits.BUDGET_SECONDS", 0.0)
    cursor, seen = None, []
    for _ in branches:
        result = tick(platform, "commits", cursor)
        seen.append({branch for _, branch in shown(result)})
        cursor = result.cursor
    assert seen == [{branch} for branch in branches]
    assert json.loads(cursor)["heads"] == {branch: platform.head(branch) for branch in branches}
    assert shown(tick(platform, "commits", cursor)) == []


def test_a_damaged_branch_does_not_hide_the_others(platform: Platform) -> None:
    platform.graph.branch_create("a")
    shutil.rmtree(platform.directory / "graph" / platform.graph.branch_get("a").manifest)
    platform.graph.load(COMPANY, actor="somebody")
    assert ("Company", "main") in shown(tick(platform, "commits"))


def test_another_schema_refreshes_the_definitions(platform: Platform) -> None:
    assert tick(platform, "commits").run_requests == []
    platform.graph.schema_apply(WIDER)
    (request,) = tick(platform, "commits").run_requests
    assert platform.run("refresh", tags=dict(request.tags)).success
    assert tick(platform, "commits").run_requests == [], "the definitions are reloaded by hand"


def test_a_refresh_is_asked_for_again_when_it_failed_or_a_schema_comes_back(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    def requested() -> list[dg.RunRequest]:
        return list(tick(platform, "commits").run_requests or ())

    keys = []
    platform.graph.schema_apply(WIDER)
    (request,) = requested()
    keys.append(request.run_key)
    run = dg.DagsterRun("people_refresh_job", str(uuid4()), tags=dict(request.tags))
    platform.instance.add_run(run)
    assert requested() == [], "a refresh is under way"
    platform.instance.report_run_failed(run)
    assert requested() == [], "it waits after a failure"
    monkeypatch.setattr("omnigraph_assets.sensors.schema.FIRST_WAIT", 0.0)
    for schema in (WIDER, SCHEMA, WIDER):
        platform.graph.schema_apply(schema)
        (request,) = requested()
        keys.append(request.run_key)
        assert platform.run("refresh", tags=dict(request.tags)).success
        platform.reload()
        assert requested() == []
    assert len(set(keys)) == 4, "Dagster runs no key twice"


def test_a_planned_load_that_nobody_works_on_is_planned_again(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = platform.drop("people.jsonl", *PEOPLE)
    store = LocalDrops(path.parent.parent)
    (file,) = store.list()
    schema = platform.graph.schema_show().hash
    files = {file.address: LoadFile("0" * 64, file.id)}
    run = begin_load(platform.graph, platform.config, "main", files, None, schema)
    assert "loads under way" in look(platform).skip_message
    monkeypatch.setattr("omnigraph_assets.sensors.landing._ABANDONED_US", -1)
    (request,) = look(platform).run_requests
    assert platform.graph.get_run(run.run_id).status is RunStatus.ABORTED
    assert carry_out(platform, request).success


def test_runs_of_another_graph_hold_up_no_branch(platform: Platform) -> None:
    tags = {instances.PARTITION: "main"}

    def run(job: str, *keys: str) -> dg.DagsterRun:
        chosen = frozenset(dg.AssetKey(key.split("/")) for key in keys) or None
        return dg.DagsterRun(job, str(uuid4()), asset_selection=chosen, tags=tags)

    platform.drop("people.jsonl", *PEOPLE)
    for other in (
        run("others_load_job"),
        run("__ASSET_JOB", "others/nodes/Person"),
    ):
        platform.instance.add_run(other)
    assert len(look(platform).run_requests) == 1
    for own in (
        run("people_load_job"),
        run("people_load_job", "people/nodes/Person"),
        run("__ASSET_JOB", "others/topology", "people/topology"),
    ):
        platform.instance.add_run(own)
        assert look(platform).skip_message == "a run works on `main`"
        platform.instance.report_run_failed(own)
        assert len(look(platform).run_requests) == 1


def test_ticks_of_a_process_share_one_instance() -> None:
    with dg.instance_for_test() as instance:
        opened = []
        for _ in range(2):
            with dg.build_sensor_context(instance_ref=instance.get_ref()) as context:
                opened.append(instances.instance_of(context))
        assert opened[0] is opened[1]
        opened[0].add_dynamic_partitions("branches", ["main"])  # the context has not closed it
        assert instance.get_dynamic_partitions("branches") == ["main"]
        with dg.build_sensor_context(instance=instance) as context:
            assert instances.instance_of(context) is instance


def test_a_process_is_told_from_a_later_one_of_its_number() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert not orphaned_runs.is_alive(ended.pid, time.time())
    assert orphaned_runs.is_alive(os.getpid(), time.time())
    assert not orphaned_runs.is_alive(os.getpid(), time.time() - 365 * 86_400)


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
        failures.post(address, {"job": "load"})
    assert heard == [{"job": "load"}]
    with pytest.raises(dg.Failure, match="nobody at"):
        failures.post(address, {})


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
