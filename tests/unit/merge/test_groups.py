"""Which tables are checked together after a merge."""

from __future__ import annotations

from omnigraph_core.merge.groups import TableSides, connected, tables_to_check
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each

CATALOG = compile_schema(
    """
    node Part { sku: String @key }
    node Bin { code: String @key }
    node Shelf { code: String @key }
    node Note { text: String? }
    edge Holds: Bin -> Part
    edge Carries: Shelf -> Bin
    """
)
CHAIN = frozenset({"node:Part", "node:Bin", "node:Shelf", "edge:Holds", "edge:Carries"})
NEITHER = TableSides(has_ours=False, has_theirs=False)
OURS = TableSides(has_ours=True, has_theirs=False)
THEIRS = TableSides(has_ours=False, has_theirs=True)
BOTH = TableSides(has_ours=True, has_theirs=True)
UNDER_OTHER_RULES = TableSides(has_ours=False, has_theirs=True, has_other_rules=True)


@each(
    ("sides", "checked"),
    [
        ({}, ()),
        ({"node:Part": OURS, "edge:Holds": OURS}, ()),
        ({"node:Part": THEIRS, "edge:Holds": THEIRS, "node:Bin": THEIRS}, ()),
        ({"node:Part": OURS, "node:Note": THEIRS}, ()),
        ({"node:Note": BOTH}, ("node:Note",)),
        ({"node:Note": UNDER_OTHER_RULES}, ("node:Note",)),
        ({"node:Part": OURS, "edge:Holds": THEIRS}, CHAIN),
        ({"node:Part": THEIRS, "edge:Holds": OURS}, CHAIN),
        ({"node:Part": THEIRS, "node:Bin": OURS}, CHAIN),
        ({"node:Part": BOTH}, CHAIN),
        ({"edge:Carries": UNDER_OTHER_RULES}, CHAIN),
        ({"node:Part": THEIRS, "edge:Carries": OURS}, ()),
    ],
)
def test_tables_to_check(sides: dict[str, TableSides], checked: tuple[str, ...]) -> None:
    known = dict.fromkeys((*CHAIN, "node:Note"), NEITHER) | sides
    assert tables_to_check(CATALOG, known) == frozenset(checked)


def test_a_table_that_one_side_lacks() -> None:
    assert tables_to_check(CATALOG, {"node:Part": OURS, "edge:Holds": THEIRS}) == CHAIN


def test_what_hangs_together() -> None:
    assert connected(CATALOG, ["node:Shelf"]) == CHAIN
    assert connected(CATALOG, ["node:Note"]) == {"node:Note"}
    assert connected(CATALOG, []) == frozenset()
