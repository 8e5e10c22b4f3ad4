"""Writes on a condition, and writes that are safe to repeat: load and mutate alike."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    ConfigError,
    ConflictError,
    ConstraintViolation,
    ParameterError,
    PreconditionFailed,
)
from tests.support.loading import ids, lines, note, part, rows, state

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Write = Callable[..., Any]


def load_note(graph: Omnigraph, rank: int = 1, **options: Any) -> Any:
    return graph.load(lines(note(rank=rank)), **options)


def insert_note(graph: Omnigraph, rank: int = 1, **options: Any) -> Any:
    query = "query add($rank: I64) { insert Note { rank: $rank } }"
    return graph.mutate(query, {"rank": rank}, **options)


BOTH = pytest.mark.parametrize("write", [load_note, insert_note])


# On a condition


@BOTH
def test_lands_on_the_expected_head(graph: Omnigraph, write: Write) -> None:
    head = graph.head_commit_id_for_branch()
    result = write(graph, if_commit=head)
    assert result.commit.parents == (head,)


@BOTH
def test_does_not_land_on_another_head(graph: Omnigraph, write: Write) -> None:
    old = graph.head_commit_id_for_branch()
    graph.load(lines(part("d")))
    before = state(graph)
    with pytest.raises(PreconditionFailed) as caught:
        write(graph, if_commit=old)
    assert (caught.value.member, caught.value.expected) == ("head", old)
    assert caught.value.actual == graph.head_commit_id_for_branch()
    assert state(graph) == before


@BOTH
def test_looks_at_the_newest_head(graph: Omnigraph, write: Write) -> None:
    """Not at the one that was known: another process may have moved it."""
    old = graph.head_commit_id_for_branch()
    Omnigraph.open(graph.uri).load(lines(part("d")))
    with pytest.raises(PreconditionFailed):
        write(graph, if_commit=old)
    assert write(graph, if_commit=graph.head_commit_id_for_branch()).commit is not None


@BOTH
def test_the_head_of_the_branch(graph: Omnigraph, write: Write) -> None:
    graph.branch_create("draft")
    graph.load(lines(part("d")))
    draft = graph.head_commit_id_for_branch("draft")
    with pytest.raises(PreconditionFailed):
        write(graph, if_commit=draft)
    assert write(graph, branch="draft", if_commit=draft).commit is not None


def test_a_dry_run_keeps_the_condition(graph: Omnigraph) -> None:
    head = graph.head_commit_id_for_branch()
    assert load_note(graph, if_commit=head, dry_run=True).nodes_loaded == 1
    graph.load(lines(part("d")))
    with pytest.raises(PreconditionFailed):
        load_note(graph, if_commit=head, dry_run=True)


# Under a key


@BOTH
def test_a_repeat_writes_nothing_and_has_the_same_result(graph: Omnigraph, write: Write) -> None:
    first = write(graph, idempotency_key="k", actor="tester")
    before = state(graph)
    again = write(graph, idempotency_key="k", actor="tester")
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert again == replace(first, is_repeat=True)
    assert again.to_json() == {**first.to_json(), "repeated": True}
    assert state(graph) == before


@BOTH
def test_a_repeat_from_another_process_after_other_writes(graph: Omnigraph, write: Write) -> None:
    first = write(graph, idempotency_key="k")
    graph.load(lines(part("d")))
    before = state(graph)
    again = write(Omnigraph.open(graph.uri), idempotency_key="k")
    assert again == replace(first, is_repeat=True)
    assert state(graph) == before


@BOTH
def test_a_key_is_for_one_request(graph: Omnigraph, write: Write) -> None:
    write(graph, idempotency_key="k")
    before = state(graph)
    with pytest.raises(ConflictError, match="`k` was used for another request"):
        write(graph, rank=2, idempotency_key="k")
    assert state(graph) == before


@BOTH
def test_other_keys_are_other_requests(graph: Omnigraph, write: Write) -> None:
    write(graph, idempotency_key="k")
    assert not write(graph, idempotency_key="l").is_repeat
    assert not write(graph).is_repeat
    assert len(ids(graph, "Note")) == 4


@BOTH
def test_a_branch_has_its_own_keys(graph: Omnigraph, write: Write) -> None:
    graph.branch_create("draft")
    first = write(graph, idempotency_key="k")
    other = write(graph, branch="draft", idempotency_key="k")
    assert not other.is_repeat
    assert other.commit != first.commit


@BOTH
def test_a_repeat_does_not_mind_a_head_that_it_has_moved_itself(
    graph: Omnigraph, write: Write
) -> None:
    head = graph.head_commit_id_for_branch()
    first = write(graph, if_commit=head, idempotency_key="k")
    again = write(graph, if_commit=head, idempotency_key="k")
    assert again == replace(first, is_repeat=True)


@BOTH
def test_a_refused_write_does_not_use_its_key(graph: Omnigraph, write: Write) -> None:
    with pytest.raises(ConstraintViolation):
        write(graph, rank=99, idempotency_key="k")
    assert not write(graph, rank=1, idempotency_key="k").is_repeat


@BOTH
@pytest.mark.parametrize("key", ["", "a\nb", "x" * 201])
def test_keys_that_cannot_be(graph: Omnigraph, write: Write, key: str) -> None:
    before = state(graph)
    with pytest.raises(ConfigError, match="idempotency key"):
        write(graph, idempotency_key=key)
    assert state(graph) == before


def test_load_and_mutation_do_not_share_a_key(graph: Omnigraph) -> None:
    load_note(graph, idempotency_key="k")
    with pytest.raises(ConflictError, match="another request"):
        insert_note(graph, idempotency_key="k")


def test_the_same_data_is_the_same_request(graph: Omnigraph, tmp_path: Path) -> None:
    """Whatever the file is called, and from wherever it comes."""
    data = lines(note(rank=3))
    path = tmp_path / "notes.jsonl"
    path.write_bytes(data)
    first = graph.load(path, idempotency_key="k")
    other = tmp_path / "other.json.gz"
    other.write_bytes(gzip.compress(data))
    with path.open("rb") as stream:
        for again in (data, str(path), stream, other):
            assert graph.load(again, idempotency_key="k") == replace(first, is_repeat=True)
    assert len(ids(graph, "Note")) == 2


def test_another_mode_is_another_request(graph: Omnigraph) -> None:
    load_note(graph, idempotency_key="k")
    with pytest.raises(ConflictError, match="another request"):
        load_note(graph, mode="append", idempotency_key="k")


def test_what_a_repeat_tells_of_rejects(graph: Omnigraph) -> None:
    data = lines(note(rank=99), note(rank=1))
    first = graph.load(data, skip_bad=True, idempotency_key="k")
    again = graph.load(data, skip_bad=True, idempotency_key="k")
    assert first.records_rejected == again.records_rejected == 1
    assert again.tables == first.tables


def test_another_parameter_is_another_request(graph: Omnigraph) -> None:
    query = 'query set($stock: I64) { update Part set { stock: $stock } where sku = "a" }'
    first = graph.mutate(query, {"stock": 1}, idempotency_key="k")
    graph.mutate(query, {"stock": 2})
    assert graph.mutate(query, {"stock": 1}, idempotency_key="k") == replace(first, is_repeat=True)
    assert rows(graph, "Part")["a"]["stock"] == 2, "it was done before, it is not done again"
    with pytest.raises(ConflictError, match="another request"):
        graph.mutate(query, {"stock": 3}, idempotency_key="k")


def test_a_request_may_be_spelt_otherwise(graph: Omnigraph) -> None:
    query = (
        "query set($sku: String, $stock: I64, $code: String?) "
        "{ update Part set { stock: $stock, code: $code } where sku = $sku }"
    )
    first = graph.mutate(query, {"sku": "a", "stock": 1}, idempotency_key="k", actor="ada")
    other = {"stock": 1, "code": None, "sku": "a"}
    again = graph.mutate(query, other, idempotency_key="k", actor="bob")
    assert again == replace(first, is_repeat=True)
    assert again.actor_id == "ada"


def test_parameters_that_are_no_json(graph: Omnigraph) -> None:
    circular: list[object] = []
    circular.append(circular)
    query = "query add($rank: I64) { insert Note { rank: $rank } }"
    with pytest.raises(ParameterError):
        graph.mutate(query, {"rank": circular}, idempotency_key="k")


def test_bad_records_left_out_are_another_request(graph: Omnigraph) -> None:
    given = lines(part("p"), part("q", stock=500))
    graph.load(given, skip_bad=True, idempotency_key="k")
    with pytest.raises(ConflictError, match="another request"):
        graph.load(given, idempotency_key="k")
