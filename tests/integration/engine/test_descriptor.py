"""Results are what was described before the query ran: names, types and where null may stand.

Every read of the corpus and of the fixtures that compiles, over a graph without rows and over one
with some in every table.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
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

    from omnigraph_core.exec.result import QueryResult
    from omnigraph_core.ir.compile import CompiledQuery
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Catalog

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
EXAMPLE = Path(__file__).parent.parent.parent.parent / "examples" / "maintenance"


def _texts() -> Iterator[tuple[str, str]]:
    """Schemas, and query texts that may fit them."""
    for path in sorted((FIXTURES / "queries").glob("*.gq")):
        declared = FIXTURES / "schemas" / f"{path.stem}.pg"
        yield declared.read_text(), path.read_text()
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


@dataclass(frozen=True)
class Read:
    text: str
    name: str
    compiled: CompiledQuery

    def run(self, og: Omnigraph, target: str | Snapshot, *, is_null: bool = False) -> QueryResult:
        params = sample_params(self.compiled.checked.params, is_null=is_null)
        return og.query(target, self.text, self.name, params)


def _reads(texts: list[str], catalog: Catalog) -> list[Read]:
    return [read for text in texts for read in _compiled(text, catalog)]


def _compiled(text: str, catalog: Catalog) -> Iterator[Read]:
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
            yield Read(text, name, compiled)


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
    reads = _reads(texts, catalog)
    for snapshot, is_null in product((empty, og.snapshot()), (False, True)):
        for read in reads:
            result = read.run(og, snapshot, is_null=is_null)
            assert result.columns == read.compiled.columns
            assert_described(result.table, result_schema(result.columns, catalog))
            assert len(json.loads(result.to_json())) == result.num_rows


def test_there_are_results_to_compare(tmp_path: Path) -> None:
    """The rows that are made answer most queries, so that columns have something in them."""
    found: list[int] = []
    for number, (schema, texts) in enumerate(SUBJECTS[:6]):
        catalog = compile_schema(schema)
        og = Omnigraph.init(str(tmp_path / str(number)), schema)
        fill(og, catalog)
        found += [read.run(og, "main").num_rows for read in _reads(texts, catalog)]
    assert len(found) > 200
    assert sum(map(bool, found)) > len(found) // 2


def test_a_vector_that_is_still_to_be_made_is_null(tmp_path: Path) -> None:
    """Though it is declared without null: it was left pending."""
    schema = 'node Note { text: String @key  v: Vector(2) @embed("text") }'
    og = Omnigraph.init(str(tmp_path / "graph"), schema)
    og.load(b'{"type": "Note", "data": {"text": "a", "v": [1, 0]}}\n')
    og.load(b'{"type": "Note", "data": {"text": "b"}}\n', embed="off")
    asked = "query q() { match { $n: Note } return { $n.text, $n.v } order { $n.text } }"
    result = og.query("main", asked)
    assert_described(result.table, result_schema(result.columns, compile_schema(schema)))
    assert [row["n.v"] for row in result.to_pylist()] == [[1.0, 0.0], None]
    counted = "query q() { match { $n: Note } return { count($n) as all, count($n.v) as made } }"
    assert og.query("main", counted).to_pylist() == [{"all": 2, "made": 1}]


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
