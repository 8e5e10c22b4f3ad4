"""Derived assets, maintenance, checks and retention, run by hand and by schedule."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.later import Later
from tests.support.platform import PEOPLE, told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import dagster as dg

    from omnigraph_assets.jobs import retention
    from tests.support.platform import Platform
else:
    dg, retention = Later("dagster"), Later("omnigraph_assets.jobs.retention")

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]


def version(platform: Platform) -> int:
    return platform.graph.snapshot().manifest_version


def loaded(platform: Platform) -> Platform:
    platform.drop("people.jsonl", *PEOPLE)
    assert platform.load().success
    return platform


def check_records(
    platform: Platform, key: str, name: str, partition: str | None = None
) -> list[dg.AssetCheckEvaluation]:
    """Evaluations of a check, the newest first."""
    check = dg.AssetCheckKey(dg.AssetKey(["people", *key.split("/")]), name)
    history = platform.instance.event_log_storage.get_asset_check_execution_history(check, limit=9)
    events = [record.event for record in history if record.event is not None]
    found = [
        event.dagster_event.asset_check_evaluation_data
        for event in events
        if event.dagster_event is not None
        and event.dagster_event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ]
    return [one for one in found if partition in (None, one.partition)]


def test_vectors_and_indexes_are_one_publish_each(platform: Platform) -> None:
    before = version(loaded(platform))
    made = told(platform.run("embeddings", "main"))["people/embeddings/Person.vector"]
    assert (made["ready"], made["pending"], made["stale"]) == (2, 0, 0)
    assert made["vectors_made"] == 2
    assert made["commits"] == [platform.head()]
    assert made["bytes"] > 0
    assert version(platform) == before + 1
    assert platform.graph.list_runs(target_branch="main")[0].operation_hash.startswith("drops|")
    assert platform.run("embeddings", "main").success  # nothing is left to do
    assert version(platform) == before + 1
    built = told(platform.run("indexes", "main"))
    person = built["people/indexes/Person"]
    assert person["coverage"] == 1.0
    assert person["dagster/row_count"] == 2
    rows = [record.data for record in person["indexes"].records]
    assert {row["column"]: row["coverage"] for row in rows}.items() >= {"bio": 1.0}.items()
    assert {row["kind"] for row in rows} >= {"BTREE", "INVERTED"}
    assert built["people/topology"]["edges"] == 1
    assert version(platform) == before + 2


def test_indexes_of_one_type_may_be_asked_for(platform: Platform) -> None:
    loaded(platform)
    key = dg.AssetKey(["people", "indexes", "Person"])
    result = platform.run("indexes", "main", asset_selection=[key])
    assert list(told(result)) == ["people/indexes/Person"]
    (check,) = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed, check.partition) == ("covered", True, "main")


def test_covered_warns_of_indexes_that_another_branch_has_to_build(platform: Platform) -> None:
    loaded(platform)
    platform.graph.branch_create("side")
    platform.instance.add_dynamic_partitions("people_branches", ["side"])
    for branch in ("side", "main"):
        assert platform.run("indexes", branch).success
    (side,) = check_records(platform, "indexes/Person", "covered", "side")
    assert not side.passed
    assert side.severity is dg.AssetCheckSeverity.WARN
    assert "bio" in side.metadata["behind"].value
    (main,) = check_records(platform, "indexes/Person", "covered", "main")
    assert main.passed


def test_compaction_and_cleanup_which_is_a_dry_run_unless_confirmed(platform: Platform) -> None:
    loaded(platform)
    compacted = told(platform.run("compaction", "main"))["people/compaction"]
    assert compacted["dagster/row_count"] == 3
    assert compacted["bytes"] > 0
    seen = told(platform.run("cleanup", "main"))
    assert seen["people/cleanup"]["is_preview"] is True
    config = {"ops": {"people_maintenance": {"config": {"confirm": True}}}}
    done = told(platform.run("cleanup", "main", run_config=config))
    assert done["people/cleanup"]["is_preview"] is False


@pytest.mark.parametrize("is_confirmed", [False, True])
def test_schedules_ask_for_every_branch(platform: Platform, is_confirmed: bool) -> None:
    """They remove nothing unless the settings say so."""
    platform.config = replace(platform.config, scheduled_cleanup=is_confirmed)
    platform.reload()
    loaded(platform)
    platform.graph.branch_create("side")
    platform.instance.add_dynamic_partitions("people_branches", ["side"])
    night = dt.datetime(2026, 1, 4, 2, tzinfo=dt.UTC)
    repository = platform.defs.get_repository_def()
    for what in ("compaction", "cleanup"):
        schedule = repository.get_schedule_def(f"people_{what}_schedule")
        with (
            dg.partition_loading_context(dynamic_partitions_store=platform.instance),
            dg.build_schedule_context(
                instance=platform.instance,
                scheduled_execution_time=night,
                repository_def=repository,
            ) as context,
        ):
            requests = schedule.evaluate_tick(context).run_requests
        assert [request.run_key for request in requests or ()] == [
            f"{what}:main:2026-01-04",
            f"{what}:side:2026-01-04",
        ]
    (cleanup, *_) = requests or ()
    done = told(platform.run("cleanup", "main", run_config=cleanup.run_config))
    assert done["people/cleanup"]["is_preview"] is not is_confirmed


def delete_tables(platform: Platform) -> None:
    for path in (platform.directory / "graph" / "nodes").rglob("*.lance"):
        if path.is_file():
            path.unlink()


def test_a_failed_check_of_a_branch_is_not_hidden_by_another_branch(platform: Platform) -> None:
    platform.graph.branch_create("empty")
    platform.instance.add_dynamic_partitions("people_branches", ["empty"])
    loaded(platform)

    def verdicts(branch: str) -> dict[str, tuple[bool, str | None]]:
        result = platform.run("checks", tags={"dagster/partition": branch})
        found = result.get_asset_check_evaluations()
        return {one.check_name: (one.passed, one.partition) for one in found}

    assert verdicts("main") == {"integrity": (True, "main"), "mergeable": (True, "main")}
    delete_tables(platform)
    assert verdicts("main")["integrity"] == (False, "main")
    assert verdicts("empty")["integrity"] == (True, "empty")
    (newest, *_) = check_records(platform, "manifest", "integrity", "main")
    assert not newest.passed
    assert shown_states(platform, "manifest", "integrity") == {"main": False, "empty": True}
    assert not platform.run("checks").success  # it names no branch


def shown_states(platform: Platform, key: str, name: str) -> dict[str, bool]:
    """What Dagster keeps as the state of a check for each branch."""
    check = dg.AssetCheckKey(dg.AssetKey(["people", *key.split("/")]), name)
    found = platform.instance.event_log_storage.get_asset_check_partition_info([check])
    return {
        str(one.partition_key): one.latest_execution_status.value == "SUCCEEDED" for one in found
    }


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """An instance that keeps events in files, as deployments on one machine do."""
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as made:
        yield made


def test_old_runs_are_deleted_but_for_the_latest_materialisations(
    platform: Platform, lasting: dg.DagsterInstance, tmp_path: Path
) -> None:
    platform.instance = lasting
    lasting.add_dynamic_partitions("people_branches", ["main"])
    runs: dict[str, Any] = {"load": loaded(platform) and lasting.get_runs()[0].run_id}
    for name in ("first", "second"):
        runs[name] = platform.run("indexes", "main").run_id
    runs["checks"] = platform.run("checks", tags={"dagster/partition": "main"}).run_id
    future = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=30)
    jobs = {"people_load_job", "people_indexes_job", "people_checks_job"}
    assert retention.delete_old_runs(lasting, "people", jobs, past) == (0, 0)
    assert retention.delete_old_runs(lasting, "others", set(), future) == (0, 0)
    assert retention.delete_old_runs(lasting, "people", jobs, future) == (2, 2)
    assert {run.run_id for run in lasting.get_runs()} == {runs["load"], runs["second"]}
    files = {file.stem for file in (tmp_path / "dagster").rglob("runs/*.db")}
    assert files - {"index"} == {runs["load"], runs["second"]}
    for key, run in (("nodes/Person", "load"), ("indexes/Person", "second")):
        asset = dg.AssetKey(["people", *key.split("/")])
        assert lasting.get_materialized_partitions(asset) == {"main"}
        event = lasting.get_latest_materialization_event(asset)
        assert event is not None
        assert event.run_id == runs[run]
    assert platform.run("retention").success


def test_retention_deletes_all_that_is_old_in_pages_until_its_time_is_over(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance, future = platform.instance, dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    monkeypatch.setattr("omnigraph_assets.jobs.retention._PAGE", 2)
    for number in range(7):
        run = dg.DagsterRun("people_load_job", str(number))
        instance.add_run(run)
        instance.report_run_failed(run)
    jobs = {"people_load_job"}
    with monkeypatch.context() as hurried:
        hurried.setattr("omnigraph_assets.jobs.retention.SECONDS", 0.0)
        assert retention.delete_old_runs(instance, "people", jobs, future) == (1, 0)
    assert retention.delete_old_runs(instance, "people", jobs, future) == (6, 0)
