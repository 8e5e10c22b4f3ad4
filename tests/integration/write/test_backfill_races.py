"""Backfills beside changes of the schema: what nobody wants any more is not written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.manifest.changes import AcceptSchema, TombstoneTable, UpdateTable
from omnigraph_core.manifest.image import AcceptedSchema, TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.document import (
    build_document,
    document_from_json,
    render_document,
    schema_hash,
)
from omnigraph_core.write import backfill
from omnigraph_core.write.backfill import BackfillResult
from tests.support.loading import lines, rows
from tests.support.table_writes import drop_column

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omnigraph_core.manifest.changes import Change
    from omnigraph_core.write.progress import Progress

SCHEMA = """
node Article {
  slug: String @key
  body: String?
  title: String?
  topic: Vector(4)? @embed("body")
}
node Note {
  text: String?
}
"""
KEY = "node:Article"
NOTHING = BackfillResult("main", 0, ())


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Omnigraph:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    records = [{"type": "Article", "data": {"slug": slug, "body": slug}} for slug in "abc"]
    graph.load(lines(*records), embed="off")
    return graph


def accept(graph: Omnigraph, source: str, changes: Sequence[Change] = ()) -> None:
    """What applying a schema comes to."""
    snapshot = graph.snapshot()
    before = document_from_json(json.loads(snapshot.schema.document))
    document = build_document(compile_schema(source), accepted=before)
    accepted = AcceptedSchema(source, render_document(document), schema_hash(document))
    touched = [KEY] if changes else []
    requirements = requirements_of(snapshot, touched=touched)
    graph.commit([AcceptSchema(accepted), *changes], requirements, operation="test")


def without(graph: Omnigraph, *columns: str) -> UpdateTable:
    table = graph.table(graph.snapshot(), KEY)
    for column in columns:
        table = drop_column(table, column)
    return UpdateTable.of(KEY, table, TableOperation.SCHEMA)


def declaring(*replacements: tuple[str, str]) -> str:
    text = SCHEMA
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return text


VECTOR = '  topic: Vector(4)? @embed("body")\n'


def drop_vector(graph: Omnigraph) -> None:
    accept(graph, declaring((VECTOR, "")), [without(graph, "topic#origin", "topic")])


def drop_text(graph: Omnigraph) -> None:
    source = declaring((VECTOR, ""), ("  body: String?\n", ""))
    accept(graph, source, [without(graph, "topic#origin", "topic", "body")])


def drop_type(graph: Omnigraph) -> None:
    article = SCHEMA[: SCHEMA.index("node Note")]
    accept(graph, declaring((article, "\n")), [TombstoneTable(KEY)])


def embed_other_text(graph: Omnigraph) -> None:
    accept(graph, declaring(('@embed("body")', '@embed("title")')))


def embed_with_other_model(graph: Omnigraph) -> None:
    accept(graph, declaring(('@embed("body")', '@embed("body", model="newer")')))


def embed_no_more(graph: Omnigraph) -> None:
    source = declaring((' @embed("body")', ""))
    accept(graph, source, [without(graph, "topic#origin")])


CHANGES = [
    drop_vector, drop_text, drop_type, embed_other_text, embed_with_other_model, embed_no_more,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("part_rows", [2, 20_000])
def test_a_property_that_changes_once_vectors_are_made(
    graph: Omnigraph, monkeypatch: pytest.MonkeyPatch, change: object, part_rows: int
) -> None:
    assert callable(change)
    monkeypatch.setattr(backfill, "PART_ROWS", part_rows)
    pending = [change]

    def listen(progress: Progress) -> None:
        if pending:
            pending.pop()(Omnigraph.open(graph.uri))

    assert graph.embed_backfill(progress=listen) == NOTHING
    assert pending == []
    fresh = Omnigraph.open(graph.uri)
    assert fresh.head_commit_id_for_branch() == graph.head_commit_id_for_branch()
    if change is not drop_type:
        assert {values.get("topic") for values in rows(fresh, "Article").values()} == {None}


def test_other_changes_of_the_schema_do_not_matter(graph: Omnigraph) -> None:
    pending = [declaring(("  text: String?\n", '  text: String? @description("what it says")\n'))]

    def listen(progress: Progress) -> None:
        if pending:
            accept(Omnigraph.open(graph.uri), pending.pop())

    result = graph.embed_backfill(progress=listen)
    assert (result.vectors_made, len(result.commits)) == (3, 1)
    assert [item.ready for item in graph.embedding_status()] == [3]
