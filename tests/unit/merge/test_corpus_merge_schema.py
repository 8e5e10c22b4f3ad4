"""tests/corpus/merge_schema: base --- ours --- theirs --- the merged schema, or the conflicts.

A side that took several schemas has them one after the other, split by lines `then`; a side that
reads `unchanged` is the base. A side taken as it is reads `ours` or `theirs`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from omnigraph_core.merge.schema_parts import document_of
from omnigraph_core.merge.schemas import SchemaMerge, merge_schemas
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.document import shape_hash
from omnigraph_core.schema.relabel import plan_continued
from tests.support.accepted import first, then
from tests.support.cases import each
from tests.support.corpus import Case, check_case, load_cases

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import AcceptedSchema

CASES = load_cases("merge_schema")


def read(case: Case) -> tuple[AcceptedSchema, AcceptedSchema, AcceptedSchema]:
    base, ours, theirs, _ = case.sections
    root = first(base)
    return root, _side(root, ours), _side(root, theirs)


def _side(root: AcceptedSchema, text: str) -> AcceptedSchema:
    return root if text == "unchanged" else then(root, *text.split("\nthen\n"))


def shown(merge: SchemaMerge, ours: AcceptedSchema, theirs: AcceptedSchema) -> str:
    if merge.conflicts:
        return "\n".join(f"conflict {item.table_key}: {item.message}" for item in merge.conflicts)
    if merge.accepted == ours:
        return "ours"
    return "theirs" if merge.accepted == theirs else merge.accepted.source


@each("case", CASES, ids=str)
def test_merge(case: Case) -> None:
    base, ours, theirs = read(case)
    check_case(case, shown(merge_schemas(base, ours, theirs), ours, theirs))


@each("case", CASES, ids=str)
def test_swapped_sides_come_to_the_same(case: Case) -> None:
    base, ours, theirs = read(case)
    one, two = merge_schemas(base, ours, theirs), merge_schemas(base, theirs, ours)
    assert len(one.conflicts) == len(two.conflicts)
    if not one.conflicts:
        shapes = {shape_hash(document_of(item.accepted)) for item in (one, two)}
        assert len(shapes) == 1
    said = [sorted(_words(item.message)) for item in one.conflicts]
    swapped = [sorted(_words(_swapped(item.message))) for item in two.conflicts]
    assert sorted(said) == sorted(swapped)


def _words(message: str) -> list[str]:
    return re.findall(r"`[^`]*`|\w+", message)


def _swapped(message: str) -> str:
    other = {"ours": "theirs", "theirs": "ours"}
    return re.sub(r"\b(ours|theirs)\b", lambda found: other[found[0]], message)


@each("case", CASES, ids=str)
def test_both_sides_can_follow_the_merged_schema(case: Case) -> None:
    base, ours, theirs = read(case)
    merge = merge_schemas(base, ours, theirs)
    if not merge.conflicts:
        merged = document_of(merge.accepted)
        assert shape_hash(compile_schema(merge.accepted.source)) == shape_hash(merged)
        for side in (ours, theirs):
            plan = plan_continued(document_of(side), merged, common=document_of(base))
            assert plan.supported
