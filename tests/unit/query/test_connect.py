"""What holds the variables of a match together."""

from __future__ import annotations

from omnigraph_core.diagnostics import Source
from omnigraph_core.query.check import check_query
from omnigraph_core.query.connect import unconnected_parts
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each

CATALOG = compile_schema("""
node Part { sku: String @key  note: String? }
edge Fits: Part -> Part
""")


def parts(body: str) -> tuple[tuple[str, ...], ...]:
    text = f"query q($sku: String) {{ {body} }}"
    (query,) = parse_queries(text).queries
    return unconnected_parts(check_query(query, CATALOG, Source(text)))


@each(
    ("clauses", "expected"),
    [
        ("$a: Part", (("a",),)),
        ("$a: Part  $b: Part", (("a",), ("b",))),
        ("$a: Part  $b: Part  $a fits $b", (("a", "b"),)),
        ("$a: Part  $a $w:fits $b", (("a", "b", "w"),)),
        ("$a: Part  $b: Part  $a.note = $b.note or $a.note is null", (("a", "b"),)),
        ("$a: Part  $b: Part  $a.sku = $sku", (("a",), ("b",))),
        ("$a: Part  $b: Part  $sku = \"x\"", (("a",), ("b",))),
        ("$a: Part  $b: Part  not { $a fits $b }", (("a", "b"),)),
        ("$a: Part  optional { $a fits $b }", (("a", "b"),)),
        ("$a: Part  $b: Part  optional { $a fits $c  $b fits $c }", (("a", "c"), ("b",))),
        ("$a: Part  $b: Part  $c: Part  $a fits $c  $c fits $b", (("a", "b", "c"),)),
    ],
)  # fmt: skip
def test_parts(clauses: str, expected: tuple[tuple[str, ...], ...]) -> None:
    assert parts(f"match {{ {clauses} }} return {{ $a.sku }}") == expected


def test_a_mutation_has_no_parts() -> None:
    assert parts("delete Part where sku = $sku") == ()
