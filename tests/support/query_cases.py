"""Text cases of whole reads: schema, records, query, and the rows or problems it ends in.

An empty schema or an empty list of records means that of the case above. The query may begin with
lines `params {…}` and `name …`. Rows without an order are compared sorted; floats to six digits.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import CompileError, OmnigraphError, ParameterError
from omnigraph_core.ids import edge_table_key
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.storage.staged import stage_append
from tests.support.corpus import Case, load_cases
from tests.support.graphs import publish
from tests.support.people import SCHEMA as PEOPLE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Record = dict[str, Any]

PEOPLE = """
{"type": "Person", "data": {"name": "Alice", "age": 30}}
{"type": "Person", "data": {"name": "Bob", "age": 25}}
{"type": "Person", "data": {"name": "Charlie", "age": 35}}
{"type": "Person", "data": {"name": "Diana", "age": 28}}
{"type": "Company", "data": {"name": "Acme"}}
{"type": "Company", "data": {"name": "Globex"}}
{"edge": "Knows", "from": "Alice", "to": "Bob", "data": {"id": "k1", "since": "2020-01-01"}}
{"edge": "Knows", "from": "Alice", "to": "Charlie", "data": {"id": "k2"}}
{"edge": "Knows", "from": "Bob", "to": "Diana", "data": {"id": "k3"}}
{"edge": "WorksAt", "from": "Alice", "to": "Acme", "data": {"id": "w1"}}
{"edge": "WorksAt", "from": "Bob", "to": "Globex", "data": {"id": "w2"}}
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query text, which query of it, and the parameters."""

    text: str
    name: str | None = None
    params: dict[str, Any] | None = None

    @property
    def is_ordered(self) -> bool:
        return re.search(r"\border\s*\{", self.text) is not None


@dataclass(frozen=True, slots=True)
class QueryCase:
    """A case whose schema and records are known."""

    case: Case
    schema: str
    records: str
    asked: Asked
    expected: str

    def __str__(self) -> str:
        return str(self.case)


def query_cases() -> list[QueryCase]:
    """tests/corpus/query, in file and line order."""
    found: list[QueryCase] = []
    for case in load_cases("query"):
        assert len(case.sections) == 4, f"{case}: schema, records, query, expected"
        above = found[-1] if found and found[-1].case.file == case.file else None
        schema = case.sections[0] or (above.schema if above else "")
        records = case.sections[1] or (above.records if above else "")
        found.append(QueryCase(case, schema, records, _asked(case.sections[2]), case.expected))
    return found


def conformance_cases() -> list[QueryCase]:
    """The reads of tests/corpus/conformance over the people they are about."""
    return [_conformance(case) for case in load_cases("conformance") if case.sections[2] != "-"]


def _conformance(case: Case) -> QueryCase:
    lines = case.sections[0].splitlines()
    params = [line for line in lines if line.startswith("params ")]
    records = [line for line in lines if line.startswith("{")]
    asked = _asked("\n".join([*params, case.sections[1]]))
    rows = [json.loads(line) for line in case.sections[2].splitlines()]
    expected = _rows(rows, is_ordered=asked.is_ordered)
    schema = PEOPLE_SCHEMA.read_text()
    return QueryCase(case, schema, "\n".join(records) or PEOPLE, asked, expected)


def _asked(section: str) -> Asked:
    lines = section.split("\n")
    said = {}
    while lines[0].startswith(("params ", "name ")):
        word, _, rest = lines.pop(0).partition(" ")
        said[word] = rest
    params = json.loads(said["params"]) if "params" in said else None
    return Asked("\n".join(lines), said.get("name"), params)


def build_graph(address: str, schema: str, records: str) -> Omnigraph:
    """A graph of these records. Edges to nodes that are not there go past the loader's checks."""
    og = Omnigraph.init(address, schema)
    found: list[Record] = [json.loads(line) for line in records.split("\n") if line.strip()]
    ids = {_id(record["data"]) for record in found if "type" in record}
    lost = [r for r in found if "edge" in r and not {r["from"], r["to"]} <= ids]
    kept = [record for record in found if record not in lost]
    if kept:
        og.load("".join(json.dumps(record) + "\n" for record in kept).encode())
    for number, record in enumerate(lost):
        _append_edge(og, record, f"lost{number}")
    return og


def _id(data: Record) -> str:
    return str(data.get("id") or data.get("name") or data.get("slug"))


def _append_edge(og: Omnigraph, record: Record, id: str) -> None:
    snapshot = og.snapshot()
    key = edge_table_key(record["edge"])
    table = og.table(snapshot, key)
    row = {"id": id, "src": record["from"], "dst": record["to"]}
    rows = pa.table({name: pa.array([row.get(name)], t) for name, t in _types(table.schema)})
    staged = stage_append(table, rows)
    assert staged is not None
    publish(og, snapshot, {key: staged}, TableOperation.APPEND)


def _types(schema: pa.Schema) -> Iterable[tuple[str, pa.DataType]]:
    return ((field.name, field.type) for field in schema)


def answer(og: Omnigraph, asked: Asked, engine: str = "local") -> str:
    """What the query ends in: a row per line, or a line per problem."""
    try:
        result = og.query("main", asked.text, asked.name, asked.params, engine=engine)
        rows = result.to_pylist()
    except CompileError as error:
        lines = [item.render().split("\n")[0] for item in error.diagnostics]
        return "\n".join(line.removeprefix("<query>:") for line in lines)
    except ParameterError as error:
        return "\n".join(f"ParameterError: {problem}" for problem in error.problems)
    except OmnigraphError as error:
        return f"{type(error).__name__}: {error.message}"
    return _rows(rows, is_ordered=asked.is_ordered)


def _rows(rows: Sequence[Record], *, is_ordered: bool) -> str:
    lines = [json.dumps(_rounded(row), ensure_ascii=False) for row in rows]
    return "\n".join(lines if is_ordered else sorted(lines))


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return round(value, 6)
        case dict():
            return {key: _rounded(item) for key, item in value.items()}
        case list():
            return [_rounded(item) for item in value]
        case _:
            return value
