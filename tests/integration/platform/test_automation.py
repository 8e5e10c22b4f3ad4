"""The sensor of derived assets, tick by tick: what it requests, and that it forgets no change."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.later import Later
from tests.support.platform import PEOPLE, WIDER, told
from tests.support.platform import tick as tick_of
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    import dagster as dg
    from dagster._core.definitions import asset_daemon_cursor as cursors
    from dagster._daemon import asset_daemon

    from tests.support.platform import Platform
else:
    dg = Later("dagster")
    cursors = Later("dagster._core.definitions.asset_daemon_cursor")
    asset_daemon = Later("dagster._daemon.asset_daemon")

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]

COMPANY = b'{"type": "Company", "data": {"name": "hive"}}'
CAT = b'{"type": "Person", "data": {"name": "cat", "bio": "sails boats"}}'


class Ticks:
    """Ticks of automation, one after the other."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.cursor: str | None = None
        self.reason = ""
        self.requests: list[dg.RunRequest] = []
        self.added: list[str] = []

    def asked(self) -> dict[str, set[str]]:
        """What the next tick requests: the last two words of the keys, by branch."""
        tick = tick_of(self.platform, "automation", self.cursor)
        self.cursor, self.reason = tick.cursor, tick.skip_message or ""
        self.requests = list(tick.run_requests)
        added = tick.dynamic_partitions_requests or ()
        self.added = [name for request in added for name in request.partition_keys]
        return {
            str(request.partition_key): {
                "/".join(key.path[1:]) for key in request.asset_selection or ()
            }
            for request in self.requests
        }

    def carry_out(self) -> dg.ExecuteInProcessResult:
        (request,) = self.requests
        return self.platform.run(
            "derived",
            request.partition_key,
            asset_selection=request.asset_selection,
            tags=dict(request.tags),
        )


def started_run(platform: Platform, branch: str, tags: dict[str, str] | None = None) -> str:
    """A run that the instance shows as under way."""
    job = platform.defs.resolve_job_def("people_derived_job")
    run = platform.instance.create_run_for_job(
        job, status=dg.DagsterRunStatus.STARTED, tags={"dagster/partition": branch, **(tags or {})}
    )
    return run.run_id


def end(platform: Platform, run_id: str, *, is_success: bool) -> None:
    run = platform.instance.get_run_by_id(run_id)
    assert run is not None
    if is_success:
        event = dg.DagsterEventType.RUN_SUCCESS
        platform.instance.report_dagster_event(
            dg.DagsterEvent(event.value, run.job_name), run_id=run_id
        )
    else:
        platform.instance.report_run_failed(run)


def settled(platform: Platform) -> Ticks:
    """Ticks of a graph whose derived assets are up to date."""
    ticks = Ticks(platform)
    platform.drop("people.jsonl", *PEOPLE)
    assert platform.load().success
    assert ticks.asked().keys() == {"main"}
    assert ticks.carry_out().success
    assert ticks.asked() == {}
    return ticks


def test_what_changed_is_requested_once(platform: Platform) -> None:
    ticks = Ticks(platform)
    assert ticks.asked() == {}, "a graph without rows has nothing to derive"
    platform.drop("people.jsonl", *PEOPLE)
    assert platform.load().success
    wanted = {"embeddings/Person.vector", "indexes/Person", "indexes/Knows", "topology"}
    assert ticks.asked() == {"main": wanted}
    (request,) = ticks.requests
    checks = {str(key.asset_key.path[-1]) for key in request.asset_check_keys or ()}
    assert checks == {"Person", "Knows"}
    assert ticks.asked() == {"main": wanted}, "requested again until a run is there"
    assert ticks.requests[0].run_key == request.run_key, "and Dagster launches it once"
    done = ticks.carry_out()
    assert {key.removeprefix("people/") for key in told(done)} == wanted
    assert told(done)["people/indexes/Person"]["coverage"] == 1.0, "vectors are indexed too"
    for _ in range(3):  # its own commits request nothing
        assert ticks.asked() == {}
    assert json.loads(ticks.cursor or "")["main"]["handled"] == platform.head()


def test_a_cursor_of_another_release_counts_as_none(platform: Platform) -> None:
    ticks = Ticks(platform)
    platform.drop("people.jsonl", *PEOPLE)
    assert platform.load().success
    wanted = ticks.asked()
    before = cursors.AssetDaemonCursor.empty()
    for other in (
        asset_daemon.asset_daemon_cursor_to_instigator_serialized_cursor(before),
        '{"main": {"seen": "commit"}}',
        '["main"]',
    ):
        ticks.cursor = other
        assert ticks.asked() == wanted


def test_only_the_types_that_changed_are_requested(platform: Platform) -> None:
    ticks = settled(platform)
    platform.graph.load(COMPANY, mode="merge", actor="somebody")
    assert ticks.asked() == {"main": {"indexes/Company", "topology"}}


