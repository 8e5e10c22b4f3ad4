"""Which way the rows of a table are found."""

from __future__ import annotations

from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.explain import explain_condition
from omnigraph_core.ir.nodes import NodeScan, QueryIR
from omnigraph_core.plan.access import Access, AccessPath, access_path, compared_columns
from omnigraph_core.query.typed import All
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each

CATALOG = compile_schema(
    """
    node Part { name: String @key  size: I32?  about: String? }
    node Pair { left: String  right: I32  size: I32?  @key(left, right) }
    edge Uses: Part -> Part
    """
)
LARGE = {"about"}


def conditions(match: str) -> tuple[NodeScan, QueryIR]:
    ir = compile_one(f"query q($n: String) {{ match {{ {match} }} return {{ $p }} }}", CATALOG).ir
    assert isinstance(ir, QueryIR)
    scan = ir.pipeline[0]
    assert isinstance(scan, NodeScan)
    return scan, ir


def path(match: str) -> AccessPath:
    scan, _ = conditions(match)
    return access_path(scan.filters, CATALOG.nodes[scan.type_name], lambda name: name not in LARGE)


@each(
    ("match", "access", "key"),
    [
        ("$p: Part", Access.ALL, ()),
        ("$p: Part $p.size > 3 $p.name = $n", Access.LOOKUP, ("name",)),
        ("$p: Part $n = $p.id", Access.LOOKUP, ("id",)),
        ('$p: Part $p.name in ["a", "b"]', Access.LIST, ("name",)),
        ('$p: Part $p.name in ["a", "b"] $p.name = $n', Access.LIST, ("name",)),
        ("$p: Part $p.size > 3", Access.COLUMNS, ()),
        ("$p: Part $p.name = $n or $p.size = 3", Access.COLUMNS, ()),
        ("$p: Part $p.name = $p.about", Access.PUSHDOWN, ()),
        ("$p: Part $p.about = $n", Access.PUSHDOWN, ()),
        ("$p: Part $p.about = $n $p.name = $n", Access.LOOKUP, ("name",)),
        ("$p: Part search($p.about, $n)", Access.COLUMNS, ()),
        ("$p: Pair {left: $n}", Access.COLUMNS, ()),
        ("$p: Pair {right: 3, left: $n}", Access.LOOKUP, ("left", "right")),
        ("$p: Pair $p.left = $n $p.right in [3, 4]", Access.COLUMNS, ()),
    ],
)
def test_path(match: str, access: Access, key: tuple[str, ...]) -> None:
    found = path(match)
    assert (found.access, found.key) == (access, key)


def test_what_is_left_to_check() -> None:
    by_key = path("$p: Part $p.size > 3 $p.name = $n")
    assert [explain_condition(c) for c in by_key.rest] == ["$p.size > 3"]
    pushed = path("$p: Part $p.size > 3 $p.about = $n")
    assert [explain_condition(c) for c in pushed.rest] == ["$p.size > 3"]
    assert [explain_condition(c) for c in pushed.pushed] == ["$p.about = $n"]
    assert len(path("$p: Pair {right: 3, left: $n}").rest) == 2, "the id proves no key"


def test_what_is_joined_by_and_is_taken_apart() -> None:
    scan, _ = conditions("$p: Part $p.size > 3 $p.name = $n")
    joined = (All(scan.filters),)
    assert access_path(joined, CATALOG.nodes["Part"], lambda _: True).access is Access.LOOKUP


def test_an_edge_is_found_by_its_id_alone() -> None:
    scan, _ = conditions("$p: Part $p.id = $n")
    assert access_path(scan.filters, CATALOG.edges["Uses"], lambda _: True).key == ("id",)


def test_a_text_that_is_also_compared_is_compared() -> None:
    scan, _ = conditions("$p: Part search($p.about, $n) $p.about != $n")
    assert compared_columns(scan.filters) == ("about",)
    assert compared_columns(scan.filters[:1]) == ()
