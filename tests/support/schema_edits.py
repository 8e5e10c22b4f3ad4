"""Random schemas and random edits of them, each of which a migration can carry out.

A schema is plain data here, so that an edit is a change of a dictionary; `render` writes it. A
rename leaves a hint, which `settled` takes away again once it has been followed.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = ("p", "q", "r")
NODES = ("A", "B", "C")
EDGES = ("E", "F")
TYPES = ("I32", "F32", "String", "enum(a, b)", "[I32]")
WIDER = {"I32": "I64", "F32": "F64", "[I32]": "[I64]", "enum(a, b)": "enum(a, b, c)"}


@dataclass
class Column:
    type: str
    note: str = ""
    default: str = ""
    has_null: bool = True
    has_index: bool = False
    hint: str = ""


@dataclass
class Node:
    columns: dict[str, Column] = field(default_factory=dict)
    note: str = ""
    is_named: bool = False
    unique: list[str] = field(default_factory=list)
    hint: str = ""


@dataclass
class Edge:
    source: str
    target: str
    limit: str = ""
    columns: dict[str, Column] = field(default_factory=dict)
    hint: str = ""


@dataclass
class Schema:
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[str, Edge] = field(default_factory=dict)
    named: dict[str, Column] = field(default_factory=dict)
    """The properties of the one interface, `Named`."""


def render(schema: Schema) -> str:
    lines = ["interface Named {", *_columns(schema.named), "}"]
    for name, node in schema.nodes.items():
        named = " implements Named" if node.is_named else ""
        lines.append(f"node {name}{_described(node.note)}{_hinted(node.hint)}{named} {{")
        lines += _columns(node.columns)
        lines += [f"@unique({', '.join(node.unique)})"] if node.unique else []
        lines.append("}")
    for name, edge in schema.edges.items():
        ends = f"{edge.source} -> {edge.target}"
        lines.append(f"edge {name}: {ends} {edge.limit}{_hinted(edge.hint)} {{")
        lines += [*_columns(edge.columns), "}"]
    return "\n".join(lines)


def _columns(columns: dict[str, Column]) -> list[str]:
    return [
        f"  {name}: {item.type}{'?' if item.has_null else ''}{_described(item.note)}{item.default}"
        f"{' @index' if item.has_index else ''}{_hinted(item.hint)}"
        for name, item in columns.items()
    ]


def _described(note: str) -> str:
    return f' @description("{note}")' if note else ""


def _hinted(hint: str) -> str:
    return f' @rename_from("{hint}")' if hint else ""


def settled(schema: Schema) -> Schema:
    """The same without hints."""
    schema = deepcopy(schema)
    for item in (*schema.nodes.values(), *schema.edges.values()):
        item.hint = ""
        for column in item.columns.values():
            column.hint = ""
    for column in schema.named.values():
        column.hint = ""
    return schema


@st.composite
def columns(draw: st.DrawFn, names: Sequence[str] = COLUMNS[:2]) -> dict[str, Column]:
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    return {
        name: Column(draw(st.sampled_from(TYPES)), has_null=draw(st.booleans())) for name in chosen
    }


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """A first schema: two nodes, maybe an edge."""
    nodes = {
        name: Node(draw(columns()), is_named=draw(st.booleans()))
        for name in draw(st.lists(st.sampled_from(NODES[:2]), min_size=2, unique=True))
    }
    end = st.sampled_from(sorted(nodes))
    edges = {
        name: Edge(draw(end), draw(end), columns=draw(columns()))
        for name in draw(st.lists(st.sampled_from(EDGES[:1]), unique=True))
    }
    return Schema(nodes, edges, draw(columns(("x", "y"))))


@st.composite
def lines(draw: st.DrawFn, start: Schema, most: int = 3, only: str | None = None) -> list[str]:
    """The schemas of a branch that makes some edits, one after the other.

    Args:
        only: the one node that the edits are about.
    """
    current, found = settled(start), []
    for _ in range(draw(st.integers(1, most))):
        edited = deepcopy(current)
        names = [only] if only in edited.nodes else []
        edit = draw(st.sampled_from(ON_COLUMNS if only else (*ON_COLUMNS, *ON_TYPES)))
        edit(draw, edited, names or sorted(edited.nodes))
        found.append(render(edited))
        current = settled(edited)
    return found


def _scope(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> dict[str, Column]:
    """The columns of a node, an edge or the interface."""
    places = [schema.nodes[name].columns for name in names]
    if len(names) != 1:
        places += [edge.columns for edge in schema.edges.values()]
        places += [schema.named]
    return draw(st.sampled_from(places)) if places else {}


def _add_column(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> None:
    name, type = draw(st.sampled_from(COLUMNS)), draw(st.sampled_from(TYPES))
    _scope(draw, schema, names).setdefault(name, Column(type))


def _drop_column(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> None:
    scope = _scope(draw, schema, names)
    if scope:
        gone = draw(st.sampled_from(sorted(scope)))
        del scope[gone]
        for node in schema.nodes.values():
            if gone in node.unique and (node.columns is scope or scope is schema.named):
                node.unique = []


def _rename_column(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> None:
    scope, new = _scope(draw, schema, names), draw(st.sampled_from(COLUMNS))
    if scope and new not in scope:
        old = draw(st.sampled_from(sorted(scope)))
        renamed = {(new if name == old else name): item for name, item in scope.items()}
        renamed[new].hint = old
        for node in schema.nodes.values():
            if node.columns is scope or (node.is_named and scope is schema.named):
                node.unique = [new if name == old else name for name in node.unique]
        scope.clear()
        scope.update(renamed)


def _adjust_column(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> None:
    scope = _scope(draw, schema, names)
    if not scope:
        return
    item = scope[draw(st.sampled_from(sorted(scope)))]
    what = draw(st.sampled_from(("wider", "null", "note", "index", "default")))
    if what == "wider":
        item.type = WIDER.get(item.type, item.type)
    elif what == "null":
        item.has_null = True
    elif what == "note":
        item.note = draw(st.sampled_from(("", "one", "two")))
    elif what == "index" and not item.type.startswith("["):
        item.has_index = not item.has_index
    elif item.type in ("I32", "I64"):
        item.default = draw(st.sampled_from(("", " @default(1)", " @default(2)")))


def _adjust_node(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> None:
    if not names:
        return
    node = schema.nodes[draw(st.sampled_from(names))]
    groups = [name for name, item in node.columns.items() if not item.type.startswith("[")]
    if draw(st.booleans()) and groups:
        node.unique = draw(st.lists(st.sampled_from(groups), unique=True))
    else:
        node.note = draw(st.sampled_from(("", "one", "two")))


def _add_type(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> None:
    if draw(st.booleans()) and names:
        ends = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        schema.edges.setdefault(draw(st.sampled_from(EDGES)), Edge(*ends))
    else:
        node = Node(draw(columns()), is_named=draw(st.booleans()))
        schema.nodes.setdefault(draw(st.sampled_from(NODES)), node)


def _drop_type(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> None:
    if schema.edges and draw(st.booleans()):
        del schema.edges[draw(st.sampled_from(sorted(schema.edges)))]
    elif names:
        gone = draw(st.sampled_from(names))
        del schema.nodes[gone]
        for name, edge in list(schema.edges.items()):
            if gone in (edge.source, edge.target):
                del schema.edges[name]


def _rename_type(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> None:
    new = draw(st.sampled_from(NODES))
    if names and new not in schema.nodes:
        old = draw(st.sampled_from(names))
        schema.nodes = {(new if n == old else n): item for n, item in schema.nodes.items()}
        schema.nodes[new].hint = old
        for edge in schema.edges.values():
            edge.source = new if edge.source == old else edge.source
            edge.target = new if edge.target == old else edge.target


def _adjust_edge(draw: st.DrawFn, schema: Schema, names: Sequence[str]) -> None:
    if schema.edges:
        edge = schema.edges[draw(st.sampled_from(sorted(schema.edges)))]
        edge.limit = draw(st.sampled_from(("", "@card(0..1)", "@card(0..2)")))


ON_COLUMNS = (_add_column, _drop_column, _rename_column, _adjust_column, _adjust_node)
ON_TYPES = (_add_type, _drop_type, _rename_type, _adjust_edge)
