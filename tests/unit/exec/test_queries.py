"""Compiled queries are kept for their catalog, unless they are very long."""

from __future__ import annotations

from omnigraph_core.exec.queries import QueryCache
from omnigraph_core.schema.build import compile_schema

SCHEMA = "node Part { sku: String @key  stock: I64? }"
SHORT = 'query add() { insert Part { sku: "a" } }'


def test_the_same_query_is_compiled_once() -> None:
    queries, catalog = QueryCache(), compile_schema(SCHEMA)
    assert queries.compiled(SHORT, None, catalog) is queries.compiled(SHORT, None, catalog)


def test_another_catalog_is_another_query() -> None:
    queries, catalog = QueryCache(), compile_schema(SCHEMA)
    first = queries.compiled(SHORT, None, catalog)
    assert queries.compiled(SHORT, None, compile_schema(SCHEMA)) is not first


def test_a_long_text_is_not_kept() -> None:
    """Programs write such queries for one time; kept, they would fill the memory."""
    queries, catalog = QueryCache(), compile_schema(SCHEMA)
    statements = " ".join(f'insert Part {{ sku: "part {n}" }}' for n in range(1_500))
    long = f"query add() {{ {statements} }}"
    assert queries.compiled(long, None, catalog) is not queries.compiled(long, None, catalog)
