"""Migration plans: their wire form, their refusals, and their documented examples."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from omnigraph_core.diagnostics import Source
from omnigraph_core.errors import UnsupportedMigration
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.document import build_document
from omnigraph_core.schema.migrate import (
    MIGRATION_CODES,
    DataWork,
    MigrationPlan,
    StepKind,
    Tier,
    plan_migration,
)
from tests.docs.snippets import ROOT, snippets
from tests.support.cases import each

PAGE = ROOT / "docs" / "reference" / "schema-migrations.md"


def plan(accepted: str, desired: str, *, allow_data_loss: bool = False) -> MigrationPlan:
    document = build_document(compile_schema(accepted), accepted=None, domain="domain")
    return plan_migration(document, compile_schema(desired), allow_data_loss=allow_data_loss)


def wire(accepted: str, desired: str) -> list[dict[str, object]]:
    """The steps as JSON, through text: what a client sees."""
    steps = plan(accepted, desired).to_json()["steps"]
    found: list[dict[str, object]] = json.loads(json.dumps(steps))
    return found


def test_no_change_is_an_empty_supported_plan() -> None:
    found = plan("node A { x: I32 }", "node A { x: I32 }")
    assert found.steps == ()
    assert found.to_json() == {"supported": True, "steps": []}
    found.require_supported()


def test_specified_steps_have_their_fields_in_order() -> None:
    accepted = "node A { x: I32? } node B {} edge E: B -> B"
    desired = """
        node Z @rename_from("A") @description("d") {
          y: I32? @rename_from("x") @description("e")
          v: Vector(3)?
          s: enum(b, a)?
          @index(y)
        }
        node B {}
        node C {}
        edge E: B -> B
    """
    end: dict[str, object] = {"tier": "safe", "data_work": "none"}
    expected: list[dict[str, object]] = [
        {"kind": "add_type", "type_kind": "node", "name": "C", **end},
        {"kind": "rename_type", "type_kind": "node", "from": "A", "to": "Z", **end},
        {
            "kind": "update_type_metadata",
            "type_kind": "node",
            "name": "Z",
            "annotations": [{"name": "description", "value": "d"}],
            **end,
        },
        {
            "kind": "add_property",
            "type_kind": "node",
            "type_name": "Z",
            "property_name": "s",
            "property_type": {
                "scalar": "String",
                "nullable": True,
                "list": False,
                "enum_values": ["a", "b"],
            },
            "default": None,
            **end,
        },
        {
            "kind": "add_property",
            "type_kind": "node",
            "type_name": "Z",
            "property_name": "v",
            "property_type": {
                "scalar": {"Vector": 3},
                "nullable": True,
                "list": False,
                "enum_values": None,
            },
            "default": None,
            **end,
        },
        {
            "kind": "rename_property",
            "type_kind": "node",
            "type_name": "Z",
            "from": "x",
            "to": "y",
            **end,
        },
        {
            "kind": "update_property_metadata",
            "type_kind": "node",
            "type_name": "Z",
            "property_name": "y",
            "annotations": [{"name": "description", "value": "e"}],
            **end,
        },
        {
            "kind": "add_constraint",
            "type_kind": "node",
            "type_name": "Z",
            "constraint": {"Index": ["y"]},
            **end,
        },
    ]
    found = wire(accepted, desired)
    assert found == expected
    assert [list(step) for step in found] == [list(step) for step in expected]


def test_constraints_are_externally_tagged() -> None:
    accepted = "node A { x: F64 s: String }"
    desired = 'node A { x: F64 s: String @unique(x, s) @range(x, -1..2.5) @check(s, "^a") }'
    assert [step["constraint"] for step in wire(accepted, desired)] == [
        {"Check": {"property": "s", "pattern": "^a"}},
        {"Range": {"property": "x", "min": {"Integer": -1}, "max": {"Float": 2.5}}},
        {"Unique": ["s", "x"]},
    ]


def test_other_steps_on_the_wire() -> None:
    accepted = "interface I {} node A { n: I32 e: enum(x, y) } edge E: A -> A { w: I32? }"
    desired = """
        interface I {}
        node A implements I { n: I64 @default(3) e: enum(x, z) }
        edge E: A -> A @card(0..2)
    """
    found = {str(step["kind"]): step for step in wire(accepted, desired)}
    assert found["change_interfaces"]["added"] == ["I"]
    assert found["change_interfaces"]["removed"] == []
    integer = {"nullable": False, "list": False, "enum_values": None}
    assert found["widen_property"]["from_type"] == {"scalar": "I32", **integer}
    assert found["widen_property"]["to_type"] == {"scalar": "I64", **integer}
    assert found["widen_property"]["data_work"] == "rewrite"
    assert found["update_default"]["default"] == 3
    assert found["extend_enum"]["added_values"] == ["z"]
    assert found["narrow_enum"]["removed_values"] == ["y"]
    assert found["change_cardinality"]["from"] == {"min": 0, "max": None}
    assert found["change_cardinality"]["to"] == {"min": 0, "max": 2}
    assert found["drop_property"]["mode"] == "soft"
    assert found["drop_property"]["tier"] == "destructive"


def test_defaults_keep_their_wire_form() -> None:
    desired = """
        node A {
          at: DateTime @default("2026-01-31T10:00:00Z")
          on: Date @default("2026-01-31")
          tags: [String] @default(["x"])
        }
    """
    assert [step["default"] for step in wire("node A {}", desired)] == [
        "2026-01-31T10:00:00.000Z",
        "2026-01-31",
        ["x"],
    ]


def test_an_unsupported_change_has_no_tier_and_no_data_work() -> None:
    assert wire("node A { x: I32 }", "node A { x: String }") == [
        {
            "kind": "unsupported_change",
            "entity": "node:A.x",
            "reason": "changing property type from `I32` to `String` is not supported",
            "code": "OG-MF-106",
            "tier": None,
            "data_work": None,
        }
    ]


def test_one_unsupported_change_makes_the_plan_unsupported() -> None:
    found = plan("node A { x: I32 y: I32 }", "node A { x: I64 y: String }")
    assert not found.supported
    assert [step.kind for step in found.steps] == [
        StepKind.WIDEN_PROPERTY,
        StepKind.UNSUPPORTED_CHANGE,
    ]


def test_every_unsupported_change_is_raised_where_it_is_written() -> None:
    desired = 'node A {\n  x: String\n  z: Bool? @rename_from("q")\n}\nedge E: A -> A { w: I32 }\n'
    found = plan("node A { x: I32 }\nedge E: A -> A", desired)
    with pytest.raises(UnsupportedMigration) as caught:
        found.require_supported(Source(desired, "parts.pg"))
    assert [(item.code, item.line, item.column) for item in caught.value.diagnostics] == [
        ("OG-MF-106", 2, 3),
        ("OG-RN-101", 3, 12),
        ("OG-MF-103", 5, 18),
    ]
    assert all(item.hint for item in caught.value.diagnostics)
    assert "parts.pg:2:3: error OG-MF-106: node:A.x: changing property type" in str(caught.value)


def test_without_a_source_problems_have_no_place() -> None:
    found = plan("node A { x: I32 }", 'node A { x: String  y: Bool? @rename_from("q") }')
    with pytest.raises(UnsupportedMigration) as caught:
        found.require_supported()
    assert {(item.file, item.line, item.column) for item in caught.value.diagnostics} == {
        ("<schema>", 1, 1)
    }
    assert len(caught.value.diagnostics) == 2


def test_an_inherited_property_is_shown_at_its_node() -> None:
    desired = "interface I { x: String }\nnode A implements I {}\n"
    found = plan("interface I { x: I32 }\nnode A implements I {}\n", desired)
    with pytest.raises(UnsupportedMigration) as caught:
        found.require_supported(Source(desired, "parts.pg"))
    assert [(item.line, item.column) for item in caught.value.diagnostics] == [(2, 6)]


def test_a_near_miss_of_a_rename_is_suggested() -> None:
    found = plan("node A { code: I32? }", 'node A { sku: I32? @rename_from("coed") }')
    assert [step.hint for step in found.unsupported] == ["did you mean `code`?"]


def test_an_end_that_looks_renamed_suggests_the_hint() -> None:
    found = plan("node A {} edge E: A -> A", "node B {} edge E: B -> B")
    hint = 'if `B` is `A` renamed, write `@rename_from("A")` on it'
    assert [step.hint for step in found.unsupported] == [hint, hint]


def test_a_default_is_suggested_only_where_one_can_stand() -> None:
    added = "b: Blob  e: Vector(2)  k: String  n: I32"
    found = plan("node A {}", f"node A {{ {added} }}")
    assert [step.hint for step in found.unsupported] == [
        "make it `Blob?`",
        "make it `Vector(2)?`",
        "make it `String?` or give it a `@default`",
        "make it `I32?` or give it a `@default`",
    ]


def test_data_loss_only_makes_drops_hard() -> None:
    accepted = "node A { x: I32 y: I32 } node B {}"
    soft = plan(accepted, "node A { x: I64 }")
    hard = plan(accepted, "node A { x: I64 }", allow_data_loss=True)
    assert [step.kind for step in soft.steps] == [step.kind for step in hard.steps]
    assert [step.data_work for step in soft.steps] == [
        DataWork.REWRITE,
        DataWork.NONE,
        DataWork.NONE,
    ]
    assert [step.data_work for step in hard.steps] == [
        DataWork.REWRITE,
        DataWork.PURGE,
        DataWork.PURGE,
    ]
    assert {step.tier for step in hard.steps[1:]} == {Tier.DESTRUCTIVE}


def documented_pairs() -> list[tuple[str, str, str, bool]]:
    """`pg before`, `pg after [data-loss]`, `text` blocks in a row: two schemas and their steps."""
    blocks = snippets(PAGE)
    found = []
    for (before, after), (_, steps) in pairwise(pairwise(blocks)):
        if before.arguments[:1] == ("before",):
            assert after.arguments[:1] == ("after",), str(after)
            assert steps.language == "text", str(steps)
            found.append((before.text, after.text, steps.text, "data-loss" in after.arguments))
    return found


def test_documented_migrations_plan_as_shown() -> None:
    pairs = documented_pairs()
    assert len(pairs) > 5
    for before, after, steps, allowed in pairs:
        found = plan(before, after, allow_data_loss=allowed)
        assert [step.describe() for step in found.steps] == steps.splitlines()


@each("word", [*StepKind, *Tier, *DataWork, *MIGRATION_CODES])
def test_every_word_of_a_plan_is_documented(word: str) -> None:
    assert f"`{word}`" in PAGE.read_text()
