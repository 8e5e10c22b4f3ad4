"""Mutations as they leave the checker: stored columns, schema order, one problem per mistake."""

from __future__ import annotations

import pytest

from omnigraph_core.diagnostics import Source
from omnigraph_core.query.check import QueryCheck, check_queries
from omnigraph_core.query.checked import (
    CheckedDelete,
    CheckedInsert,
    CheckedMutation,
    CheckedStatement,
    CheckedUpdate,
    QueryKind,
)
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.typed import (
    TARGET,
    All,
    Compare,
    Constant,
    EntityKind,
    PropertyValue,
    TypedOp,
)
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.types import STRING
from tests.support.cases import each

CATALOG = compile_schema(
    """
    node Device {
      serial: String
      site: String
      label: String?
      load: F64?
      @key(serial, site)
    }
    node Reading { value: F64  unit: String @default("W") }
    edge Feeds: Device -> Device { share: F64? }
    edge Took: Device -> Reading
    """
)


def _check(body: str, params: str = "") -> QueryCheck:
    text = f"query q({params}) {{ {body} }}"
    return check_queries(parse_queries(text), CATALOG, Source(text)).results[0]


def _statement(body: str, params: str = "") -> CheckedStatement:
    checked = _check(body, params).checked
    assert checked is not None
    assert checked.kind is QueryKind.MUTATION
    assert isinstance(checked.body, CheckedMutation)
    return checked.body.statements[0]


def _codes(body: str, params: str = "") -> list[str]:
    return [item.code for item in _check(body, params).diagnostics]


def test_assignments_leave_in_schema_order() -> None:
    found = _statement('insert Device { load: 1, site: "a", serial: "b" }')
    assert isinstance(found, CheckedInsert)
    assert [name for name, _ in found.assignments] == ["serial", "site", "load"]
    assert found.kind is EntityKind.NODE


def test_edge_ends_leave_as_stored_columns() -> None:
    found = _statement('insert Feeds { share: 1, to: "b", from: "a" }')
    assert isinstance(found, CheckedInsert)
    assert [name for name, _ in found.assignments] == ["src", "dst", "share"]
    assert found.kind is EntityKind.EDGE


def test_where_reads_the_target_row() -> None:
    found = _statement('delete Feeds where from = "a" and to = "b"')
    assert isinstance(found, CheckedDelete)
    assert isinstance(found.where, All)
    columns = []
    for part in found.where.operands:
        assert isinstance(part, Compare)
        assert isinstance(part.left, PropertyValue)
        assert part.left.variable == TARGET
        columns.append(part.left.property)
    assert columns == ["src", "dst"]


def test_an_edge_can_be_updated() -> None:
    found = _statement('update Feeds set { share: 1 } where id = "x"')
    assert isinstance(found, CheckedUpdate)
    assert found.kind is EntityKind.EDGE
    target_id = PropertyValue(TARGET, "id", STRING)
    assert found.where == Compare(target_id, TypedOp.EQ, Constant("x", STRING))


@pytest.mark.parametrize("name", ["serial", "site", "id"])
def test_every_part_of_a_node_key_is_fixed(name: str) -> None:
    assert _codes(f'update Device set {{ {name}: "x" }} where label = "y"') == ["T16"]


@pytest.mark.parametrize("name", ["from", "to", "id"])
def test_the_ends_of_an_edge_are_fixed(name: str) -> None:
    assert _codes(f'update Feeds set {{ {name}: "x" }} where share > 0') == ["T16"]


def test_a_default_stands_in_for_a_required_property() -> None:
    found = _statement("insert Reading { value: 1 }")
    assert isinstance(found, CheckedInsert)
    assert [name for name, _ in found.assignments] == ["value"]


def test_all_missing_properties_are_one_problem() -> None:
    result = _check("insert Device { }")
    assert [item.message for item in result.diagnostics] == ["`Device` needs `serial`, `site`"]


def test_a_misspelt_property_is_not_also_missing() -> None:
    assert _codes('insert Device { serail: "a", site: "b" }') == ["T11"]
    assert _codes('insert Feeds { src: "a", dst: "b" }') == ["T11", "T11"]


def test_an_unknown_type_hides_nothing_else() -> None:
    body = 'insert Devise { nothing: 1 }  insert Reading { value: "x" }'
    assert _codes(body) == ["T10", "T3"]


@each(
    ("body", "codes"),
    [
        ('insert Reading { value: 1 }  delete Reading where unit = "W"', ["D2"]),
        (
            'delete Reading where unit = "W"  update Reading set { value: 1 } where value < 0',
            ["D2"],
        ),
        ('delete Reading where unit = "W"  delete Device where label is null', []),
        ("insert Reading { value: 1 }  update Reading set { value: 2 } where value = 1", []),
    ],
)
def test_deletes_do_not_mix(body: str, codes: list[str]) -> None:
    assert _codes(body) == codes


def test_mixing_is_reported_at_the_first_statement_of_the_other_kind() -> None:
    result = _check('insert Reading { value: 1 }  delete Reading where unit = "W"')
    text = 'query q() { insert Reading { value: 1 }  delete Reading where unit = "W" }'
    assert text[result.diagnostics[0].span.start :].startswith("delete")


def test_an_undeclared_parameter_is_reported_once() -> None:
    assert _codes("insert Reading { value: $v }  insert Reading { value: $v }") == ["T14"]
