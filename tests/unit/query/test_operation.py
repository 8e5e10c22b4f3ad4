"""What a query returns, reads and writes."""

from __future__ import annotations

from omnigraph_core.diagnostics import Source
from omnigraph_core.query.check import check_query
from omnigraph_core.query.operation import Operation, describe_operation
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each

CATALOG = compile_schema("""
node Part { name: String @key  size: I32? }
node Maker { name: String @key }
node Shelf { name: String @key }
edge Uses: Part -> Part { count: I32? }
edge MadeBy: Part -> Maker
edge LiesOn: Part -> Shelf
""")


def operation(body: str) -> Operation:
    text = f"query q($n: String) {{ {body} }}"
    checked = check_query(parse_queries(text).queries[0], CATALOG, Source(text))
    return describe_operation(checked, CATALOG)


def shown(operation: Operation) -> tuple[str, str]:
    reads = " ".join(f"{use.kind}:{use.type_name}" for use in operation.reads)
    writes = " ".join(f"{use.kind}:{use.type_name}" for use in operation.writes)
    return reads, writes


@each(
    ("body", "reads", "writes"),
    [
        ("match { $s: Shelf } return { $s.name }", "node:Shelf", ""),
        (
            "match { $p: Part $p madeBy $m } return { $m.name }",
            "node:Maker node:Part edge:MadeBy",
            "",
        ),
        (
            "match { $s: Shelf not { $s liesOn $p not { $p madeBy $_ } } } return { $s.name }",
            "node:Maker node:Part node:Shelf edge:LiesOn edge:MadeBy",
            "",
        ),
        (
            "match { $p: Part optional { $p uses $q $q.size > 1 } } return { $q.name }",
            "node:Part edge:Uses",
            "",
        ),
        ("insert Part { name: $n }", "node:Part", "node:Part"),
        (
            "insert MadeBy { from: $n, to: $n }",
            "node:Maker node:Part edge:MadeBy",
            "edge:MadeBy",
        ),
        ("update Part set { size: 1 } where name = $n", "node:Part", "node:Part"),
        ("update Uses set { count: 1 } where from = $n", "edge:Uses", "edge:Uses"),
        ("delete Uses where from = $n", "edge:Uses", "edge:Uses"),
        (
            "delete Maker where name = $n",
            "node:Maker edge:MadeBy",
            "node:Maker edge:MadeBy",
        ),
        (
            "delete Part where name = $n",
            "node:Part edge:LiesOn edge:MadeBy edge:Uses",
            "node:Part edge:LiesOn edge:MadeBy edge:Uses",
        ),
        (
            "insert Shelf { name: $n } insert LiesOn { from: $n, to: $n }",
            "node:Part node:Shelf edge:LiesOn",
            "node:Shelf edge:LiesOn",
        ),
    ],
)
def test_types(body: str, reads: str, writes: str) -> None:
    assert shown(operation(body)) == (reads, writes)


def test_json() -> None:
    assert operation("match { $p: Part } return { $p.size as s, $p }").to_json() == {
        "result": [
            {"name": "s", "kind": "int", "nullable": True},
            {"name": "p", "kind": "object", "nullable": False},
        ],
        "reads": [{"kind": "node", "type_name": "Part"}],
        "writes": [],
    }


def test_a_mutation_returns_no_columns() -> None:
    assert operation("delete Shelf where name = $n").result == ()
