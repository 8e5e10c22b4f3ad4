"""Jobs that people launch: what they do, what they refuse, what they tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.later import Later
from tests.support.platform import PEOPLE, WIDER

if TYPE_CHECKING:
    import dagster as dg

    from tests.support.platform import Platform
else:
    dg = Later("dagster")

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]


def do(platform: Platform, what: str, **config: object) -> dg.ExecuteInProcessResult:
    return platform.run(what, run_config={"ops": {f"people_{what}": {"config": config}}})


def metadata(result: dg.ExecuteInProcessResult, what: str) -> dict[str, Any]:
    (event,) = [
        event
        for event in result.events_for_node(f"people_{what}")
        if event.event_type is dg.DagsterEventType.STEP_OUTPUT
    ]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def person(platform: Platform, age: int, branch: str) -> None:
    record = f'{{"type": "Person", "data": {{"name": "ann", "age": {age}}}}}'
    platform.graph.load(record.encode(), branch=branch, embed="off")


def test_a_branch_from_its_making_to_its_end(platform: Platform) -> None:
    person(platform, 30, "main")
    assert do(platform, "create_branch", name="side").success
    assert platform.instance.get_dynamic_partitions("people_branches") == ["main", "side"]
    person(platform, 31, "side")
    compared = metadata(do(platform, "diff_branches", source="side"), "diff_branches")
    assert (compared["inserts"], compared["updates"], compared["deletes"]) == (0, 1, 0)

    head = platform.head()
    dry = do(platform, "merge_branch", source="side")
    assert metadata(dry, "merge_branch")["conflicts"] == 0
    assert platform.head() == head  # nothing without `confirm`

    person(platform, 32, "main")
    head = platform.head()
    assert metadata(do(platform, "merge_branch", source="side"), "merge_branch")["conflicts"] == 1
    key = dg.AssetCheckKey(dg.AssetKey(["people", "manifest"]), "mergeable")
    (record,) = platform.instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
    assert record.event is not None
    assert record.event.dagster_event is not None
    shown = record.event.dagster_event.asset_check_evaluation_data
    assert not shown.passed
    assert shown.partition == "side"
    rows = shown.metadata["conflicting_rows"]
    assert isinstance(rows, dg.TableMetadataValue)
    (row,) = [record.data for record in rows.records]
    assert (row["kind"], row["type"]) == ("divergent_update", "node:Person")
    assert [row[side] for side in ("base", "on main", "on side")] == [
        "age: 30",
        "age: 32",
        "age: 31",
    ]

    assert not do(platform, "merge_branch", source="side", confirm=True).success
    assert platform.head() == head
    merged = do(platform, "merge_branch", source="side", confirm=True, resolve="theirs")
    assert merged.success
    assert platform.head() != head

    assert not do(platform, "delete_branch", name="side").success
    assert do(platform, "delete_branch", name="side", confirm="side").success
    assert platform.graph.branch_list() == ("main",)
    assert platform.instance.get_dynamic_partitions("people_branches") == ["main"]


def test_a_schema_is_planned_then_applied(platform: Platform) -> None:
    before = platform.graph.schema_show().hash
    planned = metadata(do(platform, "apply_schema", schema_text=WIDER), "apply_schema")
    assert planned["applied"] is False
    assert platform.graph.schema_show().hash == before
    assert not do(platform, "apply_schema", schema_text="node {", confirm=True).success
    assert do(platform, "apply_schema", schema_text=WIDER, confirm=True).success
    assert "node:Place" in platform.graph.snapshot().tables


def test_a_query_and_its_result(platform: Platform) -> None:
    platform.drop("people.jsonl", *PEOPLE)
    platform.load()
    text = "query named($n: String) { match { $p: Person { name: $n } } return { $p.age as age } }"
    asked = do(platform, "run_query", text=text, params_json='{"n": "ann"}')
    assert metadata(asked, "run_query")["result"] == [{"age": 31}]
    assert not do(platform, "run_query", text="query {").success
