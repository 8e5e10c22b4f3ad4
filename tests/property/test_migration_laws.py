"""Laws of schema documents and migration plans, over random schemas and random edits of them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.errors import ConfigError, FormatTooNew
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.document import (
    SchemaDocument,
    build_document,
    catalog_from_document,
    document_from_json,
    document_to_json,
    render_document,
    schema_hash,
    shape_hash,
)
from omnigraph_core.schema.document.match import match_names, rename_hint
from omnigraph_core.schema.migrate import (
    MigrationCode,
    StepKind,
    UnsupportedChange,
    plan_migration,
)
from tests.support.examples import examples

if TYPE_CHECKING:
    from omnigraph_core.schema.catalog import Catalog

TYPES = ("String", "I32", "I64", "F32", "F64", "Bool", "Date", "[I32]", "enum(a, b)", "enum(b, c)")
DEFAULTS = {"String": '"x"', "I32": "1", "F64": "2", "enum(a, b)": "b", "[I32]": "[1, 2]"}
COLUMNS = ("p", "q", "r", "s")


@st.composite
def property_lines(draw: st.DrawFn, hints: tuple[str, ...]) -> list[str]:
    """Properties of one type, and the constraints its columns allow."""
    columns = draw(st.lists(st.sampled_from(COLUMNS), unique=True, max_size=4))
    types = {name: draw(st.sampled_from(TYPES)) for name in columns}
    lines = []
    for name, type in types.items():
        line = f"{name}: {type}{draw(st.sampled_from(['', '?']))}"
        if type in DEFAULTS and draw(st.booleans()):
            line += f" @default({DEFAULTS[type]})"
        if draw(st.integers(0, 3)) == 0:
            line += f' @rename_from("{draw(st.sampled_from(hints))}")'
        line += draw(st.sampled_from(["", "", ' @description("d")', " @note(1)"]))
        lines.append(line)
    scalars = [name for name, type in types.items() if type != "[I32]"]
    if scalars and draw(st.booleans()):
        group = draw(st.lists(st.sampled_from(scalars), min_size=1, unique=True))
        lines.append(f"@{draw(st.sampled_from(['unique', 'index']))}({', '.join(group)})")
    return lines


@st.composite
def node_text(draw: st.DrawFn, name: str, interfaces: list[str], hints: tuple[str, ...]) -> str:
    header = f"node {name}"
    if draw(st.integers(0, 3)) == 0:
        header += f' @rename_from("{draw(st.sampled_from(hints))}")'
    taken = draw(st.lists(st.sampled_from(interfaces), unique=True)) if interfaces else []
    if taken:
        header += f" implements {', '.join(taken)}"
    lines = draw(property_lines(COLUMNS))
    key = draw(st.sampled_from(["", "", "k: String @key", "k: I32 @key", "k: I64 @key"]))
    limit = draw(st.sampled_from(["", "n: I32? @range(n, 0..9)", "n: I32? @range(n, 1..)"]))
    vector = draw(
        st.sampled_from(
            ["", "t: String v: Vector(2)?", 't: String v: Vector(2)? @embed("t", model="m")']
        )
    )
    return "\n  ".join([f"{header} {{", *lines, key, limit, vector]) + "\n}"


@st.composite
def declarations(draw: st.DrawFn) -> dict[str, str]:
    """The declarations of a valid schema, by name."""
    interfaces = draw(st.lists(st.sampled_from("IJ"), unique=True))
    nodes = draw(st.lists(st.sampled_from("ABC"), unique=True))
    edges = draw(st.lists(st.sampled_from("EF"), unique=True)) if nodes else []
    found = {}
    for name in interfaces:
        type, note = draw(st.sampled_from(TYPES)), draw(st.sampled_from(["", "@note"]))
        hint = draw(st.sampled_from(["", '@rename_from("ix")', '@rename_from("jy")']))
        column = f"{name.lower()}{draw(st.sampled_from('xy'))}"
        found[name] = f"interface {name} {{ {column}: {type}? {note} {hint} }}"
    for name in nodes:
        found[name] = draw(node_text(name, interfaces, ("A", "B", "C", "E")))
    for name in edges:
        source, target = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        limit = draw(st.sampled_from(["", "@card(0..1)", "@card(1..)"]))
        hint = draw(st.sampled_from(["", "", '@rename_from("E")', '@rename_from("F")']))
        body = "\n  ".join(draw(property_lines(COLUMNS)))
        found[name] = f"edge {name}: {source} -> {target} {limit} {hint} {{\n  {body}\n}}"
    return found


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Catalog, Catalog]:
    """Two schemas that share declarations: the second takes some from elsewhere, in any order."""
    one, two = draw(declarations()), draw(declarations())
    taken = draw(st.sets(st.sampled_from(sorted(two)))) if two else set()
    mixed = {**one, **{name: two[name] for name in taken}}
    # What a taken declaration refers to comes along, unless the first schema has its own.
    mixed = {**two, **mixed} if taken else mixed
    after = "\n".join(draw(st.permutations(list(mixed.values()))))
    return compile_schema("\n".join(one.values())), compile_schema(after)


catalogs = declarations().map(lambda found: compile_schema("\n".join(found.values())))
pairs = neighbours() | st.tuples(catalogs, catalogs)


def first(catalog: Catalog) -> SchemaDocument:
    return build_document(catalog, accepted=None, domain="domain")


def all_ids(document: SchemaDocument) -> list[int]:
    found = []
    for item in document.types:
        found += [item.type_id, *(prop.prop_id for prop in item.properties)]
        if hasattr(item, "table_incarnation_id"):
            found.append(item.table_incarnation_id)
    return found


@settings(max_examples=examples(400))
@given(catalogs)
def test_a_schema_has_nothing_to_do_against_itself(catalog: Catalog) -> None:
    assert plan_migration(first(catalog), catalog).steps == ()


@settings(max_examples=examples(400))
@given(catalogs)
def test_a_document_opens_as_the_catalog_it_was_built_from(catalog: Catalog) -> None:
    again = catalog_from_document(first(catalog))
    assert again == catalog
    assert [*again.nodes, *again.edges] == [*catalog.nodes, *catalog.edges]
    for name, node in catalog.nodes.items():
        assert list(again.nodes[name].properties) == list(node.properties)


@settings(max_examples=examples(400))
@given(pairs)
def test_documents_survive_json(pair: tuple[Catalog, Catalog]) -> None:
    before, after = pair
    document = build_document(after, accepted=first(before))
    again = document_from_json(json.loads(render_document(document)))
    assert again == document
    assert document_to_json(again) == document_to_json(document)
    assert schema_hash(again) == schema_hash(document)
    assert shape_hash(again) == shape_hash(after)


@settings(max_examples=examples(150))
@given(pairs)
def test_what_was_accepted_has_nothing_left_to_do(pair: tuple[Catalog, Catalog]) -> None:
    before, after = pair
    document = build_document(after, accepted=first(before))
    assert plan_migration(document, after).steps == ()
    assert catalog_from_document(document) == after


@settings(max_examples=examples(150))
@given(pairs)
def test_a_plan_is_empty_only_between_equal_shapes(pair: tuple[Catalog, Catalog]) -> None:
    before, after = pair
    steps = plan_migration(first(before), after).steps
    if not steps:
        assert shape_hash(before) == shape_hash(after)
    if shape_hash(before) == shape_hash(after):
        # What is left are rename hints that would take a name in use.
        assert all(
            isinstance(step, UnsupportedChange) and step.code is MigrationCode.RENAME_NAME_TAKEN
            for step in steps
        )


@settings(max_examples=examples(150))
@given(pairs, st.booleans())
def test_steps_come_in_order(pair: tuple[Catalog, Catalog], allowed: bool) -> None:
    before, after = pair
    plan = plan_migration(first(before), after, allow_data_loss=allowed)
    wire = [json.loads(json.dumps(step.to_json())) for step in plan.steps]
    drops = [step["kind"].startswith("drop_") for step in wire]
    assert drops == sorted(drops)
    order = ["interface", "node", "edge"]
    kinds = [
        order.index(step.get("type_kind") or step["entity"].partition(":")[0])
        for step, is_drop in zip(wire, drops, strict=True)
        if not is_drop
    ]
    assert kinds == sorted(kinds)
    assert plan.supported == all(step["kind"] != "unsupported_change" for step in wire)
    for step, is_drop in zip(wire, drops, strict=True):
        loses = is_drop and step["type_kind"] != "interface"
        assert (step["tier"] == "destructive") == loses
        assert (step["data_work"] == "purge") == (loses and allowed)


@settings(max_examples=examples(400))
@given(st.lists(catalogs, min_size=2, max_size=5))
def test_ids_are_never_used_again(versions: list[Catalog]) -> None:
    documents = [first(versions[0])]
    for catalog in versions[1:]:
        documents.append(build_document(catalog, accepted=documents[-1]))
    seen: set[int] = set()
    for old, new in pairwise(documents):
        seen |= set(all_ids(old))
        current = all_ids(new)
        assert len(current) == len(set(current))
        assert new.next_identity_id >= old.next_identity_id
        came_back = set(current) & (seen - set(all_ids(old)))
        assert came_back == set()
        assert all(item < new.next_identity_id for item in current)


@settings(max_examples=examples(150))
@given(pairs)
def test_an_id_only_follows_its_name_or_a_hint(pair: tuple[Catalog, Catalog]) -> None:
    before, after = pair
    old, new = first(before), build_document(after, accepted=first(before))
    for was, now in ((old.nodes, new.nodes), (old.edges, new.edges)):
        names = {item.type_id: item for item in was}
        for item in now:
            origin = names.get(item.type_id)
            if origin is None:
                continue
            assert origin.name in (item.name, rename_hint(item.annotations))
            assert origin.table_incarnation_id == item.table_incarnation_id
            columns = {prop.prop_id: prop.name for prop in origin.properties}
            for prop in item.properties:
                known = columns.get(prop.prop_id, prop.name)
                assert known in (prop.name, rename_hint(prop.annotations))


names = st.sampled_from("abcd")
hinted = st.dictionaries(names, st.none() | names, max_size=4)


@settings(max_examples=examples(1000))
@given(hinted, hinted)
def test_matching_never_mixes_things_up(
    accepted: dict[str, str | None], desired: dict[str, str | None]
) -> None:
    match = match_names(accepted, desired)
    sources = list(match.previous.values())
    assert len(sources) == len(set(sources))
    assert set(match.dropped).isdisjoint(sources)
    for new, old in match.previous.items():
        assert old in accepted
        assert old == new or (desired[new] == old and new not in accepted and old not in desired)
    for name in match.refused:
        assert desired[name] is not None
        assert match.previous.get(name, name) == name
    for name in desired.keys() & accepted.keys():
        assert match.previous[name] == name


plain_nodes = st.dictionaries(
    st.sampled_from("ABC"), st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True), min_size=1
)


def render(nodes: dict[str, list[str]], ends: list[tuple[str, str]], *, is_renamed: bool) -> str:
    """A schema with keys, constraints and edges; renamed, every name is new and has its hint."""

    def name(old: str, prefix: str) -> str:
        return f"{prefix}{old}" if is_renamed else old

    def hint(old: str) -> str:
        return f'@rename_from("{old}")' if is_renamed else ""

    lines = []
    for node, columns in nodes.items():
        current = [name(column, "new_") for column in columns]
        lines.append(f"node {name(node, 'New')} {hint(node)} {{")
        lines += [f"{name(column, 'new_')}: String {hint(column)}" for column in columns]
        lines.append(f"@key({current[0]}) @unique({', '.join(current)})")
        lines.append(f'@check({current[-1]}, "x") }}')
    for number, (source, target) in enumerate(ends):
        edge = f"E{number}"
        sides = f"{name(source, 'New')} -> {name(target, 'New')}"
        lines.append(f"edge {name(edge, 'New')}: {sides} {hint(edge)}")
    return "\n".join(lines)


@settings(max_examples=examples(400))
@given(plain_nodes, st.data())
def test_renaming_everything_is_only_renames(
    nodes: dict[str, list[str]], data: st.DataObject
) -> None:
    end = st.sampled_from(sorted(nodes))
    ends = data.draw(st.lists(st.tuples(end, end), max_size=3))
    before = first(compile_schema(render(nodes, ends, is_renamed=False)))
    desired = compile_schema(render(nodes, ends, is_renamed=True))
    after = build_document(desired, accepted=before)
    steps = plan_migration(before, desired).steps
    assert {step.kind for step in steps} <= {StepKind.RENAME_TYPE, StepKind.RENAME_PROPERTY}
    assert len(steps) == len(nodes) + len(ends) + sum(map(len, nodes.values()))
    assert sorted(all_ids(after)) == sorted(all_ids(before))
    assert after.next_identity_id == before.next_identity_id


junk = st.none() | st.booleans() | st.integers(-2, 40) | st.sampled_from(["", "A", "Key", [], {}])


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every value inside a JSON value."""
    if isinstance(value, dict):
        inner = list(value.items())
    else:
        inner = list(enumerate(value)) if isinstance(value, list) else []
    return [found for key, item in inner for found in ((*path, key), *places(item, (*path, key)))]


@settings(max_examples=examples(300))
@given(catalogs, st.data())
def test_a_damaged_document_is_refused_or_still_opens(
    catalog: Catalog, data: st.DataObject
) -> None:
    root = json.loads(render_document(first(catalog)))
    *path, last = data.draw(st.sampled_from(places(root)))
    target = root
    for key in path:
        target = target[key]
    if data.draw(st.booleans()):
        target[last] = data.draw(junk)
    else:
        del target[last]
    try:
        document = document_from_json(root)
    except (ConfigError, FormatTooNew):
        return
    assert document_from_json(document_to_json(document)) == document
    assert plan_migration(document, catalog_from_document(document)).steps == ()
