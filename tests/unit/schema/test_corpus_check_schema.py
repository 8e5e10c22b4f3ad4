"""Schema texts beside the catalog they mean, or the problems that refuse them.

Sections of a case: schema, then `ok` and a dump of the catalog, or the rendered diagnostics.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from omnigraph_core.errors import CompileError
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.codes import SCHEMA_CODES
from omnigraph_core.schema.render_parts import (
    render_annotation,
    render_cardinality,
    render_constraint,
)
from tests.support.cases import each
from tests.support.corpus import Case, check_case, load_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.schema.catalog import Catalog, EdgeType, NodeType, PropertyDef

CASES = load_cases("check_schema")
REFUSED = re.compile(r"^case\.pg:\d+:\d+: error ([A-Z]\d+):", re.MULTILINE)


@each("case", CASES, ids=str)
def test_check(case: Case) -> None:
    text, _ = case.sections
    try:
        actual = "\n".join(["ok", *dump(compile_schema(text, "case.pg"))])
    except CompileError as error:
        actual = str(error)
    check_case(case, actual)


def test_titles_tell_the_outcome() -> None:
    for case in CASES:
        if "accepted" in case.title:
            assert case.expected.startswith("ok"), case.title
        if found := re.match(r"(\w+) refused", case.title):
            assert found[1] in REFUSED.findall(case.expected), case.title


def test_every_code_has_an_accepted_and_a_refused_case() -> None:
    refused = {code for case in CASES for code in REFUSED.findall(case.expected)}
    assert refused == set(SCHEMA_CODES)
    accepted = {case.title.split()[0] for case in CASES if " accepted" in case.title}
    assert accepted == set(SCHEMA_CODES)


def dump(catalog: Catalog) -> Iterator[str]:
    for interface in catalog.interfaces.values():
        yield f"interface {interface.name}"
        yield from map(dump_property, interface.properties.values())
    for node in catalog.nodes.values():
        implements = f" implements {', '.join(node.implements)}" if node.implements else ""
        yield f"node {node.name}{implements}"
        yield from map(dump_property, node.properties.values())
        yield from dump_node_facts(node)
    for edge in catalog.edges.values():
        card = render_cardinality(edge.cardinality)
        yield f"edge {edge.name}: {edge.source} -> {edge.target} {card}"
        yield from map(dump_property, edge.properties.values())
        yield from dump_groups(edge)


def dump_property(item: PropertyDef) -> str:
    parts = [f"  {item.name}: {item.type}", *map(render_annotation, item.annotations)]
    if item.has_default:
        parts.append(f"default={item.default!r}")
    if item.satisfies:
        origin = "satisfies" if item.is_direct else "from"
        parts.append(f"{origin} {', '.join(item.satisfies)}")
    return " ".join(parts)


def dump_node_facts(node: NodeType) -> Iterator[str]:
    if node.key:
        yield f"  key ({', '.join(node.key)})"
    yield from dump_groups(node)
    yield from (f"  {render_constraint(item)}" for item in node.ranges)
    yield from (f"  {render_constraint(item)}" for item in node.checks)
    for vector, embedding in node.embeddings.items():
        yield f"  embed {vector} <- {embedding.source} model={embedding.model}"


def dump_groups(type: NodeType | EdgeType) -> Iterator[str]:
    yield from (f"  annotated {render_annotation(item)}" for item in type.annotations)
    yield from (f"  unique ({', '.join(group)})" for group in type.unique)
    yield from (f"  index ({', '.join(group)})" for group in type.indexes)
