"""Mutations beside other writers: inserts are prepared again, changes are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    ConflictError,
    EndpointNotFound,
    PreconditionFailed,
    QueryTypeError,
    VersionConflict,
)
from omnigraph_core.exec.queries import QueryCache
from omnigraph_core.manifest.changes import AcceptSchema
from omnigraph_core.manifest.image import AcceptedSchema
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.document import (
    build_document,
    document_from_json,
    render_document,
    schema_hash,
)
from omnigraph_core.write.commit import WriteOptions
from omnigraph_core.write.mutate import run_mutation
from tests.support.graphs import HOLDS, PART, SCHEMA, append, append_parts, ids, new_graph

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.ir.compile import CompiledQuery
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.write.mutate import MutationResult

ADD = 'query add() { insert Part { sku: "new" } }'
LINK = 'query link() { insert Holds { from: "b", to: "a" } }'
SET = 'query set_it() { update Part set { stock: 1 } where sku = "a" }'
REMOVE = 'query remove() { delete Part where sku = "a" }'


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    og = new_graph(str(tmp_path / "graph"))
    append_parts(og, ["a"])
    og.mutate('query bin() { insert Bin { code: "b" } }')
    return og


def mutate_while(og: Omnigraph, text: str, action: Callable[[], object]) -> MutationResult:
    """Run a mutation; another writer acts between its reading of the head and its publish."""
    queries, asked = QueryCache(), 0

    def compiled(catalog: Catalog) -> CompiledQuery:
        nonlocal asked
        asked += 1
        if asked == 2:  # first to learn what it is, then on the state it will run on
            action()
        return queries.compiled(text, None, catalog)

    return run_mutation(og._context, compiled, {}, WriteOptions(), embedder=og._embedder)


def other(og: Omnigraph) -> Omnigraph:
    """A handle that shares nothing with the first."""
    return Omnigraph.open(og.uri)


def test_an_insert_is_prepared_again(og: Omnigraph) -> None:
    result = mutate_while(og, ADD, lambda: append_parts(other(og), ["meanwhile"]))

    assert result.affected_nodes == 1
    assert ids(og, og.snapshot()) == ["a", "meanwhile", "new"]


def test_a_keyed_insert_replaces_what_came_meanwhile(og: Omnigraph) -> None:
    mutate_while(og, ADD, lambda: append_parts(other(og), ["new"]))

    assert ids(og, og.snapshot()) == ["a", "new"]
    assert og.table(og.snapshot(), PART).read(["name"]).to_pylist()[1] == {"name": None}


@pytest.mark.parametrize("text", [SET, REMOVE])
def test_a_change_of_rows_that_moved_is_refused(og: Omnigraph, text: str) -> None:
    with pytest.raises(VersionConflict) as refused:
        mutate_while(og, text, lambda: append_parts(other(og), ["meanwhile"]))

    assert refused.value.table_key == PART
    assert ids(og, og.snapshot()) == ["a", "meanwhile"]


def test_a_node_is_not_deleted_from_under_a_new_edge(og: Omnigraph) -> None:
    with pytest.raises(VersionConflict) as refused:
        mutate_while(og, REMOVE, lambda: other(og).mutate(LINK))

    assert refused.value.table_key == HOLDS
    assert ids(og, og.snapshot()) == ["a"]


def test_an_edge_does_not_land_without_its_node(og: Omnigraph) -> None:
    with pytest.raises(EndpointNotFound, match="dst 'a' not found in Part"):
        mutate_while(og, LINK, lambda: other(og).mutate(REMOVE))

    assert ids(og, og.snapshot(), HOLDS) == []


def test_writers_of_other_tables_do_not_meet(og: Omnigraph) -> None:
    mutate_while(og, SET, lambda: append(other(og), "node:Bin", ["c"]))

    assert og.table(og.snapshot(), PART).read(["stock"]).to_pylist() == [{"stock": 1}]


def test_the_head_may_be_named(og: Omnigraph) -> None:
    head = og.snapshot().commit.graph_commit_id
    og.mutate(ADD, if_commit=head)
    with pytest.raises(PreconditionFailed):
        og.mutate(SET, if_commit=head)


def test_a_repeat_is_told_what_the_first_did(og: Omnigraph) -> None:
    first = og.mutate(REMOVE, idempotency_key="k")
    again = other(og).mutate(REMOVE, idempotency_key="k")

    assert (again.is_repeat, again.affected_nodes) == (True, 1)
    assert again.commit == first.commit
    with pytest.raises(ConflictError, match="another request"):
        og.mutate(ADD, idempotency_key="k")


def test_a_branch_made_anew_is_found(og: Omnigraph) -> None:
    og.branch_create("side")
    og.mutate(ADD, branch="side")
    fresh = other(og)
    fresh.branch_delete("side")
    fresh.branch_create("side")
    result = og.mutate('query add() { insert Bin { code: "z" } }', branch="side")

    assert ids(og, og.snapshot("side"), "node:Bin") == ["b", "z"]
    assert result.commit == og.snapshot("side").commit


def test_the_newest_schema_decides_what_a_query_may_say(tmp_path: Path) -> None:
    source = "node Part { sku: String @key name: String }"
    og = Omnigraph.init(str(tmp_path / "small"), source)
    accept(other(og), source.replace("name: String", 'name: String @default("bolt")'))
    og.mutate(ADD)

    assert og.table(og.snapshot(), PART).read(["name"]).to_pylist() == [{"name": "bolt"}]
    with pytest.raises(QueryTypeError):
        og.mutate('query add() { insert Part { name: "no key" } }')


def accept(og: Omnigraph, source: str) -> None:
    """Put another schema in force that the tables suit as they are."""
    snapshot = og.snapshot()
    before = document_from_json(json.loads(snapshot.schema.document))
    document = build_document(compile_schema(source), accepted=before)
    schema = AcceptedSchema(source, render_document(document), schema_hash(document))
    og.commit([AcceptSchema(schema)], requirements_of(snapshot, touched=[]))


def test_a_repeat_is_answered_although_the_query_fits_no_more(tmp_path: Path) -> None:
    og = new_graph(str(tmp_path / "graph"))
    query = 'query add() { insert Part { sku: "k", stock: 1 } }'
    first = og.mutate(query, idempotency_key="once")
    accept(og, SCHEMA.replace("name: String?", "name: String"))
    fresh = Omnigraph.open(og.uri)
    again = fresh.mutate(query, idempotency_key="once")
    assert (again.is_repeat, again.commit_id) == (True, first.commit_id)
    with pytest.raises(QueryTypeError, match="needs `name`"):
        fresh.mutate(query, idempotency_key="another")
