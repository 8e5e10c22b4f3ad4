"""Jobs, which only a server has: what was asked for is the same, and how it went can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from omnigraph_core.errors import ConflictError, DataError, NotFoundError
from tests.behaviour.stock import bin_, lines, part
from tests.support.ways import Way, facts

if TYPE_CHECKING:
    from omnigraph_core.client.remote import RemoteGraph
    from tests.support.ways import Place

pytestmark = pytest.mark.parametrize("way", [Way.HTTP], indirect=True, scope="module")


def test_jobs_are_listed_and_told(place: Place) -> None:
    graph = cast("RemoteGraph", place.graph)
    assert graph.list_jobs() == ()
    loaded = graph.load(lines(bin_("b3")), progress=lambda _: None)
    with pytest.raises(DataError) as refused:
        graph.load(lines(part("x", stock=-1)), progress=lambda _: None)
    graph.optimize()
    newest = graph.list_jobs()
    told = [(job.operation, str(job.status), job.branch) for job in newest]
    assert told == [
        ("optimize", "done", "main"), ("load", "failed", "main"), ("load", "done", "main"),
    ]  # fmt: skip
    first = graph.get_job(newest[2].job_id)
    assert loaded.commit is not None
    assert first.result["commit_id"] == loaded.commit.graph_commit_id
    failed = graph.get_job(newest[1].job_id)
    assert failed.error is not None
    assert facts(failed.error)["code"] == facts(refused.value)["code"]
    run = place.at_hand.get_run(first.run_id)
    assert (run.run_id, str(run.status)) == (first.job_id, "published")


def test_what_has_ended_or_never_was_cannot_be_stopped(place: Place) -> None:
    graph = cast("RemoteGraph", place.graph)
    graph.load(lines(bin_("b3")), progress=lambda _: None)
    with pytest.raises(ConflictError, match="it is done"):
        graph.cancel_job(graph.list_jobs()[0].job_id)
    for call in (graph.get_job, graph.cancel_job):
        with pytest.raises(NotFoundError):
            call("01ARZ3NDEKTSV4RRFFQ69G5FAV")
