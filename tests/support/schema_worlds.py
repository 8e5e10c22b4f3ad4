"""Changes of the worlds' schema: for each, the text it makes and what it does to rows.

They concern different declarations, so that any of them can be made on one branch, on the other, on
both or on none, and what comes of a merge is known: the union, on rows of either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from omnigraph_core.schema.build import compile_schema
from tests.support.merge_worlds import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from omnigraph_core.schema.catalog import Catalog
    from tests.support.merge_oracle import Graph, Row


@dataclass(frozen=True)
class Reform:
    """A change of the schema; `is_lossy` if it takes values away."""

    old: str
    new: str
    rows: Callable[[Graph], Graph]
    is_lossy: bool = False


def _each(key: str, change: Callable[[Row], Row]) -> Callable[[Graph], Graph]:
    def apply(graph: Graph) -> Graph:
        rows = {id: change(row) for id, row in graph.get(key, {}).items()}
        return {**graph, key: rows}

    return apply


def _added(name: str, text: str) -> Callable[[Row], Row]:
    return lambda row: {name: text} | row


def _renamed(old: str, new: str) -> Callable[[Row], Row]:
    return lambda row: {new if name == old else name: text for name, text in row.items()}


def _without(name: str) -> Callable[[Row], Row]:
    return lambda row: {other: text for other, text in row.items() if other != name}


def _filled(name: str, text: str) -> Callable[[Row], Row]:
    return lambda row: row | {name: text if row[name] == "null" else row[name]}


def _same(graph: Graph) -> Graph:
    return graph


def _moved(graph: Graph) -> Graph:
    return {SHELF_TO_RACK.get(key, key): rows for key, rows in graph.items()}


SHELF_TO_RACK = {"node:Shelf": "node:Rack"}
REFORMS: dict[str, Reform] = {
    "add with default": Reform(
        "    code: String @key\n",
        '    code: String @key\n    color: String @default("red")\n',
        _each("node:Part", _added("color", '"red"')),
    ),
    "add nullable": Reform(
        "    count: I32?\n    note: String?\n",
        "    count: I32?\n    note: String?\n    weight: F64?\n",
        _each("edge:Holds", _added("weight", "null")),
    ),
    "rename property": Reform(
        "    rank: I64?\n",
        '    level: I64? @rename_from("rank")\n',
        _each("node:Bin", _renamed("rank", "level")),
    ),
    "widen": Reform("    grade: I32?\n", "    grade: I64?\n", _same),
    "extend enum": Reform("enum(raw, ready)?", "enum(raw, ready, used)?", _same),
    "rename type": Reform(
        "node Shelf {",
        'node Rack @rename_from("Shelf") {',
        _moved,
    ),
    "drop": Reform(
        "    _row_note: String?\n", "", _each("node:Part", _without("_row_note")), is_lossy=True
    ),
    "tighten range": Reform("@range(length, 0..100)", "@range(length, 0..50)", _same),
    "relax cardinality": Reform("@card(0..2)", "@card(0..4)", _same),
    "require": Reform(
        "    label: String?\n",
        '    label: String @default("none")\n',
        _each("node:Bin", _filled("label", '"none"')),
    ),
    "add type": Reform(
        "node Bin {",
        "node Tag {\n    name: String @key\n}\nedge Marks: Tag -> Part\nnode Bin {",
        _same,
    ),
}
LATER_VALUES: dict[str, tuple[object, ...]] = {
    "color": ("red", "blue", ""),
    "weight": (None, 0.5, -0.0),
    "level": (None, 5, 6),
    "length": (None, 1.0, 100.0),
    "grade of edge:Fits": (None, 2**40, 7, 8),
}
"""What properties can be set to that are new, or have other rules."""


def schema_text(names: Iterable[str]) -> str:
    """The worlds' schema with these changes."""
    text = SCHEMA
    for name in names:
        reform = REFORMS[name]
        assert text.count(reform.old) == 1
        text = text.replace(reform.old, reform.new)
        if name == "rename type":
            text = text.replace("edge Near: Shelf", "edge Near: Rack")
    return text


def catalog_of(names: Iterable[str]) -> Catalog:
    return compile_schema(schema_text(names))


def seen_after(graph: Graph, names: Iterable[str]) -> Graph:
    """A graph as it is after these changes."""
    return reduce(lambda seen, name: REFORMS[name].rows(seen), names, graph)
