"""Vectors in every state there is: which are stale, and what a backfill makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.embedding.mock import mock_vectors
from omnigraph_core.embedding.origin import fingerprint
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.write.backfill import BackfillResult, EmbeddingStatus

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = """
node Article {
  slug: String @key
  body: String?
  topic: Vector(2)? @embed("body")
}
"""
KEY = "node:Article"
OLD = [1.0, 0.0]
OF_ONE, OF_GONE = fingerprint("mock", "one"), fingerprint("mock", "gone")

Row = tuple[str | None, list[float] | None, int | None]
"""Text, vector, and what the vector was made of."""

READY: dict[str, Row] = {"made": ("one", OLD, OF_ONE), "given": ("two", OLD, None)}
GIVEN_WITHOUT_TEXT: dict[str, Row] = {"bare": (None, OLD, None)}
PENDING: dict[str, Row] = {"pending": ("three", None, None)}
STALE: dict[str, Row] = {"changed": ("four", OLD, OF_GONE)}
STALE_BLANK: dict[str, Row] = {"null": (None, OLD, OF_GONE), "blank": (" ", OLD, OF_GONE)}
NOTHING: dict[str, Row] = {"none": (None, None, None), "spaces": ("  ", None, None)}


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Omnigraph:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    return Omnigraph.init(str(tmp_path / "graph"), SCHEMA)


def put(graph: Omnigraph, rows: dict[str, Row]) -> None:
    """Store rows as they are, in states that only a merge of branches brings about."""
    snapshot = graph.snapshot()
    table = graph.table(snapshot, KEY)
    texts, vectors, origins = zip(*rows.values(), strict=True)
    data = pa.table([[*rows], [*rows], [*texts], [*vectors], [*origins]], schema=table.schema)
    staged = stage_append(table, data)
    assert staged is not None
    change = UpdateTable.of(KEY, staged, TableOperation.APPEND)
    graph.commit([change], requirements_of(snapshot, touched=[KEY]), operation="test")


def stored(graph: Omnigraph) -> dict[str, Row]:
    found = graph.table(graph.snapshot(), KEY).read()
    columns = (found.column(name).to_pylist() for name in ("body", "topic", "topic#origin"))
    return dict(zip(found.column("id").to_pylist(), zip(*columns, strict=True), strict=True))


def vector(text: str) -> list[float]:
    return [float(number) for number in mock_vectors([text], 2)[0]]


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        (READY, (2, 0, 0)),
        (GIVEN_WITHOUT_TEXT, (1, 0, 0)),
        (PENDING, (0, 1, 0)),
        (STALE, (0, 0, 1)),
        (STALE_BLANK, (0, 0, 2)),
        (NOTHING, (0, 0, 0)),
        (READY | PENDING | STALE | STALE_BLANK | NOTHING, (2, 1, 3)),
    ],
)
def test_status(graph: Omnigraph, rows: dict[str, Row], counts: tuple[int, int, int]) -> None:
    put(graph, rows)
    assert graph.embedding_status() == (EmbeddingStatus("Article", "topic", "mock", *counts),)


def test_a_backfill(graph: Omnigraph) -> None:
    untouched = READY | GIVEN_WITHOUT_TEXT | NOTHING
    put(graph, untouched | PENDING | STALE | STALE_BLANK)
    result = graph.embed_backfill()
    assert result.vectors_made == 2
    assert len(result.commits) == 1
    expected: dict[str, Any] = {
        **untouched,
        "pending": ("three", vector("three"), fingerprint("mock", "three")),
        "changed": ("four", vector("four"), fingerprint("mock", "four")),
        "null": (None, None, None),
        "blank": (" ", None, None),
    }
    assert stored(graph) == expected
    assert graph.embedding_status() == (EmbeddingStatus("Article", "topic", "mock", 5, 0, 0),)
    assert graph.embed_backfill() == BackfillResult("main", 0, ())


def test_vectors_without_a_text_are_cleared(graph: Omnigraph) -> None:
    put(graph, STALE_BLANK)
    result = graph.embed_backfill()
    assert (result.vectors_made, len(result.commits)) == (0, 1), "a change, though none was made"
    assert all(row[1:] == (None, None) for row in stored(graph).values())


def test_nothing_to_do_is_no_commit(graph: Omnigraph) -> None:
    put(graph, READY | NOTHING)
    before = graph.head_commit_id_for_branch()
    assert graph.embed_backfill() == BackfillResult("main", 0, ())
    assert graph.head_commit_id_for_branch() == before


def test_the_same_text_in_many_rows(graph: Omnigraph) -> None:
    put(graph, {str(number): ("same", None, None) for number in range(50)})
    assert graph.embed_backfill().vectors_made == 50
    assert {tuple(row[1] or ()) for row in stored(graph).values()} == {tuple(vector("same"))}
