"""What is derived and kept up: one publish each, by hand, by automation and by schedule."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.later import Later
from tests.support.platform import PEOPLE, told

if TYPE_CHECKING:
    import dagster as dg

    from tests.support.platform import Platform
else:
    dg = Later("dagster")

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


def test_vectors_and_indexes_are_one_publish_each(platform: Platform) -> None:
    before = version(loaded(platform))
    made = told(platform.run("embeddings", "main"))
    assert made["people/embeddings/Person.vector"]["ready"] == 2
    assert made["people/embeddings/Person.vector"]["vectors_made"] == 2
    assert version(platform) == before + 1
    assert platform.run("embeddings", "main").success  # nothing is left to do
    assert version(platform) == before + 1
    built = told(platform.run("indexes", "main"))
    assert built["people/indexes/Person.bio"]["coverage"] == 1.0
    assert built["people/topology"]["edges"] == 1
    assert version(platform) == before + 2


def test_a_part_of_what_is_derived_may_be_asked_for(platform: Platform) -> None:
    loaded(platform)
    key = dg.AssetKey(["people", "indexes", "Person.bio"])
    result = platform.run("indexes", "main", asset_selection=[key])
    assert list(told(result)) == ["people/indexes/Person.bio"]


def test_cleanup_only_tells_unless_it_is_confirmed(platform: Platform) -> None:
    loaded(platform)
    assert "people/compaction" in told(platform.run("compaction", "main"))
    seen = told(platform.run("cleanup", "main"))
    assert seen["people/cleanup"]["is_preview"] is True
    config = {"ops": {"people_maintenance": {"config": {"confirm": True}}}}
    done = told(platform.run("cleanup", "main", run_config=config))
    assert done["people/cleanup"]["is_preview"] is False


class Ticks:
    """Ticks of automation, one after the other."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._cursor: dg.AutomationCursor | None = None
        self.asked()

    def asked(self) -> set[str]:
        """The last words of what the next tick asks for."""
        defs, instance = self._platform.defs, self._platform.instance
        with dg.partition_loading_context(dynamic_partitions_store=instance):
            tick = dg.evaluate_automation_conditions(defs, instance, cursor=self._cursor)
        self._cursor = tick.cursor
        specs = defs.resolve_all_asset_specs()
        return {spec.key.path[-1] for spec in specs if tick.get_num_requested(spec.key)}


def test_automation_asks_for_what_changed(platform: Platform) -> None:
    ticks = Ticks(platform)
    loaded(platform)
    asked = ticks.asked()
    assert {"Person.vector", "Person.bio", "Knows.src"} <= asked
    assert not any(name.startswith(("Company", "WorksAt")) for name in asked)
    assert ticks.asked() == set()


def test_automation_forgets_no_update(platform: Platform) -> None:
    """A load that is published while what an earlier one asked for is made, or right after."""
    ticks = Ticks(platform)
    loaded(platform)
    first = ticks.asked()

    def update(*names: str) -> None:
        for key in platform.defs.resolve_all_asset_keys():
            if key.path[-1] in names:
                event = dg.AssetMaterialization(key, partition="main")
                platform.instance.report_runless_asset_event(event)

    update(*first)
    update("Person", "Knows")
    assert ticks.asked() == first, "a tick sees what was made, and the load after it"
    update("Person", "Knows")
    assert ticks.asked() == first, "a tick sees the load after what the last one asked for"
    update(*first)
    assert ticks.asked() == set()


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


def test_integrity_of_what_is_published(platform: Platform) -> None:
    loaded(platform)

    def verdicts() -> dict[str, bool]:
        result = platform.run("checks")
        return {c.check_name: c.passed for c in result.get_asset_check_evaluations()}

    assert verdicts() == {"integrity": True, "mergeable": True}
    files = platform.directory / "graph" / "nodes"
    for path in files.rglob("*.lance"):
        if path.is_file():
            path.unlink()
    assert verdicts()["integrity"] is False
