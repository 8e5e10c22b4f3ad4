"""Every kind of step on a loaded graph: what was there reads as the new schema says."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from omnigraph_core.errors import DataError, QueryTypeError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.schema.arrow import table_schema
from tests.integration.evolve.sensors import (
    SCHEMA,
    SENSORS,
    apply,
    changed,
    column,
    load,
    new_graph,
)

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

SENSOR, SITE, AT, NEAR = "node:Sensor", "node:Site", "edge:At", "edge:Near"


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return new_graph(tmp_path)


def given(name: str) -> dict[str, Any]:
    return {row["serial"]: row[name] for row in SENSORS}


def check_shapes(og: Omnigraph, branch: str = "main") -> None:
    """Every table has the columns of its type, and takes a copy of what it exports."""
    snapshot = og.snapshot(branch)
    catalog = accepted_catalog(snapshot.schema)
    types = {item.table_key: item for item in (*catalog.nodes.values(), *catalog.edges.values())}
    assert set(types) == set(snapshot.tables)
    for key, type in types.items():
        stored = {field.name: field for field in og.table(snapshot, key).schema}
        assert stored == {field.name: field for field in table_schema(type)}
        assert snapshot.table(key).row_count == og.table(snapshot, key).count_rows()
    exported = b"".join(og.export_jsonl(branch))
    og.load(exported, branch=branch)
    assert b"".join(og.export_jsonl(branch)) == exported


def test_properties_are_added(og: Omnigraph) -> None:
    before = og.snapshot()
    steps = apply(
        og,
        (
            "  text: String\n",
            '  text: String\n  a: I64?\n  b: Date @default("2024-02-29")\n  c: [String]?\n'
            '  d: DateTime @default("2024-02-29T01:02:03Z")\n  e: Blob?\n  f: Vector(3)?\n'
            "  g: Bool @default(true)\n  h: I32? @default(4)\n",
        ),
        ("weight: U32?", 'weight: U32?  how: String @default("by road")'),
    )
    assert steps == ["add_property"] * 9
    after = og.snapshot()
    assert after.manifest_version == before.manifest_version + 1
    assert after.commit.operation == "schema_apply"
    assert after.table(SENSOR).operation is TableOperation.SCHEMA
    assert after.table(SITE) == before.table(SITE)
    for name in "acefh":
        assert set(column(og, SENSOR, name).values()) == {None}
    assert set(column(og, SENSOR, "b").values()) == {dt.date(2024, 2, 29)}
    moments = og.table(after, SENSOR).read(["d"]).column("d").cast("int64").to_pylist()
    assert set(moments) == {1_709_168_523_000}
    assert set(column(og, SENSOR, "g").values()) == {True}
    assert set(column(og, AT, "how").values()) == {"by road"}
    assert column(og, SENSOR, "scan") == {"s1": b"\x00\x01", "s2": None, "s3": None}
    check_shapes(og)
    load(og, {"type": "Sensor", "data": {**SENSORS[0], "serial": "s9", "a": 5, "f": [1, 2, 3]}})
    assert (column(og, SENSOR, "a")["s9"], column(og, SENSOR, "h")["s9"]) == (5, 4)
    old = og.query(
        ReadTarget(snapshot_id=before.commit.graph_commit_id),
        "query q() { match { $s: Sensor } return { $s.note } }",
    )
    assert old.table.num_rows == 3


def test_properties_are_renamed(og: Omnigraph) -> None:
    steps = apply(
        og,
        ("  note: String?", '  remark: String? @rename_from("note")\n  more: I64?'),
        ("  scan: Blob?", '  photo: Blob? @rename_from("scan")'),
        ("since: Date?", 'start: Date? @rename_from("since")'),
    )
    assert steps == ["add_property", "rename_property", "rename_property", "rename_property"]
    assert column(og, SENSOR, "remark") == given("note")
    assert set(column(og, SENSOR, "more").values()) == {None}
    assert column(og, SENSOR, "photo") == {"s1": b"\x00\x01", "s2": None, "s3": None}
    check_shapes(og)
    og.ensure_indices()
    with pytest.raises(QueryTypeError):
        og.query("main", "query q() { match { $s: Sensor } return { $s.scan } }")


def test_types_widen_and_keep_their_values(og: Omnigraph) -> None:
    steps = apply(
        og,
        ("  reading: F32", "  reading: F64"),
        ("  count: I32?", "  count: I64?"),
        ("  sizes: [I32]?", "  sizes: [I64]?"),
        ("weight: U32?", "weight: I64?"),
    )
    assert steps == ["widen_property"] * 4
    single = {key: float(np.float32(value)) for key, value in given("reading").items()}
    assert column(og, SENSOR, "reading") == single
    assert column(og, SENSOR, "count") == given("count")
    assert column(og, SENSOR, "sizes") == given("sizes")
    assert sorted(column(og, AT, "weight").values(), key=str) == [3, 7, None]
    check_shapes(og)
    load(og, {"type": "Sensor", "data": {**SENSORS[0], "count": 2**40, "sizes": [2**40]}})
    assert column(og, SENSOR, "count")["s1"] == 2**40


def test_nullability_changes(og: Omnigraph) -> None:
    assert apply(
        og,
        ("  kind: String", "  kind: String?"),
        ("  note: String?", '  note: String @default("none")'),
        ("  count: I32?", "  count: I64 @default(8)"),
    ) == [
        "widen_property",
        "tighten_nullability",
        "update_default",
        "relax_nullability",
        "tighten_nullability",
        "update_default",
    ]
    assert column(og, SENSOR, "note") == {"s1": "one", "s2": "none", "s3": "one"}
    assert column(og, SENSOR, "count") == {"s1": 1, "s2": 8, "s3": -5}
    check_shapes(og)
    row = {**SENSORS[0], "kind": None}
    load(og, {"type": "Sensor", "data": row})
    assert column(og, SENSOR, "kind")["s1"] is None
    with pytest.raises(DataError):
        load(og, {"type": "Sensor", "data": {**SENSORS[0], "note": None}})


def test_enums_change_without_touching_a_table(og: Omnigraph) -> None:
    before = og.snapshot()
    steps = apply(
        og,
        ("enum(celsius, kelvin, rankine)", "enum(celsius, kelvin, newton)"),
        ("  kind: String", "  kind: enum(air, water)"),
    )
    assert steps == ["string_to_enum", "extend_enum", "narrow_enum"]
    assert og.snapshot().tables == before.tables
    load(og, {"type": "Sensor", "data": {**SENSORS[0], "unit": "newton"}})
    with pytest.raises(DataError):
        load(og, {"type": "Sensor", "data": {**SENSORS[0], "kind": "fire"}})
    source = og.schema_show().source.replace("enum(celsius, kelvin, newton)", "String")
    assert [str(item.step.kind) for item in og.schema_apply(source).steps] == ["enum_to_string"]
    load(og, {"type": "Sensor", "data": {**SENSORS[0], "unit": "any"}})
    check_shapes(og)


def test_types_are_added_renamed_and_dropped(og: Omnigraph) -> None:
    before = og.snapshot()
    source = changed(
        ("node Site {", 'node Place @rename_from("Site") {'),
        ("edge At: Sensor -> Site", 'edge StandsAt: Sensor -> Place @rename_from("At")'),
        ("edge Near: Site -> Site", "node Batch { code: String @key }\nedge Of: Sensor -> Batch"),
    )
    # An annotation stands after the cardinality.
    source = source.replace(
        'Place @rename_from("At") @card(0..2)', 'Place @card(0..2) @rename_from("At")'
    )
    result = og.schema_apply(source, actor="ann")
    kinds = [str(report.step.kind) for report in result.steps]
    assert kinds == ["add_type", "rename_type", "add_type", "rename_type", "drop_type"]
    after = og.snapshot()
    assert result.applied
    assert result.manifest_version == after.manifest_version
    assert result.commit == after.commit
    assert after.commit.actor_id == "ann"
    assert set(after.tables) == {
        SENSOR, "node:Place", "node:Batch", "edge:StandsAt", "edge:Of",
    }  # fmt: skip
    for old, new in ((SITE, "node:Place"), (AT, "edge:StandsAt")):
        assert after.table(new).location == before.table(old).location
        assert after.table(new).physical_version == before.table(old).physical_version
    check_shapes(og)
    load(og, {"type": "Batch", "data": {"code": "x"}}, {"edge": "Of", "from": "s1", "to": "x"})
    found = og.query(
        "main",
        "query q() { match { $s: Sensor  $s standsAt $p  $s of $b } "
        "return { $p.code as place, $b.code as batch } order { place } }",
    )
    assert found.table.to_pylist() == [{"place": "a", "batch": "x"}, {"place": "b", "batch": "x"}]


def test_a_type_declared_again_is_a_new_one(og: Omnigraph) -> None:
    before = og.snapshot().table(NEAR)
    load(og, {"edge": "Near", "from": "a", "to": "b"})
    assert apply(og, ("edge Near: Site -> Site", "")) == ["drop_type"]
    assert apply(og) == ["add_type"]
    again = og.snapshot().table(NEAR)
    assert again.location != before.location
    assert (again.row_count, again.table_version) == (0, 4)
    check_shapes(og)


def test_properties_are_dropped_softly(og: Omnigraph) -> None:
    before = og.snapshot()
    steps = apply(
        og,
        ("  note: String?\n  scan: Blob?\n", ""),
        (" since: Date?  weight: U32? ", " since: Date? "),
    )
    assert steps == ["drop_property"] * 3
    check_shapes(og)
    old = og.table(before, SENSOR).read(["id", "note", "scan"])
    assert old.num_rows == 3
    assert apply(og) == ["add_property"] * 3
    assert set(column(og, SENSOR, "note").values()) == {None}
    assert set(column(og, SENSOR, "scan").values()) == {None}
    check_shapes(og)


def test_constraints_come_and_go(og: Omnigraph) -> None:
    before = og.snapshot()
    first = changed(
        (
            "  shape: Vector(2)?\n",
            "  shape: Vector(2)?\n  @unique(text)\n  @range(count, -10..10)\n"
            '  @check(kind, "^[a-z]+$")\n  @index(note)\n',
        ),
        ("weight: U32? }", "weight: U32?  @unique(src, dst) }"),
    )
    result = og.schema_apply(first)
    assert {str(report.step.kind) for report in result.steps} == {"add_constraint"}
    assert og.snapshot().tables == before.tables
    with pytest.raises(DataError):
        load(og, {"type": "Sensor", "data": {**SENSORS[0], "serial": "s9"}})
    steps = og.schema_apply(SCHEMA).steps
    assert {str(report.step.kind) for report in steps} == {"remove_constraint"}
    load(og, {"type": "Sensor", "data": {**SENSORS[0], "serial": "s9"}})
    check_shapes(og)


def test_cardinality_narrows_to_what_is_there(og: Omnigraph) -> None:
    # The sensor without any edge is not asked for one: no write does.
    assert apply(og, ("@card(0..2)", "@card(1..)")) == ["change_cardinality"]
    assert apply(og, ("@card(0..2)", "@card(1..2)")) == ["change_cardinality"]
    assert apply(og, ("@card(0..2)", "@card(0..5)")) == ["change_cardinality"]


def test_words_and_interfaces_change_the_schema_only(og: Omnigraph) -> None:
    before = og.snapshot()
    steps = apply(
        og,
        ("node Site {", 'node Site @description("Where things stand") {'),
        ("  text: String\n", '  text: String @description("Free text")\n'),
        ("interface Named {", "interface Coded { code: String }\ninterface Named {"),
        ("node Sensor implements Named {", "node Sensor {\n  label: String?"),
    )
    assert steps == [
        "add_type",
        "change_interfaces",
        "update_property_metadata",
        "update_type_metadata",
    ]
    assert og.snapshot().tables == before.tables
    assert column(og, SENSOR, "label") == given("label")
    check_shapes(og)


def test_the_same_schema_is_no_commit(og: Omnigraph) -> None:
    before = og.snapshot()
    for source in (
        SCHEMA,
        "// words\n" + SCHEMA,
        changed(("node Site { code", "node Site {\n code")),
    ):
        result = og.schema_apply(source)
        assert (result.applied, result.supported, result.steps) == (False, True, ())
        assert result.manifest_version == before.manifest_version
    assert og.snapshot() == before


def test_embeddings_become_pending_and_stale(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_CACHE", "off")
    from omnigraph_core.engine.omnigraph import Omnigraph as Graph

    og = Graph.open(og.uri)
    added = changed(
        ("  shape: Vector(2)?", '  shape: Vector(2)?\n  topic: Vector(4) @embed("text")')
    )
    kinds = [str(report.step.kind) for report in og.schema_apply(added).steps]
    assert kinds == ["add_property", "change_embedding"]

    def counts() -> list[tuple[int, int, int]]:
        return [(item.ready, item.pending, item.stale) for item in og.embedding_status()]

    assert counts() == [(0, 3, 0)]
    assert og.embed_backfill().vectors_made == 3
    assert counts() == [(3, 0, 0)]
    other = added.replace('@embed("text")', '@embed("kind")')
    assert [str(item.step.kind) for item in og.schema_apply(other).steps] == ["change_embedding"]
    assert counts() == [(0, 0, 3)]
    assert og.embed_backfill().vectors_made == 3
    plain = added.replace(' @embed("text")', "")
    assert [str(item.step.kind) for item in og.schema_apply(plain).steps] == ["change_embedding"]
    assert og.embedding_status() == ()
    assert not og.table(og.snapshot(), SENSOR).schema.field("topic").nullable
    check_shapes(og)


def test_the_report_tells_rows_and_bytes(og: Omnigraph) -> None:
    source = changed(
        ("  reading: F32", "  reading: F64"),
        ("  note: String?\n", ""),
        ("edge Near: Site -> Site", ""),
        ("  text: String\n", "  text: String\n  extra: I32?\n"),
    )
    report = og.schema_plan(source)
    document = json.loads(json.dumps(report.to_json()))
    assert (document["supported"], document["step_count"]) == (True, 4)
    by_kind = {step["kind"]: step for step in document["steps"]}
    assert by_kind["widen_property"]["row_count"] == 3
    assert by_kind["widen_property"]["stored_bytes"] > 0
    assert (by_kind["add_property"]["row_count"], by_kind["add_property"]["stored_bytes"]) == (
        0,
        None,
    )
    assert by_kind["drop_type"]["mode"] == "soft"
    unsupported = og.schema_plan(changed(("  reading: F32", "  reading: String")))
    assert not unsupported.supported
    assert unsupported.to_json()["steps"][0]["code"] == "OG-MF-106"  # type: ignore[index]
