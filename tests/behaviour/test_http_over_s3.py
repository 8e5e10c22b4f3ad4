"""A server whose graphs are on S3: the long way through everything once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import MergeConflicts, PreconditionFailed
from omnigraph_core.history.runs import RunStatus
from omnigraph_core.history.snapshots import ReadTarget
from tests.behaviour.stock import AMOUNTS, DRAWING, SCHEMA, amounts, bin_, lines, part, put
from tests.support.ways import Way, told

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ways import Place


@pytest.fixture(scope="module", params=[Way.HTTP_OVER_S3])
def way(request: pytest.FixtureRequest) -> Way:
    return Way(request.param)


def test_reads(shared: Place, tmp_path: Path) -> None:
    assert shared.both(lambda graph: graph.query("main", AMOUNTS)).num_rows == 3
    assert shared.both(lambda graph: graph.snapshot()).manifest_version == 2
    assert len(shared.both(lambda graph: graph.list_commits())) == 2
    assert len(shared.both(lambda graph: b"".join(graph.export_jsonl())).splitlines()) == 7
    assert len(shared.graph.export_parquet(tmp_path)) == 3
    found = shared.both(
        lambda graph: graph.read_blob("Part", "bolt", "drawing", offset=100, length=99)
    )
    assert found == DRAWING[100:199]
    assert shared.both(lambda graph: graph.verify()).is_sound
    assert shared.both(lambda graph: graph.index_status())
    shared.raised(lambda graph: graph.query("none", AMOUNTS))


def test_writes_and_history(place: Place) -> None:
    graph = place.graph
    cursor = graph.cursor_at()
    first = graph.load(lines(part("nut", stock=1)), idempotency_key="k").commit
    assert graph.load(lines(part("nut", stock=1)), idempotency_key="k").is_repeat
    assert told(first) == told(place.at_hand.snapshot().commit)
    stale = place.at_hand.list_commits()[1].graph_commit_id
    problem = place.raised(
        lambda graph: graph.mutate('query q() { insert Bin { code: "x" } }', if_commit=stale)
    )
    assert isinstance(problem, PreconditionFailed)
    graph.mutate('query q() { insert Bin { code: "x" } }')
    page = place.both(lambda graph: graph.poll(cursor))
    assert [block.changes.stats.total for block in page.blocks] == [1, 1]
    graph.tag_create("v1")
    graph.revert(page.blocks[0].commit.graph_commit_id)
    assert amounts(graph)["nut"] == 0
    found = place.both(lambda graph: graph.diff_between(ReadTarget(tag="v1"), "main"))
    assert [change.id for change in found.changes] == ["nut"]


def test_merges_runs_and_schemas(place: Place) -> None:
    graph = place.graph
    graph.branch_create("side")
    put(graph, part("nut", stock=1), branch="side")
    put(graph, part("nut", stock=2))
    assert isinstance(place.raised(lambda graph: graph.branch_merge("side")), MergeConflicts)
    done = graph.branch_merge("side", resolve="theirs", delete_branch=True)
    assert (done.resolved, amounts(graph)["nut"]) == (1, 1)
    run = graph.begin_run()
    put(graph, bin_("b7"), branch=run.run_branch)
    assert graph.publish_run(run.run_id).status is RunStatus.PUBLISHED
    assert graph.schema_apply(SCHEMA + "node Note { text: String @key }\n").applied
    assert graph.embed_backfill().vectors_made == 0
    assert {item.committed for item in graph.optimize()} == {True, False}
    assert graph.cleanup(keep=1).is_preview is False
    assert place.both(lambda graph: graph.verify("main")).is_sound
