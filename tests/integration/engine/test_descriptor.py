"""Results are what was described before the query ran: names, types and where null may stand.

Every read of the corpus and of the fixtures that compiles, over a graph without rows and over one
with some in every table.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import CompileError
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.result_schema import result_schema
from omnigraph_core.schema.build import compile_schema
from tests.support.corpus import load_cases
from tests.support.people import SCHEMA as PEOPLE
from tests.support.query_cases import query_cases
from tests.support.sample_rows import fill, sample_params

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.ir.compile import CompiledQuery
    from omnigraph_core.schema.catalog import Catalog

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
EXAMPLE = Path(__file__).parent.parent.parent.parent / "examples" / "maintenance"


def _texts() -> Iterator[tuple[str, str]]:
    """Schemas, and query texts that may fit them."""
    for path in sorted((FIXTURES / "queries").glob("*.gq")):
        schema = FIXTURES / "schemas" / f"{path.stem}.pg"
        yield schema.read_text(), path.read_text()
    yield (EXAMPLE / "schema.pg").read_text(), (EXAMPLE / "queries.gq").read_text()
    for case in load_cases("conformance"):
        yield PEOPLE.read_text(), case.sections[1]
    for query_case in query_cases():
        yield query_case.schema, query_case.asked.text
    for stage in ("check", "lint", "lower", "plan"):
        schema = ""
        for case in load_cases(stage):
            schema = case.sections[0] or schema
            yield schema, case.sections[1]


def _reads(text: str, catalog: Catalog) -> Iterator[tuple[str, CompiledQuery]]:
    try:
        names = [query.name for query in parse_queries(text).queries]
    except CompileError:
        return
    for name in dict.fromkeys(names):
        try:
            compiled = compile_one(text, catalog, name)
        except CompileError:
            continue
        if isinstance(compiled.ir, QueryIR):
            yield name, compiled


def _by_schema() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for schema, text in _texts():
        found[schema].append(text)
    return {schema: list(dict.fromkeys(texts)) for schema, texts in found.items()}


SUBJECTS = list(_by_schema().items())


@pytest.fixture(autouse=True)
def _embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")


@pytest.mark.parametrize(("schema", "texts"), SUBJECTS, ids=range(len(SUBJECTS)))
def test_results_are_as_described(schema: str, texts: list[str], tmp_path: Path) -> None:
    catalog = compile_schema(schema)
    og = Omnigraph.init(str(tmp_path / "graph"), schema)
    empty = og.snapshot()
    fill(og, catalog)
    for snapshot in (empty, og.snapshot()):
        for text in texts:
            for name, compiled in _reads(text, catalog):
                for is_null in (False, True):
                    params = sample_params(compiled.checked.params, is_null=is_null)
                    result = og.query(snapshot, text, name, params)
                    assert result.columns == compiled.columns
                    assert_described(result.table, result_schema(compiled.columns, catalog))
                    assert len(json.loads(result.to_json())) == result.num_rows


def test_there_are_results_to_compare(tmp_path: Path) -> None:
    """The rows that are made answer most queries, so that columns have something in them."""
    answered = asked = 0
    for number, (schema, texts) in enumerate(SUBJECTS[:12]):
        catalog = compile_schema(schema)
        og = Omnigraph.init(str(tmp_path / str(number)), schema)
        fill(og, catalog)
        for text in texts:
            for name, compiled in _reads(text, catalog):
                params = sample_params(compiled.checked.params, is_null=False)
                asked += 1
                answered += og.query("main", text, name, params).num_rows > 0
    assert asked > 200
    assert answered > asked // 2


def assert_described(table: pa.Table, schema: pa.Schema) -> None:
    assert table.schema.equals(schema), f"{table.schema}\n!=\n{schema}"
    for field, column in zip(schema, table.columns, strict=True):
        column.validate(full="date64" not in str(field.type))  # Arrow wants whole days in those
        for chunk in column.chunks:
            assert_no_null(field, chunk)


def assert_no_null(field: pa.Field, array: pa.Array) -> None:
    """No null where the field allows none, in members of structs neither."""
    if not field.nullable:
        assert array.null_count == 0, f"null in {field}"
    if pa.types.is_struct(field.type):
        for place, member in enumerate(field.type):
            assert_no_null(member, array.drop_null().field(place))
