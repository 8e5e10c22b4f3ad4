"""Vectors put into rows: where they are lacking, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.embedding.config import EmbedConfig, Provider
from omnigraph_core.embedding.embedder import Embedder
from omnigraph_core.embedding.mock import mock_vectors
from omnigraph_core.embedding.origin import fingerprint
from omnigraph_core.errors import EmbeddingError
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.write.embed import (
    EmbedMode,
    VectorFiller,
    clear_vectors,
    lacks_vector,
    put_vectors,
)

NODE = compile_schema("""
node Article {
  slug: String @key
  title: String?
  body: String?
  first: Vector(2)? @embed("title")
  second: Vector(3)? @embed("body")
}
""").nodes["Article"]
SCHEMA = pa.schema([field.with_nullable(True) for field in table_schema(NODE)])

MOCK = Embedder(lambda: EmbedConfig(Provider.MOCK, "mock"))
WITHOUT_KEY = Embedder(
    lambda: EmbedConfig(Provider.OPENAI, "m", "http://127.0.0.1:9", key_name="OPENAI_API_KEY")
)


def table(*rows: dict[str, Any], chunk: int = 2) -> pa.Table:
    """Rows in several chunks."""
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in SCHEMA]
    whole = pa.Table.from_arrays(columns, schema=SCHEMA)
    return pa.Table.from_batches(whole.to_batches(chunk), SCHEMA)


def column(rows: pa.Table, name: str) -> list[Any]:
    found: list[Any] = rows.column(name).to_pylist()
    return found


def vector(text: str, dimension: int) -> list[float]:
    return [float(number) for number in mock_vectors([text], dimension)[0]]


ROWS = table(
    {"slug": "a", "title": "one"},
    {"slug": "b", "title": "two", "first": [5, 6], "body": "long"},
    {"slug": "c", "body": "long"},
    {"slug": "d", "title": " \t", "body": ""},
    {"slug": "e", "title": "one"},
)


def test_where_a_vector_is_lacking() -> None:
    first = lacks_vector(ROWS, "first", NODE.embeddings["first"])
    second = lacks_vector(ROWS, "second", NODE.embeddings["second"])
    assert first.to_pylist() == [True, False, False, False, True]
    assert second.to_pylist() == [False, True, True, False, False]


def test_every_column_is_filled() -> None:
    told: list[int] = []
    filled = VectorFiller(MOCK, EmbedMode.NOW, told.append).fill(ROWS, NODE)
    one = vector("one", 2)
    assert column(filled, "first") == [one, [5, 6], None, None, one]
    assert column(filled, "second") == [None, *[vector("long", 3)] * 2, None, None]
    mark = fingerprint("mock", "one")
    assert column(filled, "first#origin") == [mark, None, None, None, mark]
    assert sum(told) == 4
    assert filled.schema.names == ROWS.schema.names
    assert filled.schema.types == ROWS.schema.types
    assert filled.drop_columns(["first", "second", "first#origin", "second#origin"]) == (
        ROWS.drop_columns(["first", "second", "first#origin", "second#origin"])
    )
    filled.validate(full=True)


def test_nothing_lacking_changes_nothing() -> None:
    rows = table({"slug": "b", "title": "two", "first": [5, 6]})
    assert VectorFiller(WITHOUT_KEY, EmbedMode.NOW).fill(rows, NODE) is rows


def test_no_rows() -> None:
    rows = SCHEMA.empty_table()
    assert VectorFiller(WITHOUT_KEY, EmbedMode.NOW).fill(rows, NODE).num_rows == 0


def test_off_asks_for_nothing() -> None:
    assert VectorFiller(WITHOUT_KEY, EmbedMode.OFF).fill(ROWS, NODE) is ROWS


def test_now_fails_with_the_provider() -> None:
    with pytest.raises(EmbeddingError, match="OPENAI_API_KEY"):
        VectorFiller(WITHOUT_KEY, EmbedMode.NOW).fill(ROWS, NODE)


def test_defer_remembers_why_and_does_not_ask_again() -> None:
    filler = VectorFiller(WITHOUT_KEY, EmbedMode.DEFER)
    assert filler.fill(ROWS, NODE) is ROWS
    first = filler.failure
    assert isinstance(first, EmbeddingError)
    assert filler.fill(ROWS, NODE) is ROWS
    assert filler.failure is first


def test_put_and_clear() -> None:
    at = pa.array([False, True, True, False, False])
    made = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    rows = put_vectors(ROWS, "second", at, made, [7, 8])
    assert column(rows, "second") == [None, [1, 2, 3], [4, 5, 6], None, None]
    assert column(rows, "second#origin") == [None, 7, 8, None, None]
    cleared = clear_vectors(rows, "second", pa.array([True, True, False, False, True]))
    assert column(cleared, "second") == [None, None, [4, 5, 6], None, None]
    assert column(cleared, "second#origin") == [None, None, 8, None, None]
    assert column(cleared, "first") == column(ROWS, "first")
    cleared.validate(full=True)


def test_rows_cut_out_of_others() -> None:
    """A slice shares the memory of its neighbours, and must not take their vectors."""
    given = table(*({"slug": str(n), "title": "x", "first": [n, n]} for n in range(6)), chunk=6)
    rows = given.slice(2, 3)
    at = pa.array([False, True, False])
    put = put_vectors(rows, "first", at, np.array([[9, 9]], np.float32), [1])
    assert column(put, "first") == [[2, 2], [9, 9], [4, 4]]
    assert column(clear_vectors(rows, "first", at), "first") == [[2, 2], None, [4, 4]]