def test_no_change_is_forgotten(platform: Platform) -> None:
    """Changes while a requested run is under way, right after it, and before one that fails."""
    ticks = settled(platform)
    platform.graph.load(CAT, mode="merge", embed="off", actor="somebody")
    first = ticks.asked()
    assert first == {"main": {"embeddings/Person.vector", "indexes/Person", "topology"}}
    (request,) = ticks.requests
    run = started_run(platform, "main", dict(request.tags))
    platform.graph.load(COMPANY, mode="merge", actor="somebody")
    assert ticks.asked() == {}
    assert ticks.reason == "a run works on `main`"
    end(platform, run, is_success=True)
    assert ticks.asked() == {"main": {"indexes/Company", "topology"}}, "what came after the request"

    run = started_run(platform, "main", dict(ticks.requests[0].tags))
    end(platform, run, is_success=False)
    assert ticks.asked() == {}
    assert "the next run is in" in ticks.reason
    platform.graph.load(CAT.replace(b"cat", b"dan"), mode="merge", embed="off", actor="somebody")
    assert ticks.asked() == {"main": {*first["main"], "indexes/Company"}}, "and what had failed"
    assert ticks.carry_out().success
    assert ticks.asked() == {}


def test_a_failed_run_is_repeated_ever_later_and_never_given_up(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = settled(platform)
    platform.graph.load(COMPANY, mode="merge", actor="somebody")
    wanted = ticks.asked()
    keys = set()
    with monkeypatch.context() as patch:
        patch.setattr("omnigraph_assets.sensors.automation._FIRST_WAIT", 0.0)
        for _ in range(7):
            assert ticks.asked() == wanted
            keys.add(ticks.requests[0].run_key)
            tags = dict(ticks.requests[0].tags)
            end(platform, started_run(platform, "main", tags), is_success=False)
            wait_until(lambda: ticks.asked() == wanted, "the wait to be over", seconds=10)
    assert len(keys) == 7
    assert ticks.asked() == {}
    left = re.search(r"failed 7 times: .*the next run is in (\d+) s", ticks.reason)
    assert left is not None
    assert 16 * 60 < int(left[1]) <= 64 * 60
    platform.graph.load(COMPANY.replace(b"hive", b"mill"), mode="merge", actor="somebody")
    assert ticks.asked() == wanted, "at once when the branch moves"


def test_a_branch_begins_where_its_source_was(platform: Platform) -> None:
    ticks = settled(platform)
    platform.graph.branch_create("side")
    assert ticks.asked() == {}
    platform.graph.load(COMPANY, branch="side", mode="merge", actor="somebody")
    assert ticks.asked() == {}
    assert ticks.reason == "`side` becomes a partition first"
    assert ticks.added == ["side"]
    platform.instance.add_dynamic_partitions("people_branches", ticks.added)
    assert ticks.asked() == {"side": {"indexes/Company", "topology"}}
    platform.graph.branch_delete("side")
    ticks.asked()
    assert json.loads(ticks.cursor or "").keys() == {"main"}


def test_a_branch_forked_before_its_vectors_were_made_gets_them(platform: Platform) -> None:
    ticks = settled(platform)
    platform.graph.load(CAT, mode="merge", embed="off", actor="somebody")
    platform.graph.branch_create("side")
    platform.instance.add_dynamic_partitions("people_branches", ["side"])
    asked = ticks.asked()
    assert asked["side"] == asked["main"]
    assert "embeddings/Person.vector" in asked["side"]


def test_vectors_made_by_hand_have_their_indexes_completed(platform: Platform) -> None:
    ticks = settled(platform)
    before = platform.head()
    platform.graph.load(CAT, mode="merge", embed="off", actor="dagster")
    assert platform.run("embeddings", "main").success
    ticks.cursor = json.dumps({"main": {"handled": before, "requested": None}})
    assert "indexes/Person" in ticks.asked()["main"]
    # Seen alone, after the load was handled:
    (_, load, *_) = platform.graph.list_commits()
    handled = {"main": {"handled": load.graph_commit_id, "requested": None}}
    ticks.cursor = json.dumps(handled)
    assert ticks.asked() == {"main": {"indexes/Person", "topology"}}
    assert platform.run("indexes", "main").success
    ticks.cursor = json.dumps(handled)
    assert ticks.asked() == {}


def test_a_compaction_requests_nothing_of_small_tables(platform: Platform) -> None:
    ticks = settled(platform)
    platform.graph.load(COMPANY, mode="merge", actor="somebody")
    ticks.asked()
    assert ticks.carry_out().success
    assert platform.run("compaction", "main").success
    assert ticks.asked() == {}


def test_branches_of_another_schema_wait_for_their_definitions(platform: Platform) -> None:
    ticks = settled(platform)
    platform.graph.schema_apply(WIDER, actor="somebody")
    assert ticks.asked() == {}
    assert ticks.reason == "`main` has another schema than the definitions"
    platform.reload()
    ticks.asked()
    assert json.loads(ticks.cursor or "")["main"] != {"handled": None, "requested": None}


def test_limits_of_pools_are_applied_once(platform: Platform) -> None:
    limits: dict[str, Any] = {}

    def slots() -> dict[str, int]:
        found = platform.instance.event_log_storage.get_pool_limits()
        return {limit.name: limit.limit for limit in found}

    first = tick_of(platform, "commits")
    limits = json.loads(first.cursor)["limits"]
    assert limits == {"people_embeddings": 1, "people_maintenance": 2}
    assert slots() == limits
    platform.instance.event_log_storage.set_concurrency_slots("people_maintenance", 5)
    tick_of(platform, "commits", first.cursor)
    assert slots()["people_maintenance"] == 5, "what somebody set by hand stays"
