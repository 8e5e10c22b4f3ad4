"""Making and opening graphs."""

from __future__ import annotations

import json

import obstore
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    AlreadyExists,
    GraphNotFound,
    SchemaError,
    SchemaSyntaxError,
    StorageError,
)
from omnigraph_core.storage.objects import delete_all, list_objects, put
from omnigraph_core.storage.session import Store, open_store
from tests.support.graphs import BIN, HOLDS, PART, SCHEMA, append_pair, content, ids, new_graph


def everything(root: str) -> dict[str, bytes]:
    """Every object below a root with its bytes."""
    store = open_store(root)
    return {item.path: read(store, item.path) for item in list_objects(store, "")}


def read(store: Store, path: str) -> bytes:
    return bytes(obstore.get(store.objects, path).bytes())


def lose_catalog(root: str) -> None:
    store = open_store(root)
    delete_all(store, [item.path for item in list_objects(store, "__manifest")])


def test_a_new_graph(og: Omnigraph, graph_root: str) -> None:
    snapshot = og.snapshot()
    assert og.uri == graph_root
    assert (snapshot.branch, snapshot.manifest_version) == ("main", 1)
    assert {key: table.row_count for key, table in snapshot.tables.items()} == {
        BIN: 0,
        HOLDS: 0,
        PART: 0,
    }
    assert [ids(og, snapshot, key) for key in snapshot.tables] == [[], [], []]
    assert snapshot.schema.source == SCHEMA
    assert json.loads(snapshot.schema.document)
    assert og.branch_list() == ("main",)
    assert og.tag_list() == og.list_runs() == ()


def test_opening_again(og: Omnigraph) -> None:
    append_pair(og, ["a", "b"])
    again = Omnigraph.open(og.uri)
    assert again.snapshot() == og.snapshot()
    assert content(again, again.snapshot()) == content(og, og.snapshot())
    append_pair(again, ["c"])
    assert ids(og, og.snapshot()) == ["a", "b", "c"], "a handle sees what others have done"


def test_making_an_existing_graph_changes_nothing(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    og.branch_create("review")
    before = everything(og.uri)
    for schema in (SCHEMA, "node Other { name: String @key }"):
        with pytest.raises(AlreadyExists, match=og.uri) as caught:
            Omnigraph.init(og.uri, schema)
        assert caught.value.hint == "open it, or choose another address"
    assert everything(og.uri) == before


def test_a_wrong_schema_makes_nothing(graph_root: str) -> None:
    with pytest.raises(SchemaSyntaxError):
        Omnigraph.init(graph_root, "node Part {")
    with pytest.raises(SchemaError):
        Omnigraph.init(graph_root, "edge Holds: Bin -> Part")
    with pytest.raises(GraphNotFound):
        Omnigraph.open(graph_root)


def test_opening_nothing(graph_root: str) -> None:
    with pytest.raises(GraphNotFound, match=graph_root) as caught:
        Omnigraph.open(graph_root)
    assert "init" in str(caught.value.hint)


def test_other_files_are_left_alone(graph_root: str) -> None:
    store = open_store(graph_root)
    store.create_root()
    others = {
        "notes.txt": b"hello",
        "nodes/readme.md": b"mine",
        "_refs/old/branches.json": b"{}",
        "manifest": b"",
    }
    for path, text in others.items():
        put(store, path, text)
    og = new_graph(graph_root)
    append_pair(og, ["a"])
    og.optimize()
    og.cleanup(keep=1)
    now = everything(graph_root)
    assert {path: now[path] for path in others} == others
    assert ids(Omnigraph.open(graph_root), og.snapshot()) == ["a"]


def test_init_after_one_that_ended_early(og: Omnigraph) -> None:
    """Tables were made, the catalog was not: the tables are used."""
    locations = {key: table.location for key, table in og.snapshot().tables.items()}
    lose_catalog(og.uri)
    with pytest.raises(GraphNotFound):
        Omnigraph.open(og.uri)
    again = new_graph(og.uri)
    assert {key: table.location for key, table in again.snapshot().tables.items()} == locations
    append_pair(again, ["a"])
    assert ids(Omnigraph.open(og.uri), again.snapshot()) == ["a"]


def test_init_after_one_with_another_schema_that_ended_early(og: Omnigraph) -> None:
    old = og.snapshot()
    lose_catalog(og.uri)
    schema = "node Part { label: String @key }\nnode Bin { code: String @key }"
    again = Omnigraph.init(og.uri, schema)
    tables = again.snapshot().tables
    assert set(tables) == {PART, BIN}
    assert tables[BIN].location == old.tables[BIN].location
    assert tables[PART].location.startswith(f"{old.tables[PART].location}-")
    assert again.table(again.snapshot(), PART).schema.names == ["id", "label"]


def test_a_graph_without_its_catalog_is_not_made_anew(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    lose_catalog(og.uri)
    before = everything(og.uri)
    for attempt in (lambda: Omnigraph.open(og.uri), lambda: new_graph(og.uri)):
        with pytest.raises(StorageError, match="has lost its catalog `__manifest`") as caught:
            attempt()
        assert og.uri in caught.value.message
        assert "restore" in str(caught.value.hint)
    assert everything(og.uri) == before


def test_branches_alone_prove_a_graph(og: Omnigraph) -> None:
    og.branch_create("review")
    lose_catalog(og.uri)
    with pytest.raises(StorageError, match="has lost its catalog"):
        new_graph(og.uri)
