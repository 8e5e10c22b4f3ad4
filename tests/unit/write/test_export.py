"""Which tables an export takes."""

from __future__ import annotations

import pytest

from omnigraph_core.errors import ConfigError, ErrorKind
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.write.export import exported_columns, select_tables

CATALOG = compile_schema("""
node Part {
  sku: String @key
  drawing: Blob?
  shape: Vector(2)? @embed("sku")
}
node Bin {
  code: String @key
}
node Needs {
  text: String
}
edge Needs: Part -> Part {
  sketch: Blob?
}
edge Holds: Bin -> Part
""")


def keys(**filters: list[str]) -> list[str]:
    return [type.table_key for type in select_tables(CATALOG, **filters)]


def test_everything_by_table_key() -> None:
    assert keys() == ["edge:Holds", "edge:Needs", "node:Bin", "node:Needs", "node:Part"]


def test_a_name_takes_the_node_and_the_edge_that_have_it() -> None:
    assert keys(types=["Needs"]) == ["edge:Needs", "node:Needs"]


def test_a_table_key_takes_one() -> None:
    assert keys(table_keys=["node:Needs"]) == ["node:Needs"]


def test_filters_add_up_and_repeat_nothing() -> None:
    found = keys(types=["Part", "Holds", "Part"], table_keys=["node:Part", "node:Bin"])
    assert found == ["edge:Holds", "node:Bin", "node:Part"]


def test_unknown_names_are_told_all_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        keys(types=["part", "Part", "Xyzzy"], table_keys=["node:Bins", "edge:Bin", "Part"])
    assert caught.value.kind is ErrorKind.BAD_REQUEST
    assert caught.value.message == (
        "cannot export: no type `part` (did you mean `Part`?), no type `Xyzzy`, "
        "no table key `node:Bins` (did you mean `node:Bin`?), "
        "no table key `edge:Bin` (did you mean `node:Bin`?), "
        "no table key `Part` (did you mean `node:Part`?)"
    )


def test_addresses_of_blobs_are_read_and_origins_of_vectors_are_not() -> None:
    node, edge = CATALOG.nodes["Part"], CATALOG.edges["Needs"]
    assert exported_columns(node) == ("id", "sku", "drawing", "drawing#uri", "shape")
    assert exported_columns(edge) == ("id", "src", "dst", "sketch", "sketch#uri")
