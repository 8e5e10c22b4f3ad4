"""Frames that assets return reach a graph with one commit, whatever becomes of their run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.staged_frames import pin_commit
from omnigraph_core.errors import ConfigError
from tests.support.later import Later

if TYPE_CHECKING:
    from collections.abc import Iterator

    import dagster as dg
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from omnigraph_assets.assets import publish
    from tests.support import frame_assets
else:
    dg, pd, pl, pa = Later("dagster"), Later("pandas"), Later("polars"), Later("pyarrow")
    frame_assets = Later("tests.support.frame_assets")
    publish = Later("omnigraph_assets.assets.publish")

LARGE = 2**60 + 1
"""No float is this number."""
FILLED = {"node:Person": 2, "node:Town": 1, "edge:Knows": 1}
PEOPLE = {"name": ["ann", "bob"], "age": [31, 40]}


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Omnigraph]:
    monkeypatch.setenv("FRAMES_FOLDER", str(tmp_path))
    monkeypatch.setenv("FRAMES_GRAPH", str(tmp_path / "graph"))
    with Omnigraph.init(str(tmp_path / "graph"), frame_assets.SCHEMA) as made:
        yield made


def rows_of(graph: Omnigraph, branch: str = "main") -> dict[str, int]:
    return {key: entry.row_count for key, entry in graph.snapshot(branch).tables.items()}


def commits(graph: Omnigraph, branch: str = "main") -> int:
    return graph.snapshot(branch).manifest_version


def left(graph: Omnigraph, kind: str) -> list[Path]:
    return list((Path(graph.uri) / "_scratch").rglob(f"{kind}-*"))


def materialize(
    assets: list[dg.AssetsDefinition], instance: dg.DagsterInstance, **more: Any
) -> dg.ExecuteInProcessResult:
    settings = more.pop("settings", {})
    return dg.materialize(
        assets,
        instance=instance,
        resources={"graph_io": frame_assets.graph_io(**settings)},
        raise_on_error=False,
        **more,
    )


def failure_of(result: dg.ExecuteInProcessResult, step: str) -> Any:
    (event,) = [one for one in result.get_step_failure_events() if one.step_key == step]
    return event.event_specific_data


def metadata_of(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    (made,) = result.asset_materializations_for_node(asset)
    return {name: value.value for name, value in made.metadata.items()}


def execute(instance: dg.DagsterInstance, **options: Any) -> Any:
    job = dg.reconstructable(frame_assets.frames_job)
    again = dg.ReexecutionOptions(**options) if options else None
    return dg.execute_job(job, instance=instance, reexecution_options=again)


def test_a_run_that_fails_publishes_nothing_and_its_repeat_once(
    tmp_path: Path, graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    before = commits(graph)
    (tmp_path / "fail").touch()
    with execute(instance) as failed:
        assert not failed.success
        staged = {
            event.asset_key.to_user_string() for event in failed.get_asset_materialization_events()
        }
    assert staged == {"Person", "Town"}
    assert commits(graph) == before
    (tmp_path / "fail").unlink()
    with execute(
        instance, parent_run_id=failed.run_id, step_selection=["knows", "published"]
    ) as repeated:
        assert repeated.success
    assert (commits(graph), rows_of(graph)) == (before + 1, FILLED)
    # Whatever is repeated of it now, these rows have been published.
    for steps in (["published"], ["knows", "published"], []):
        with execute(instance, parent_run_id=failed.run_id, step_selection=steps) as once_more:
            assert once_more.success
        assert rows_of(graph) == FILLED
    assert left(graph, "rows") == []


def test_an_error_after_the_commit_is_answered_by_a_repeat(
    graph: Omnigraph, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph_core import failpoints

    before = commits(graph)
    assets = [frame_assets.Person, frame_assets.knows, frame_assets.Town, frame_assets.published]
    with failpoints.arm("frames.after_commit", "error*1"):
        result = materialize(assets, instance)
    assert result.success  # the step was tried again
    assert metadata_of(result, "published")["repeated"] is True
    assert (commits(graph), rows_of(graph)) == (before + 1, FILLED)


def test_rows_that_break_rules_are_shown_and_nothing_is_published(
    graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    people = frame_assets.asset_of("Person", pd.DataFrame({"name": ["ann", "bob"], "age": [-1, 3]}))
    knows = frame_assets.asset_of("Knows", pa.table({"src": ["ann"], "dst": ["zoe"]}))
    end = publish.publish_graph_asset([people, knows])
    before = commits(graph)
    result = materialize([people, knows, end], instance)
    assert not result.success
    shown = failure_of(result, "graph_publish").user_failure_data.metadata
    assert shown["violations"].value == 2
    rows = [record.data for record in shown["violating_rows"].value.records]
    assert {(row["rule"], row["place"]) for row in rows} == {
        ("range", "Person, row 1"), ("endpoint", "Knows, row 1"),
    }  # fmt: skip
    assert commits(graph) == before


def test_everything_wrong_with_an_output_is_one_error(
    graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    def refused(value: Any, name: str = "Person", **metadata: str) -> str:
        given = {f"omnigraph/{key}": text for key, text in metadata.items()}
        asset = frame_assets.asset_of(name, value, metadata=given)
        data = failure_of(materialize([asset], instance), name).user_failure_data
        return str(data.description)

    text = refused(pl.DataFrame({"nmae": [1], "age": ["x"]}), branch="nope")
    assert "there is no branch `nope`; branches there: main" in text
    assert "unknown column `nmae` of Person" in text
    assert "age" in text
    text = refused(pl.DataFrame({"name": ["a"]}), name="people")
    assert "unknown type `people`; node types: Person, Town; edge types: edge:Knows" in text
    assert "no data frame" in refused([1, 2])
    assert "no data frame" in refused(None)
    assert "mixes types" in refused(pd.DataFrame({"name": ["a", 1]}))
    assert left(graph, "frame") == []


def test_publish_wants_something_staged_in_its_run(
    graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    people = frame_assets.asset_of("Person", pl.DataFrame(PEOPLE))
    end = publish.publish_graph_asset([people])
    staged = materialize([people], instance)
    assert staged.success
    assert metadata_of(staged, "Person")["staged"] is True
    assert rows_of(graph)["node:Person"] == 0
    result = materialize([people, end], instance, selection=[end])
    data = failure_of(result, "graph_publish").user_failure_data
    assert "this run has staged nothing" in data.description
    assert "Person" in data.description


def test_partitions_that_are_branches(graph: Omnigraph, instance: dg.DagsterInstance) -> None:
    graph.branch_create("draft")
    branches = dg.DynamicPartitionsDefinition(name="people_branches")
    instance.add_dynamic_partitions("people_branches", ["main", "draft"])
    people = frame_assets.asset_of("Person", pl.DataFrame(PEOPLE), partitions_def=branches)
    end = publish.publish_graph_asset([people], partitions_def=branches)
    reader = frame_assets.reader_of("Person", pd.DataFrame, partitions_def=branches, deps=[end])
    with dg.partition_loading_context(dynamic_partitions_store=instance):
        result = materialize([people, end, reader], instance, partition_key="draft")
    assert result.success
    assert (rows_of(graph)["node:Person"], rows_of(graph, "draft")["node:Person"]) == (0, 2)
    assert len(result.output_for_node("read_Person")) == 2


def test_which_branch_a_partition_stands_for(graph: Omnigraph) -> None:
    branch_for = frame_assets.graph_io(branch="trunk").branch_for
    branches = dg.DynamicPartitionsDefinition(name="people_branches")
    days = dg.StaticPartitionsDefinition(["monday", "tuesday"])
    both = dg.MultiPartitionsDefinition({"branch": branches, "day": days})
    assert branch_for({}, None, ()) == "trunk"
    assert branch_for({}, days, ["monday", "tuesday"]) == "trunk"
    assert branch_for({}, dg.DynamicPartitionsDefinition(name="towns"), ["Birk"]) == "trunk"
    assert branch_for({}, branches, ["draft"]) == "draft"
    assert branch_for({"omnigraph/branch": "fixed"}, branches, ["draft"]) == "fixed"
    key = dg.MultiPartitionKey({"branch": "draft", "day": "monday"})
    assert branch_for({}, both, [key]) == "draft"
    with pytest.raises(ConfigError, match="one run writes one branch, not draft, main"):
        branch_for({}, branches, ["main", "draft"])


def test_partitions_that_are_days_feed_one_branch(
    graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    days = dg.StaticPartitionsDefinition(["monday", "tuesday"])
    for day in ("monday", "tuesday"):
        frame = pl.DataFrame({"name": [day]})
        people = frame_assets.asset_of("Person", frame, partitions_def=days)
        end = publish.publish_graph_asset([people], partitions_def=days)
        assert materialize([people, end], instance, partition_key=day).success
    assert rows_of(graph)["node:Person"] == 2


def test_modes(graph: Omnigraph, instance: dg.DagsterInstance) -> None:
    people = frame_assets.asset_of("Person", pl.DataFrame(PEOPLE))
    end = publish.publish_graph_asset([people])
    assert materialize([people, end], instance, settings={"mode": "append"}).success
    assert not materialize([people, end], instance, settings={"mode": "append"}).success
    fewer = frame_assets.asset_of("Person", pl.DataFrame({"name": ["zoe"]}))
    end = publish.publish_graph_asset([fewer])
    assert materialize([fewer, end], instance, settings={"mode": "overwrite"}).success
    assert rows_of(graph)["node:Person"] == 1
    nothing = frame_assets.asset_of(
        "Person", pl.DataFrame({"name": []}, schema={"name": pl.String})
    )
    result = materialize([nothing], instance, settings={"mode": "overwrite"})
    assert "Person has no rows" in failure_of(result, "Person").user_failure_data.description


def test_a_type_as_any_kind_of_frame(graph: Omnigraph, instance: dg.DagsterInstance) -> None:
    born = datetime(2001, 2, 3, 4, 5, tzinfo=UTC)
    graph.load(pa.table({"name": ["bob", "ann"], "born": [None, born]}), type="Person")
    people = dg.AssetSpec("Person").with_io_manager_key("graph_io")
    for kind in (pa.Table, pd.DataFrame, pl.DataFrame, pl.LazyFrame, Any):
        reader = frame_assets.reader_of("Person", kind)
        result = materialize([people, reader], instance)
        assert result.success
        frame = result.output_for_node("read_Person")
        frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
        assert isinstance(
            frame, (pa.Table if kind is Any or kind is pl.LazyFrame else kind, pl.DataFrame)
        )
        rows = (
            frame.to_dict("records")
            if isinstance(frame, pd.DataFrame)
            else (frame.to_pylist() if isinstance(frame, pa.Table) else frame.to_dicts())
        )
        assert [row["name"] for row in rows] == ["ann", "bob"]
        assert rows[0]["born"] == born
    result = materialize([people, frame_assets.reader_of("Person", int)], instance)
    assert "no data frame" in failure_of(result, "read_Person").user_failure_data.description


def test_all_inputs_of_a_run_are_of_one_commit(
    graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    graph.load(pa.table({"name": ["ann"]}), type="Person")
    people = dg.AssetSpec("Person").with_io_manager_key("graph_io")
    town = dg.AssetSpec("Town").with_io_manager_key("graph_io")

    @dg.asset(ins={"frame": dg.AssetIn("Person")})
    def first(frame) -> int:  # type: ignore[no-untyped-def]
        graph.load(pa.table({"name": ["Birk"]}), type="Town")  # somebody else, meanwhile
        return int(frame.num_rows)

    @dg.asset(ins={"frame": dg.AssetIn("Town")}, deps=[first])
    def second(frame) -> int:  # type: ignore[no-untyped-def]
        return int(frame.num_rows)

    result = materialize([people, town, first, second], instance)
    assert (result.output_for_node("first"), result.output_for_node("second")) == (1, 0)
    result = materialize([people, town, second], instance, selection=[second])
    assert result.output_for_node("second") == 1


def test_pandas_keeps_large_integers(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    schema = (
        "node Meter { name: String @key  reading: I64?  limit: U64?  digits: [I64]?  count: I64 }"
    )
    meters = {
        "name": ["a", "b"],
        "reading": [LARGE, None],
        "limit": pa.array([None, LARGE], pa.uint64()),
        "digits": [[LARGE], None],
        "count": [LARGE, LARGE],
    }
    with Omnigraph.init(str(tmp_path / "meters"), schema) as graph:
        graph.load(pa.table(meters), type="Meter")
        graph_io = frame_assets.GraphIOManager(uri=graph.uri)
        before = dg.AssetSpec("before", metadata={"omnigraph/type": "Meter"})

        def rewritten(frame: Any) -> Any:
            kinds = frame.dtypes.astype(str)[["reading", "limit", "count"]].tolist()
            assert kinds == ["Int64", "UInt64", "int64"]
            return frame

        rewritten.__annotations__ = {"frame": pd.DataFrame}
        after = dg.asset(
            ins={"frame": dg.AssetIn("before")}, metadata={"omnigraph/type": "Meter"},
            io_manager_key="graph_io",
        )(rewritten)  # fmt: skip
        result = dg.materialize(
            [before.with_io_manager_key("graph_io"), after, publish.publish_graph_asset([after])],
            instance=instance, resources={"graph_io": graph_io}, raise_on_error=False,
        )  # fmt: skip
        assert result.success
        rows = graph.query(
            "main",
            "query all() { match { $m: Meter } return { $m.reading as reading, $m.limit as limit,"
            " $m.digits as digits, $m.count as count } order { $m.name } }",
        ).to_pylist()
    assert rows == [
        {"reading": LARGE, "limit": None, "digits": [LARGE], "count": LARGE},
        {"reading": None, "limit": LARGE, "digits": None, "count": LARGE},
    ]


def test_assets_that_are_loaded_with_a_prefix(
    graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    module = ModuleType("office")
    vars(module).update(
        Person=frame_assets.Person, Town=frame_assets.Town, knows=frame_assets.knows,
        published=frame_assets.published,
    )  # fmt: skip
    assets = dg.load_assets_from_modules([module], key_prefix="office")
    result = materialize(assets, instance)
    assert result.success
    assert rows_of(graph) == FILLED
    observed = {
        event.asset_observation_data.asset_observation.asset_key.to_user_string()
        for event in result.get_asset_observation_events()
    }
    assert observed == {"office/Person", "office/Town", "office/knows"}


def test_a_run_is_repeated_when_its_first_one_is_deleted(
    tmp_path: Path, graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    (tmp_path / "fail").touch()
    with execute(instance) as first:
        assert not first.success
    with execute(instance, parent_run_id=first.run_id, step_selection=["knows"]) as second:
        assert not second.success
    (tmp_path / "fail").unlink()
    instance.delete_run(first.run_id)
    with execute(instance, parent_run_id=second.run_id) as third:
        assert third.success
    assert rows_of(graph) == FILLED


def test_a_repeated_run_reads_the_newest_commit(
    graph: Omnigraph, instance: dg.DagsterInstance
) -> None:
    with execute(instance) as first:
        assert first.success
    graph.load(pa.table({"name": ["zoe"]}), type="Person")
    head = graph.snapshot().commit.graph_commit_id
    with execute(instance, parent_run_id=first.run_id) as second:
        assert second.success
    assert pin_commit(graph, first.run_id, first.run_id) != head
    assert pin_commit(graph, first.run_id, second.run_id) == head


def test_a_type_without_a_run(graph: Omnigraph, instance: dg.DagsterInstance) -> None:
    graph.load(pa.table({"name": ["ann"]}), type="Person")
    people = dg.AssetSpec("Person").with_io_manager_key("graph_io")
    defs = dg.Definitions([people], resources={"graph_io": frame_assets.graph_io()})
    assert defs.load_asset_value("Person", instance=instance)["name"].to_pylist() == ["ann"]
    frame = defs.load_asset_value("Person", python_type=pd.DataFrame, instance=instance)
    assert frame["name"].tolist() == ["ann"]
    assert left(graph, "pin") == []
