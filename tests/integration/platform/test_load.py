"""A load is published whole, once, or not at all; what is materialised is what is published."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from omnigraph_assets.loads import run_records
from omnigraph_assets.resources.landing import LOADED, LocalDrops, ignore_problem
from omnigraph_core.failpoints import arm
from omnigraph_core.history.locks import schema_lock
from omnigraph_core.history.runs import RunStatus
from omnigraph_core.settings import PUBLISH_LEASE
from tests.support.later import Later
from tests.support.platform import PEOPLE, SCHEMA, WIDER, Platform, carry_out, look, told
from tests.support.privileges import modes_hold

if TYPE_CHECKING:
    import dagster as dg

    from omnigraph_assets.assets import load
    from omnigraph_assets.config import GraphConfig
    from omnigraph_assets.resources.landing import DroppedFile, OnProblem
else:
    dg, load = Later("dagster"), Later("omnigraph_assets.assets.load")

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]


def failed_checks(result: dg.ExecuteInProcessResult) -> set[str]:
    return {
        f"{check.asset_key.to_user_string()}:{check.check_name}"
        for check in result.get_asset_check_evaluations()
        if not check.passed
    }


def test_a_load_is_one_publish_and_what_it_changed_is_materialised(platform: Platform) -> None:
    before = platform.graph.snapshot().manifest_version
    platform.drop("people.jsonl", *PEOPLE)
    result = platform.load()
    assert result.success
    after = platform.graph.snapshot()
    assert after.manifest_version == before + 1
    found = told(result)
    assert list(found) == ["people/nodes/Person", "people/edges/Knows", "people/manifest"]
    person = found["people/nodes/Person"]
    assert person["dagster/row_count"] == 2
    assert person["commit_id"] == after.commit.graph_commit_id
    assert "keeps bees" in person["preview"]
    assert person["fragments"] == 1
    assert person["bytes"] > 500
    assert person["index_coverage"] == 0.0
    assert found["people/manifest"]["manifest_version"] == after.manifest_version
    assert len(result.get_asset_check_evaluations()) == 3  # Person, Knows, records
    assert failed_checks(result) == set()
    # The same content again, under another name: nothing waits, nothing is published.
    platform.drop("again.jsonl", *PEOPLE)
    repeated = platform.load()
    assert repeated.success
    assert told(repeated) == {}
    assert platform.head() == after.commit.graph_commit_id


def test_how_much_there_is_and_how_much_of_it_indexes_cover_is_told(platform: Platform) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    before = told(platform.load())["people/nodes/Person"]
    assert platform.run("embeddings", "main").success
    assert platform.run("indexes", "main").success
    platform.drop("more.jsonl", {"type": "Person", "data": {"name": "cid"}})
    after = told(platform.load())["people/nodes/Person"]
    assert 0.5 < after["index_coverage"] < 1.0
    assert after["bytes"] > before["bytes"]
    assert after["fragments"] > before["fragments"]


def test_the_log_of_a_run_tells_how_far_it_is(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph_assets.metadata.PROGRESS_SECONDS", 0.0)
    platform.drop("people.jsonl", *PEOPLE)
    run_id = platform.load().run_id
    said = [entry.user_message for entry in platform.instance.all_logs(run_id)]
    assert "3 rows read, 3 rows validated, 3 rows staged" in said


def test_refused_rows_are_shown_and_nothing_is_published(platform: Platform) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    platform.load()
    before = platform.head()
    bad = platform.drop("bad.jsonl", {"type": "Person", "data": {"name": "cid", "age": 200}}, "{")
    lost = platform.drop("lost.jsonl", {"edge": "Knows", "from": "ann", "to": "zed"})
    result = platform.load()
    assert not result.success
    assert platform.head() == before
    assert told(result) == {}
    assert failed_checks(result) == {
        "people/nodes/Person:staged_rows",
        "people/edges/Knows:staged_rows",
        "people/manifest:staged_records",
    }
    shown = {
        check.asset_key.path[-1]: check.metadata["violating_rows"].records
        for check in result.get_asset_check_evaluations()
        if not check.passed
    }
    assert [record.data["rule"] for record in shown["Person"]] == ["range"]
    assert "200 is not in 0..150" in str(shown["Person"][0].data["message"])
    assert "bad.jsonl:1" in str(shown["Person"][0].data["place"])
    assert "zed" in str(shown["Knows"][0].data["message"])
    # What is bad by itself is put away with the reason; what may only lack others stays.
    assert not bad.exists()
    assert lost.exists()
    reason = platform.directory / "drops" / "_quarantine" / "main" / "bad.jsonl.reason.json"
    assert "range" in reason.read_text()
    assert platform.graph.list_runs(status=RunStatus.RUNNING) == ()


def test_refused_rows_are_shown_though_their_file_cannot_be_quarantined(
    platform: Platform,
) -> None:
    bad = platform.drop("bad.jsonl", {"type": "Person", "data": {"name": "cid", "age": 200}})
    bad.parent.chmod(0o500)
    with modes_hold():
        result = platform.load()
        assert failed_checks(result) == {"people/nodes/Person:staged_rows"}
        assert bad.exists()
        # Nor is it tried again and again: the sensor says why it stays.
        left = look(platform)
        assert left.run_requests == []
        assert "bad.jsonl' cannot be moved: [Errno 13]" in left.skip_message
        assert len(left.asset_events) == 1
        # A branch of others does not wait for it.
        platform.graph.branch_create("side")
        platform.instance.add_dynamic_partitions("people_branches", ["side"])
        platform.drop("people.jsonl", *PEOPLE, branch="side")
        (request,) = look(platform).run_requests
        assert request.partition_key == "side"
    bad.parent.chmod(0o700)
    assert len(look(platform).asset_events) == 1
    assert not bad.exists()


def test_a_load_that_has_to_wait_is_published_later_and_once(platform: Platform) -> None:
    before = platform.head()
    platform.drop("people.jsonl", *PEOPLE)
    with schema_lock(platform.graph._context.store, "main", actor="somebody"):
        result = platform.load()
        assert result.success
        assert told(result) == {}
        assert platform.head() == before
        (run,) = platform.graph.list_runs(status=RunStatus.RUNNING)
        heard: list[str] = []
        assert (
            load.publish_guarded(platform.graph, platform.config, run.run_id, heard.append) is None
        )
        assert "somebody is changing the schema" in heard[0]
    published = load.publish_guarded(platform.graph, platform.config, run.run_id, heard.append)
    assert published is not None
    assert published.commit_id == platform.head()
    assert (
        load.publish_guarded(platform.graph, platform.config, run.run_id, heard.append) is not None
    )
    assert platform.head() == published.commit_id
    assert platform.rows("node:Person") == 2


def test_a_commit_that_nobody_recorded_is_told_of_when_the_step_is_repeated(
    platform: Platform,
) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    with arm("run.after_merge", "error"):
        result = platform.load()
    assert result.success
    assert list(told(result)) == ["people/nodes/Person", "people/edges/Knows", "people/manifest"]
    assert platform.graph.list_runs(status=RunStatus.RUNNING) == ()


def test_a_commit_that_nobody_recorded_is_not_loaded_again(platform: Platform) -> None:
    platform.config = replace(platform.config, mode="append")
    platform.reload()
    platform.drop("people.jsonl", *PEOPLE)
    assert platform.load().success
    platform.drop("more.jsonl", {"edge": "Knows", "from": "bob", "to": "ann"})
    with schema_lock(platform.graph._context.store, "main", actor="somebody"):
        assert platform.load().success
    (run,) = platform.graph.list_runs(status=RunStatus.RUNNING)
    with arm("run.after_merge", "error"), pytest.raises(Exception, match="failpoint"):
        load.publish_guarded(platform.graph, platform.config, run.run_id, print)
    assert platform.graph.get_run(run.run_id).status is RunStatus.RUNNING
    platform.drop("company.jsonl", {"type": "Company", "data": {"name": "hive"}})
    assert platform.load().success
    assert (platform.rows("node:Company"), platform.rows("edge:Knows")) == (1, 2)
    # Nor is it lost: the guard records it.
    assert load.publish_guarded(platform.graph, platform.config, run.run_id, print) is not None
    assert platform.graph.get_run(run.run_id).status is RunStatus.PUBLISHED


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_load_that_waits_for_long_is_of_the_files_it_was_planned_with(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, is_changed: bool
) -> None:
    path = platform.drop("people.jsonl", *PEOPLE)
    with schema_lock(platform.graph._context.store, "main", actor="somebody"):
        assert platform.load().success
    (run,) = platform.graph.list_runs(status=RunStatus.RUNNING)
    if is_changed:
        platform.drop(path.name, {"type": "Person", "data": {"name": "cid"}})
    later = time.time() + PUBLISH_LEASE.read()
    with monkeypatch.context() as patch:  # only what was read is old
        old = SimpleNamespace(time=lambda: later)
        patch.setattr("omnigraph_core.spark.ingest.kept.time", old)
        if is_changed:
            with pytest.raises(dg.Failure, match="changed since"):
                load.publish_guarded(platform.graph, platform.config, run.run_id, print)
        else:
            load.publish_guarded(platform.graph, platform.config, run.run_id, print)
    assert platform.rows("node:Person") == (0 if is_changed else 2)
    assert platform.load().success  # what is there now
    assert platform.rows("node:Person") == (1 if is_changed else 2)


@pytest.mark.parametrize("step", ["stage_node", "audit"])
def test_what_is_read_again_by_a_step_is_what_was_planned(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = platform.drop("people.jsonl", *PEOPLE)
    usual = load.open_graph
    later = time.time() + PUBLISH_LEASE.read()

    def open_later(context: dg.OpExecutionContext, config: GraphConfig) -> object:
        """Before a step the file is written anew, and what was read becomes old."""
        if step in context.op.name and path.exists():
            platform.drop(path.name, {"type": "Person", "data": {"name": "cid"}})
            old = SimpleNamespace(time=lambda: later)
            patch.setattr("omnigraph_core.spark.ingest.kept.time", old)
        return usual(context, config)

    with monkeypatch.context() as patch:
        patch.setattr("omnigraph_assets.assets.load.open_graph", open_later)
        result = platform.load()
    (failed,) = [event.step_key or "" for event in result.all_events if event.is_step_failure]
    assert step in failed
    (run,) = platform.graph.list_runs()
    assert run.status is RunStatus.ABORTED
    assert platform.load().success  # what is there now
    assert platform.rows("node:Person") == 1


def test_definitions_of_another_schema_refuse_to_run(platform: Platform) -> None:
    platform.graph.schema_apply(WIDER)
    platform.drop("people.jsonl", *PEOPLE)
    result = platform.load()
    assert not result.success
    failure = result.failure_data_for_node("people_load.people_plan")
    assert failure is not None
    assert failure.error is not None
    assert "reload the definitions" in failure.error.message
    assert platform.graph.list_runs() == ()
    platform.reload()
    assert platform.load().success
    assert platform.rows("node:Person") == 2


def test_a_schema_that_changes_before_the_publish_rejects_the_load(platform: Platform) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    with schema_lock(platform.graph._context.store, "main", actor="somebody"):
        platform.load()
    (run,) = platform.graph.list_runs(status=RunStatus.RUNNING)
    platform.graph.schema_apply(WIDER)
    before = platform.head()
    with pytest.raises(dg.Failure, match="planned under the schema"):
        load.publish_guarded(platform.graph, platform.config, run.run_id, print)
    assert platform.graph.get_run(run.run_id).status is RunStatus.ABORTED
    assert platform.head() == before
    platform.reload()
    assert platform.load().success  # its file may be planned again
    assert platform.rows("node:Person") == 2


def test_types_can_be_loaded_alone_and_the_rest_later(platform: Platform) -> None:
    company = {"type": "Company", "data": {"name": "hive"}}
    path = platform.drop("people.jsonl", *PEOPLE, company)
    before = platform.graph.snapshot().manifest_version
    alone = platform.load(asset_selection=[dg.AssetKey(["people", "nodes", "Company"])])
    assert alone.success
    assert list(told(alone)) == ["people/nodes/Company", "people/manifest"]
    assert (platform.rows("node:Company"), platform.rows("node:Person")) == (1, 0)
    assert path.exists()  # others of its records wait
    # The same once more: the branch has that type of the file.
    assert told(platform.load(asset_selection=[dg.AssetKey(["people", "nodes", "Company"])])) == {}
    rest = platform.load()
    assert list(told(rest)) == ["people/nodes/Person", "people/edges/Knows", "people/manifest"]
    assert not path.exists()
    assert platform.graph.snapshot().manifest_version == before + 2
    # Dropped again, nothing of it is loaded again.
    platform.drop("again.jsonl", *PEOPLE, company)
    assert told(platform.load()) == {}
    assert platform.graph.snapshot().manifest_version == before + 2


def test_one_type_of_more_files_than_fit_a_load_is_loaded_by_several(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph_assets.loads.plan.BATCH", 3)
    for number in range(5):
        person = {"type": "Person", "data": {"name": f"p{number}"}}
        company = {"type": "Company", "data": {"name": f"c{number}"}}
        platform.drop(f"{number}.jsonl", person, company)
    alone = [dg.AssetKey(["people", "nodes", "Person"])]
    rows = []
    for _ in range(3):
        assert platform.load(asset_selection=alone).success
        rows.append((platform.rows("node:Person"), platform.rows("node:Company")))
    assert rows == [(3, 0), (5, 0), (5, 0)]
    assert platform.load().success
    assert platform.load().success
    assert platform.rows("node:Company") == 5


def test_edges_alone_wait_for_their_ends(platform: Platform) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    knows = dg.AssetKey(["people", "edges", "Knows"])
    refused = platform.load(asset_selection=[knows])
    assert not refused.success
    assert failed_checks(refused) == {"people/edges/Knows:staged_rows"}
    assert platform.load(asset_selection=[dg.AssetKey(["people", "nodes", "Person"])]).success
    assert list(told(platform.load(asset_selection=[knows]))) == [
        "people/edges/Knows",
        "people/manifest",
    ]


def test_a_load_of_three_types_has_three_stage_steps_and_few_events(platform: Platform) -> None:
    many = "".join(f"node N{number} {{ name: String @key }}\n" for number in range(30))
    platform.graph.schema_apply(SCHEMA + many)
    platform.reload()
    platform.drop("people.jsonl", *PEOPLE, {"type": "N7", "data": {"name": "seven"}})
    (request,) = look(platform).run_requests
    result = carry_out(platform, request)
    assert result.success
    steps = [event.step_key or "" for event in result.all_events if event.is_step_success]
    assert sorted(key for key in steps if "_stage_" in key) == [
        "people_load.people_stage_edge[Knows]",
        "people_load.people_stage_node[N7]",
        "people_load.people_stage_node[Person]",
    ]
    assert len(result.all_events) <= 80, "what the daemon and the launcher log comes on top"
    (commit, *_) = platform.graph.list_commits("main")
    assert commit.operation == "load"
    assert commit.parent_commit_id == platform.graph.list_commits("main")[1].graph_commit_id


def test_an_empty_file_is_archived_without_a_commit(platform: Platform) -> None:
    before = platform.head()
    path = platform.drop("empty.jsonl", "")
    result = platform.load()
    assert result.success
    assert (told(result), platform.head()) == ({}, before)
    assert not path.exists()


def test_a_failed_check_of_a_branch_stays_and_that_of_another_passes(platform: Platform) -> None:
    platform.graph.branch_create("side")
    platform.instance.add_dynamic_partitions("people_branches", ["side"])
    platform.drop("bad.jsonl", {"type": "Person", "data": {"name": "cid", "age": 200}})
    assert not platform.load().success
    platform.drop("people.jsonl", *PEOPLE, branch="side")
    assert platform.load("side").success
    key = dg.AssetCheckKey(dg.AssetKey(["people", "nodes", "Person"]), "staged_rows")
    storage = platform.instance.event_log_storage
    records = {info.partition_key: info for info in storage.get_asset_check_partition_info([key])}
    assert all(info.is_current for info in records.values())
    found = {name: info.latest_execution_status.value for name, info in records.items()}
    assert found == {"main": "FAILED", "side": "SUCCEEDED"}


def test_a_file_that_is_written_anew_while_it_is_planned_is_not_taken_for_loaded(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    assert platform.load().success
    path = platform.drop("again.jsonl", *PEOPLE)
    usual = load.plan_files

    def plan_slowly(*given: object, **more: object) -> object:
        planned = usual(*given, **more)
        platform.drop("again.jsonl", {"type": "Person", "data": {"name": "cid"}})
        return planned

    with monkeypatch.context() as patch:
        patch.setattr("omnigraph_assets.assets.load.plan_files", plan_slowly)
        assert platform.load().success
    assert path.exists()
    assert platform.load().success
    assert platform.rows("node:Person") == 3


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_file_that_is_written_anew_while_it_is_archived_is_not_lost(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    path = platform.drop("people.jsonl", *PEOPLE)
    usual = Path.rename

    def rename_late(moved: Path, target: Path) -> Path:
        if moved == path and moved.stat().st_size > 100:
            if is_replaced:
                path.unlink()
            platform.drop(path.name, {"type": "Person", "data": {"name": "cid"}})
        return usual(moved, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename_late)
        assert platform.load().success
    assert "cid" in path.read_text()
    assert not list((platform.directory / "drops" / LOADED / "main").iterdir())
    assert platform.load().success
    assert platform.rows("node:Person") == 3


def test_files_that_cannot_be_read_or_moved_keep_no_others_from_being_loaded(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = platform.drop("a.jsonl", *PEOPLE).parent
    company = {"type": "Company", "data": {"name": "hive"}}
    platform.drop("c.jsonl", company)
    usual = LocalDrops.list

    def list_and_change(
        store: LocalDrops, on_problem: OnProblem = ignore_problem
    ) -> list[DroppedFile]:
        """A file becomes unreadable, one goes, and none can be moved, after they were listed."""
        found = usual(store, on_problem)
        shut.chmod(0)
        folder.chmod(0o700)
        gone.unlink(missing_ok=True)
        folder.chmod(0o500)
        return found

    with monkeypatch.context() as patch, modes_hold():
        shut, gone = platform.drop("b.jsonl", *PEOPLE), platform.drop("d.jsonl", company)
        patch.setattr(LocalDrops, "list", list_and_change)
        result = platform.load()
        assert result.success
        assert (platform.rows("node:Person"), platform.rows("node:Company")) == (2, 1)
        said = [entry.user_message for entry in platform.instance.all_logs(result.run_id)]
        assert any("b.jsonl' cannot be read: [Errno 13]" in text for text in said)
        assert any("d.jsonl' cannot be read: [Errno 2]" in text for text in said)
        assert any("a.jsonl' cannot be moved: [Errno 13]" in text for text in said)
        # What was loaded and cannot be moved keeps nothing from being loaded either.
        folder.chmod(0o700)
        platform.drop("e.jsonl", {"type": "Company", "data": {"name": "mill"}})
        assert platform.load().success
        assert platform.rows("node:Company") == 2
        shut.chmod(0o600)
        alone = platform.load(plan={"config": {"files": [str(shut)]}})
        assert not alone.success  # nothing else is to be loaded: the run says why
    folder.chmod(0o700)
    shut.chmod(0o600)
    assert platform.load().success
    assert not list(folder.iterdir())


def test_a_file_that_goes_while_it_is_planned_is_planned_no_more(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.drop("a.jsonl", *PEOPLE)
    gone = platform.drop("b.jsonl", {"type": "Company", "data": {"name": "hive"}})
    usual = load.begin_load

    def begin_late(*given: object) -> object:
        gone.unlink()
        return usual(*given)

    with monkeypatch.context() as patch:
        patch.setattr("omnigraph_assets.assets.load.begin_load", begin_late)
        assert not platform.load().success
    (request,) = look(platform).run_requests  # at once
    assert carry_out(platform, request).success
    assert platform.rows("node:Person") == 2


def test_nothing_to_load_is_no_failure_and_no_commit(platform: Platform) -> None:
    before = platform.head()
    result = platform.load()
    assert result.success
    assert told(result) == {}
    assert platform.head() == before


def test_branches_are_loaded_by_themselves(platform: Platform) -> None:
    platform.graph.branch_create("team/import")
    platform.instance.add_dynamic_partitions("people_branches", ["team/import"])
    main = platform.head()
    platform.drop("people.jsonl", *PEOPLE, branch="team%2Fimport")
    assert told(platform.load("team/import")).keys() == {
        "people/nodes/Person", "people/edges/Knows", "people/manifest",
    }  # fmt: skip
    assert platform.head() == main
    assert platform.rows("node:Person", "team/import") == 2
    platform.instance.add_dynamic_partitions("people_branches", ["nowhere"])
    assert not platform.load("nowhere").success  # somebody invented a partition


def test_of_past_loads_only_those_of_the_contents_at_hand_are_decoded(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann", "bob", "cid"):
        platform.drop(f"{name}.jsonl", {"type": "Person", "data": {"name": name}})
        assert platform.load().success
    runs = platform.graph.list_runs(status=RunStatus.PUBLISHED)
    loads = [load for run in runs if (load := run_records.load_of(run)) is not None]
    (digest,) = (file.digest for file in loads[1].files)
    decoded = []
    monkeypatch.setattr(
        run_records,
        "load_of",
        lambda run, load_of=run_records.load_of: decoded.append(run) or load_of(run),
    )
    found = run_records.loaded_contents(platform.graph, "main", "main", [digest, "0" * 64])
    assert list(found) == [digest]
    assert decoded == [runs[1]]
    assert run_records.loaded_contents(platform.graph, "main", "another", [digest]) == {}
