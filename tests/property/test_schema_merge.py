"""Laws of the three-way merge of schemas, over random schemas and the edits of two branches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import assume, event, given, reject, settings
from hypothesis import strategies as st

from omnigraph_core.errors import CompileError
from omnigraph_core.merge.schema_parts import document_of
from omnigraph_core.merge.schemas import SchemaMerge, merge_schemas
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.continuity import continuity
from omnigraph_core.schema.document import document_from_json, shape_hash
from omnigraph_core.schema.document.shape import annotation_shape, metadata, unordered_groups
from omnigraph_core.schema.relabel import plan_continued
from tests.support.accepted import first, then
from tests.support.examples import examples
from tests.support.schema_edits import lines, render, schemas

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.schema.catalog import NodeType
    from omnigraph_core.schema.document import SchemaDocument
    from tests.support.schema_edits import Schema


def accepted_or_none(base: AcceptedSchema, sources: list[str]) -> AcceptedSchema | None:
    """What a branch has after these schemas; None if one of them cannot be applied."""
    try:
        return then(base, *sources)
    except CompileError:
        return None


@st.composite
def forks(draw: st.DrawFn, most: int = 5) -> tuple[AcceptedSchema, AcceptedSchema, AcceptedSchema]:
    """A base and two branches of it."""
    start = draw(schemas())
    base = first_or_reject(start)
    sides = [accepted_or_none(base, draw(lines(start, most))) for _ in range(2)]
    assume(None not in sides)
    return base, sides[0] or base, sides[1] or base


def first_or_reject(start: Schema) -> AcceptedSchema:
    try:
        return first(render(start))
    except CompileError:
        reject()


def shape(merge: SchemaMerge) -> str:
    return shape_hash(document_of(merge.accepted))


@settings(max_examples=examples(40), deadline=None)
@given(forks())
def test_a_side_that_changed_nothing_changes_nothing(
    fork: tuple[AcceptedSchema, AcceptedSchema, AcceptedSchema],
) -> None:
    base, side, _ = fork
    assert merge_schemas(base, side, base) == SchemaMerge(side, (), is_changed=False)
    assert merge_schemas(base, side, side) == SchemaMerge(side, (), is_changed=False)
    taken = merge_schemas(base, base, side)
    assert (taken.accepted, taken.conflicts) == (side, ())
    assert taken.is_changed == (side.hash != base.hash)


@settings(max_examples=examples(100), deadline=None)
@given(forks())
def test_swapped_sides_come_to_the_same(
    fork: tuple[AcceptedSchema, AcceptedSchema, AcceptedSchema],
) -> None:
    base, ours, theirs = fork
    one, two = merge_schemas(base, ours, theirs), merge_schemas(base, theirs, ours)
    event("conflict" if one.conflicts else "merged")
    assert bool(one.conflicts) == bool(two.conflicts)
    if not one.conflicts:
        assert shape(one) == shape(two)


@settings(max_examples=examples(100), deadline=None)
@given(forks())
def test_a_merged_schema_is_sound_and_both_sides_can_follow(
    fork: tuple[AcceptedSchema, AcceptedSchema, AcceptedSchema],
) -> None:
    base, ours, theirs = fork
    merge = merge_schemas(base, ours, theirs)
    if merge.conflicts:
        assert merge.accepted == ours
        assert all(item.row_id is None and item.message for item in merge.conflicts)
        return
    document = document_from_json(json.loads(merge.accepted.document))
    assert shape_hash(compile_schema(merge.accepted.source)) == shape_hash(document)
    common = document_of(base)
    for side in (ours, theirs):
        assert plan_continued(document_of(side), document, common=common).supported
    if merge.accepted != theirs:
        assert_ids_stay(document_of(ours), document)
    if merge.is_changed:
        assert document.next_identity_id >= document_of(theirs).next_identity_id
    again = merge_schemas(theirs, merge.accepted, theirs)
    assert again == SchemaMerge(merge.accepted, (), is_changed=False)


def assert_ids_stay(ours: SchemaDocument, merged: SchemaDocument) -> None:
    """What ours has keeps its ids, whatever it is called now."""
    found = continuity(ours, merged)
    before = {item.name: item.type_id for item in ours.nodes}
    after = {item.name: item.type_id for item in merged.nodes}
    assert all(before[old] == after[new] for old, new in found.nodes.items())
    assert len(set(after.values())) == len(after)


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[AcceptedSchema, list[str], list[str]]:
    """A base and two branches that edit one node each, by themselves."""
    start = draw(schemas())
    base = first_or_reject(start)
    one, two = sorted(start.nodes)[:2]
    return base, draw(lines(start, 2, only=one)), draw(lines(start, 4, only=two))


@settings(max_examples=examples(60), deadline=None)
@given(neighbours())
def test_edits_of_different_types_always_merge_again_and_again(
    branches: tuple[AcceptedSchema, list[str], list[str]],
) -> None:
    base, our_lines, their_lines = branches
    ours = accepted_or_none(base, our_lines)
    assume(ours is not None and accepted_or_none(base, their_lines) is not None)
    theirs, merged = base, ours or base
    for source in their_lines:
        merge = merge_schemas(theirs, merged, after := then(theirs, source))
        assert merge.conflicts == ()
        theirs, merged = after, merge.accepted
    assert_contains_both(base, ours or base, theirs, merged)


def assert_contains_both(
    base: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema, merged: AcceptedSchema
) -> None:
    """Each type is as the side has it that changed it."""
    before, our, their, found = (
        compile_schema(side.source).nodes for side in (base, ours, theirs, merged)
    )
    assert found.keys() == before.keys()
    for name, item in found.items():
        changed = their[name] if shown(our[name]) == shown(before[name]) else our[name]
        assert shown(item) == shown(changed)


def shown(node: NodeType) -> tuple[object, ...]:
    columns = {name: (item.type, item.default) for name, item in node.properties.items()}
    groups = unordered_groups(node.unique), unordered_groups(node.indexes)
    return columns, groups, [annotation_shape(item) for item in metadata(node.annotations)]
