"""Ingest: a branch is made if it is missing, and then it is a load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import (
    BranchNotFound,
    ConfigError,
    ConstraintViolation,
    PreconditionFailed,
)
from tests.support.loading import ids, lines, note, part, rows, state

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


def test_a_missing_branch_is_forked(graph: Omnigraph) -> None:
    main = state(graph)[0]
    result = graph.ingest(lines(part("d"), note("m")), branch="feed", actor="feeder")
    assert result.branch_created
    assert graph.branch_list() == ("main", "feed")
    assert ids(graph, "Part", "feed") == ["a", "b", "c", "d"]
    assert ids(graph, "Part") == ["a", "b", "c"]
    assert graph.head_commit_id_for_branch() == main
    head = graph.get_commit(graph.head_commit_id_for_branch("feed"))
    assert result.to_json() == {
        "branch": "feed",
        "base_branch": "main",
        "branch_created": True,
        "mode": "merge",
        "tables": [
            {"table_key": "node:Note", "rows_loaded": 1},
            {"table_key": "node:Part", "rows_loaded": 1},
        ],
        "actor_id": "feeder",
        "commit_id": head.graph_commit_id,
        "manifest_version": head.manifest_version,
        "records_rejected": 0,
        "vectors_made": 0,
        "vectors_pending": 0,
        "dry_run": False,
        "repeated": False,
    }
    assert head.actor_id == "feeder"


def test_a_branch_that_is_there_is_used(graph: Omnigraph) -> None:
    graph.branch_create("feed")
    graph.load(lines(part("d")), branch="feed")
    result = graph.ingest(lines(part("e")), branch="feed")
    assert not result.branch_created
    assert ids(graph, "Part", "feed") == ["a", "b", "c", "d", "e"]


def test_main_is_there(graph: Omnigraph) -> None:
    result = graph.ingest(lines(part("d")))
    assert (result.branch, result.branch_created) == ("main", False)
    assert ids(graph, "Part") == ["a", "b", "c", "d"]


def test_from_another_branch(graph: Omnigraph) -> None:
    graph.branch_create("base")
    graph.load(lines(part("d")), branch="base")
    result = graph.ingest(lines(part("e")), branch="feed", source="base")
    assert (result.base_branch, result.branch_created) == ("base", True)
    assert ids(graph, "Part", "feed") == ["a", "b", "c", "d", "e"]


def test_from_a_branch_that_is_not_there(graph: Omnigraph) -> None:
    before = state(graph)
    with pytest.raises(BranchNotFound, match="nowhere"):
        graph.ingest(lines(part("e")), branch="feed", source="nowhere")
    assert state(graph) == before


def test_modes(graph: Omnigraph) -> None:
    graph.ingest(lines(note("n", rank=4)), branch="feed", mode="merge")
    assert rows(graph, "Note", "feed") == {"n": {"rank": 4}}
    with pytest.raises(ConfigError, match="sideways"):
        graph.ingest(lines(note("n")), branch="other", mode="sideways")
    assert "other" not in graph.branch_list()


def test_a_refused_load_leaves_the_new_branch_as_it_was_forked(graph: Omnigraph) -> None:
    main = state(graph)
    with pytest.raises(ConstraintViolation):
        graph.ingest(lines(part("d"), part("e", stock=101)), branch="feed")
    assert graph.branch_list() == ("main", "feed")
    assert state(graph, "feed")[3] == main[3]
    assert graph.ingest(lines(part("d")), branch="feed").branch_created is False


def test_a_dry_run_makes_no_branch(graph: Omnigraph) -> None:
    before = state(graph)
    result = graph.ingest(lines(part("d")), branch="feed", dry_run=True)
    assert state(graph) == before
    assert (result.branch, result.branch_created) == ("feed", False)
    assert (result.loaded.branch, result.loaded.nodes_loaded) == ("feed", 1)
    assert result.loaded.is_dry_run
    with pytest.raises(ConstraintViolation, match="stock"):
        graph.ingest(lines(part("d", stock=101)), branch="feed", dry_run=True)
    with pytest.raises(BranchNotFound):
        graph.ingest(lines(part("d")), branch="feed", source="nowhere", dry_run=True)
    assert state(graph) == before


def test_a_dry_run_checks_against_the_branch_it_would_fork(graph: Omnigraph) -> None:
    graph.branch_create("base")
    graph.load(lines(part("d", serial="S9")), branch="base")
    with pytest.raises(ConstraintViolation, match="S9"):
        graph.ingest(lines(part("e", serial="S9")), branch="feed", source="base", dry_run=True)
    assert graph.ingest(lines(part("e", serial="S9")), branch="feed", dry_run=True)


def test_a_dry_run_on_a_branch_that_is_there(graph: Omnigraph) -> None:
    graph.branch_create("feed")
    before = state(graph, "feed")
    result = graph.ingest(lines(part("d")), branch="feed", dry_run=True)
    assert result.loaded.nodes_loaded == 1
    assert state(graph, "feed") == before


def test_an_input_that_is_not_there_makes_no_branch(graph: Omnigraph, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        graph.ingest(tmp_path / "nothing.jsonl", branch="feed")
    assert graph.branch_list() == ("main",)


def test_bad_records_can_be_left_out(graph: Omnigraph, tmp_path: Path) -> None:
    rejects = tmp_path / "rejects.jsonl"
    result = graph.ingest(
        lines(part("d"), part("e", stock=101)), branch="feed", skip_bad=True, rejects=rejects
    )
    assert result.loaded.records_rejected == 1
    assert ids(graph, "Part", "feed") == ["a", "b", "c", "d"]
    assert len(rejects.read_text().splitlines()) == 1


def test_a_condition_on_the_head(graph: Omnigraph) -> None:
    head = graph.head_commit_id_for_branch()
    graph.load(lines(part("d")))
    with pytest.raises(PreconditionFailed):
        graph.ingest(lines(part("e")), if_commit=head)
    assert ids(graph, "Part") == ["a", "b", "c", "d"]


def test_a_key_makes_it_safe_to_repeat(graph: Omnigraph) -> None:
    first = graph.ingest(lines(note()), branch="feed", idempotency_key="k")
    again = graph.ingest(lines(note()), branch="feed", idempotency_key="k")
    assert (first.branch_created, again.branch_created) == (True, False)
    assert again.loaded.is_repeat
    assert again.loaded.commit == first.loaded.commit
    assert len(ids(graph, "Note", "feed")) == 2
