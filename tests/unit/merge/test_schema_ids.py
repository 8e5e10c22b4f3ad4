"""Ids of merged schemas: a type that both sides have made is one from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.merge.schemas import merge_schemas
from omnigraph_core.merge.sides import document_of, type_ids
from tests.support.accepted import first, then

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import AcceptedSchema

PART = "node Part { sku: String @key }\n"
GRADED = "node Part { sku: String @key grade: String? }\n"
NOTE = "node Note { title: String @key }\n"


def ids(schema: AcceptedSchema) -> dict[str, int]:
    return type_ids(document_of(schema))


def merged(base: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema) -> dict[str, int]:
    result = merge_schemas(base, ours, theirs)
    assert not result.conflicts
    return ids(result.accepted)


def test_the_same_change_draws_the_same_id() -> None:
    base = first(PART)
    one, other = then(base, PART + NOTE), then(base, PART + NOTE)
    assert merged(base, one, other) == ids(one) == ids(other)


def test_a_type_that_both_made_has_the_lower_id() -> None:
    """Whoever is merged into whom, so that branches that have merged agree."""
    base = first(PART)
    one, other = then(base, PART + NOTE), then(base, GRADED, GRADED + NOTE)
    drawn = {ids(schema)["node:Note"] for schema in (one, other)}
    assert len(drawn) == 2
    assert merged(base, one, other)["node:Note"] == min(drawn)
    assert merged(base, other, one)["node:Note"] == min(drawn)


def test_a_later_merge_keeps_it() -> None:
    base = first(PART)
    one, other = then(base, PART + NOTE), then(base, GRADED, GRADED + NOTE)
    low, high = sorted((one, other), key=lambda schema: ids(schema)["node:Note"])
    joined = merge_schemas(base, high, low).accepted
    again = then(high, GRADED.replace("grade", "colour: String? grade") + NOTE)
    assert merged(high, joined, again)["node:Note"] == ids(low)["node:Note"]
    assert merged(high, again, joined)["node:Note"] == ids(low)["node:Note"]


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_type_made_anew_has_its_new_id(is_ours: bool) -> None:
    """And that is higher than the one that was dropped."""
    base = first(PART + NOTE)
    anew, other = then(base, PART, PART + NOTE), then(base, GRADED + NOTE)
    assert ids(anew)["node:Note"] > ids(base)["node:Note"]
    found = merged(base, anew, other) if is_ours else merged(base, other, anew)
    assert found["node:Note"] == ids(anew)["node:Note"]
    assert found["node:Part"] == ids(base)["node:Part"]
