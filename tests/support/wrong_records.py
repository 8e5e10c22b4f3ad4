"""Records that must be refused, one mistake each, and the violation that each must become.

They are loaded into the graph of `small_graph` in `tests/support/loading.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.errors import (
    ConstraintViolation,
    DuplicateKey,
    EndpointNotFound,
    RecordError,
)
from omnigraph_core.violations import Rule
from tests.support.loading import bin_, bin_id, edge, holds, needs, note, part

if TYPE_CHECKING:
    from omnigraph_core.errors import DataError
    from tests.support.loading import Record

NORTH: Final = bin_id("north")
SOUTH: Final = bin_id("south")


@dataclass(frozen=True)
class Wrong:
    """One mistake: what it is written as, and the violation it must become."""

    name: str
    given: tuple[Record | str, ...]
    error: type[DataError]
    rule: Rule
    says: tuple[str, ...]
    line: int | None = 1
    type_name: str | None = None
    property: str | None = None
    value: object = None
    id: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


RECORDS: Final = [
    Wrong(
        "malformed JSON", (note(), '{"type": "Note",}'), RecordError, Rule.JSON,
        ("not valid JSON", "column 17"), line=2,
    ),
    Wrong(
        "text after the record", ('{"type": "Note"} {"type": "Note"}',), RecordError, Rule.JSON,
        ("not valid JSON", "after the value"),
    ),
    Wrong(
        "not an object", ("17",), RecordError, Rule.RECORD,
        ("expected a record as an object",), value=17,
    ),
    Wrong(
        "unknown node type", ("", "// parts", {"type": "Prat"}), RecordError, Rule.UNKNOWN_TYPE,
        ("unknown node type `Prat`", "did you mean `Part`?"), line=3, value="Prat",
    ),
    Wrong(
        "node types are case-sensitive", ({"type": "part"},), RecordError, Rule.UNKNOWN_TYPE,
        ("unknown node type `part`",), value="part",
    ),
    Wrong(
        "unknown edge type", ({"edge": "Hold", "from": NORTH, "to": "a"},), RecordError,
        Rule.UNKNOWN_TYPE, ("unknown edge type `Hold`", "did you mean `Holds`?"), value="Hold",
    ),
    Wrong(
        "edge without from", ({"edge": "Holds", "to": "a"},), RecordError, Rule.RECORD,
        ("edge Holds without `from`",), type_name="Holds", property="from",
    ),
    Wrong(
        "edge without to", (note(), {"edge": "Holds", "from": NORTH},), RecordError, Rule.RECORD,
        ("edge Holds without `to`",), line=2, type_name="Holds", property="to",
    ),
    Wrong(
        "edge with a null end", ({"edge": "Holds", "from": None, "to": "a"},), RecordError,
        Rule.RECORD, ("edge Holds without `from`",), type_name="Holds", property="from",
    ),
    Wrong(
        "neither type nor edge", ({"data": {"sku": "z"}},), RecordError, Rule.RECORD,
        ("exactly one of `type` and `edge`", "neither"),
    ),
    Wrong(
        "both type and edge", ({"type": "Note", "edge": "Needs"},), RecordError, Rule.RECORD,
        ("exactly one of `type` and `edge`", "both"),
    ),
    Wrong(
        "unknown property", (part("z", colr="red"),), RecordError, Rule.UNKNOWN_FIELD,
        ("unknown member `colr` of Part", "did you mean `colour`?"),
        type_name="Part", property="colr",
    ),
    Wrong(
        "wrong kind of value", (part("z", stock="ten"),), RecordError, Rule.VALUE,
        ("Part.stock: expected I64, found text 'ten'",),
        type_name="Part", property="stock", value="ten",
    ),
    Wrong(
        "too large an integer", (part("z", stock=2**63),), RecordError, Rule.VALUE,
        ("Part.stock", "out of range for I64"), type_name="Part", property="stock", value=2**63,
    ),
    Wrong(
        "dimension mismatch", (part("z", shape=[1, 2]),), RecordError, Rule.VALUE,
        ("Part.shape: expected 3 numbers, found 2",),
        type_name="Part", property="shape", value="[…]",
    ),
    Wrong(
        "a vector of texts", (part("z", shape=[1, "2", 3]),), RecordError, Rule.VALUE,
        ("Part.shape: element 1", "found text '2'"),
        type_name="Part", property="shape", value="[…]",
    ),
    Wrong(
        "a null in a list", (part("z", tags=["x", None]),), RecordError, Rule.VALUE,
        ("Part.tags", "element 1", "null"), type_name="Part", property="tags", value="[…]",
    ),
    Wrong(
        "NaN", ('{"type": "Part", "data": {"sku": "z", "name": "z", "weight": NaN}}',),
        RecordError, Rule.JSON, ("not valid JSON",),
    ),
    Wrong(
        "a number beyond all", (part("z", weight=10**400),), RecordError, Rule.VALUE,
        ("Part.weight", "out of range for F64"), type_name="Part", property="weight",
        value=f"{str(10**400)[:60]}…",
    ),
    Wrong(
        "a blob that is neither bytes nor address", (part("z", drawing="hello"),), RecordError,
        Rule.VALUE, ("Part.drawing: expected a blob as base64:<data> or a URI",),
        type_name="Part", property="drawing", value="hello",
    ),
    Wrong(
        "explicit id that contradicts the key", (part("z", id="y"),), RecordError,
        Rule.ID_MISMATCH, ("id 'y' of Part", "`sku`", "'z'"),
        type_name="Part", property="sku", value="z", id="y",
    ),
    Wrong(
        "explicit id that contradicts a composite key",
        ({"type": "Bin", "data": {"id": "z", "label": "z", "row": 3}},), RecordError,
        Rule.ID_MISMATCH, ("id 'z' of Bin", "`(label, row)`"),
        type_name="Bin", property="(label, row)", value=bin_id("z", 3), id="z",
    ),
]  # fmt: skip

ROWS: Final = [
    Wrong(
        "missing key", ({"type": "Part", "data": {"name": "z"}},), ConstraintViolation,
        Rule.REQUIRED, ("missing required property `sku` on Part",),
        type_name="Part", property="sku",
    ),
    Wrong(
        "missing part of a key", ({"type": "Bin", "data": {"label": "z"}},), ConstraintViolation,
        Rule.REQUIRED, ("missing required property `row` on Bin",),
        type_name="Bin", property="row",
    ),
    Wrong(
        "null in required", (note(), part("z", name=None)), ConstraintViolation, Rule.REQUIRED,
        ("missing required property `name` on Part",),
        line=2, type_name="Part", property="name", id="z",
    ),
    Wrong(
        "required left out", ({"type": "Part", "data": {"sku": "z"}},), ConstraintViolation,
        Rule.REQUIRED, ("missing required property `name` on Part",),
        type_name="Part", property="name", id="z",
    ),
    Wrong(
        "enum of a node", (part("z", kind="screw"),), ConstraintViolation, Rule.ENUM,
        ("invalid enum value 'screw' on Part.kind", "bolt | nut"),
        type_name="Part", property="kind", value="screw", id="z",
    ),
    Wrong(
        "enum of an edge", (holds("south", "b", "z", grade="fair"),), ConstraintViolation,
        Rule.ENUM, ("invalid enum value 'fair' on Holds.grade", "good | poor"),
        type_name="Holds", property="grade", value="fair", id="z",
    ),
    Wrong(
        "above a range", (part("z", stock=101),), ConstraintViolation, Rule.RANGE,
        ("@range violation on Part.stock", "101 is not in 0..100"),
        type_name="Part", property="stock", value=101, id="z",
    ),
    Wrong(
        "below a range", (part("z", stock=-1),), ConstraintViolation, Rule.RANGE,
        ("@range violation on Part.stock", "-1 is not in 0..100"),
        type_name="Part", property="stock", value=-1, id="z",
    ),
    Wrong(
        "check", (part("z", code="xyz"),), ConstraintViolation, Rule.CHECK,
        ("@check violation on Part.code", "'xyz' does not match '^[A-Z]{2}$'"),
        type_name="Part", property="code", value="xyz", id="z",
    ),
    Wrong(
        "a fresh id is not shown", (note(rank=10),), ConstraintViolation, Rule.RANGE,
        ("@range violation on Note.rank",), type_name="Note", property="rank", value=10,
    ),
]  # fmt: skip

SETS: Final = [
    Wrong(
        "unique in the input", (part("y", serial="S2"), part("z", serial="S2")),
        ConstraintViolation, Rule.UNIQUE,
        ("@unique violation on Part.serial: 'S2' was given before, at line 1",),
        line=2, type_name="Part", property="serial", value="S2", id="z",
    ),
    Wrong(
        "unique against committed", (part("z", serial="S1"),), ConstraintViolation, Rule.UNIQUE,
        ("@unique violation on Part.serial: 'S1'", "'a'"),
        type_name="Part", property="serial", value="S1", id="z",
    ),
    Wrong(
        "composite unique in the input",
        (part("y", maker="M", model="1"), part("z", maker="M", model="1")),
        ConstraintViolation, Rule.UNIQUE,
        ("@unique violation on Part.(maker, model): ('M', '1') was given before, at line 1",),
        line=2, type_name="Part", property="maker, model", value=["M", "1"], id="z",
    ),
    Wrong(
        "composite unique against committed", (part("z", maker="Acme", model="X"),),
        ConstraintViolation, Rule.UNIQUE,
        ("@unique violation on Part.(maker, model): ('Acme', 'X')", "'a'"),
        type_name="Part", property="maker, model", value=["Acme", "X"], id="z",
    ),
    Wrong(
        "unique of an edge against committed", (holds("north", "a", "z"),), ConstraintViolation,
        Rule.UNIQUE, ("@unique violation on Holds.(src, dst)", "'h1'"),
        type_name="Holds", property="src, dst", value=[NORTH, "a"], id="z",
    ),
    Wrong(
        "key twice in the input", (part("z"), part("y"), part("z", stock=1)), DuplicateKey,
        Rule.KEY, ("@unique violation on Part.sku: key 'z' was given before, at line 1",),
        line=3, type_name="Part", property="sku", value="z", id="z",
    ),
    Wrong(
        "composite key twice in the input", (bin_("z", 7), bin_("z", 8), bin_("z", 7)),
        DuplicateKey, Rule.KEY,
        ("@unique violation on Bin.(label, row)", "was given before, at line 1"),
        line=3, type_name="Bin", property="label, row",
        value=bin_id("z", 7), id=bin_id("z", 7),
    ),
    Wrong(
        "key that is committed, in append", (part("z"), part("a")), DuplicateKey, Rule.KEY,
        ("@unique violation on Part.sku: key 'a' already exists",),
        line=2, type_name="Part", property="sku", value="a", id="a", options={"mode": "append"},
    ),
    Wrong(
        "id twice in append", (note("z"), note("z")), DuplicateKey, Rule.KEY,
        ("@unique violation on Note.id: id 'z' was given before, at line 1",),
        line=2, type_name="Note", property="id", value="z", id="z", options={"mode": "append"},
    ),
    Wrong(
        "edge id that is committed, in append", (holds("south", "b", "h1"),), DuplicateKey,
        Rule.KEY, ("@unique violation on Holds.id: id 'h1' already exists",),
        type_name="Holds", property="id", value="h1", id="h1", options={"mode": "append"},
    ),
    Wrong(
        "source that is not there", (note(), holds("west", "b", "z")), EndpointNotFound,
        Rule.ENDPOINT, (f"src {bin_id('west')!r} not found in Bin", "edge Holds 'z'"),
        line=2, type_name="Holds", property="src", value=bin_id("west"), id="z",
    ),
    Wrong(
        "target that is not there", (holds("south", "zz"),), EndpointNotFound, Rule.ENDPOINT,
        ("dst 'zz' not found in Part", "edge Holds"),
        type_name="Holds", property="dst", value="zz",
    ),
    Wrong(
        "a target of another type", (edge("Holds", SOUTH, "n"),), EndpointNotFound, Rule.ENDPOINT,
        ("dst 'n' not found in Part",), type_name="Holds", property="dst", value="n",
    ),
    Wrong(
        "more than the maximum in the input",
        (holds("south", "a"), holds("south", "b"), holds("south", "c")), ConstraintViolation,
        Rule.CARDINALITY, ("@card violation on edge Holds", f"source {SOUTH!r} has 3", "0..2"),
        line=3, type_name="Holds", property="src", value=SOUTH,
    ),
    Wrong(
        "more than the maximum with committed", (holds("north", "b"), holds("north", "c")),
        ConstraintViolation, Rule.CARDINALITY,
        ("@card violation on edge Holds", f"source {NORTH!r} has 3", "0..2"),
        line=2, type_name="Holds", property="src", value=NORTH,
    ),
    Wrong(
        "less than the minimum, an edge moved away",
        (note("m"), needs("m", "a", "w1")), ConstraintViolation, Rule.CARDINALITY,
        ("@card violation on edge Needs", "source 'n' has 0", "1..2"),
        line=None, type_name="Needs", property="src", value="n",
    ),
    Wrong(
        "orphan after overwrite", (part("b"), part("c")), EndpointNotFound, Rule.ORPHAN,
        ("dst 'a' not found in Part", "edge Holds 'h1'"),
        line=None, type_name="Holds", property="dst", value="a", id="h1",
        options={"mode": "overwrite"},
    ),
]  # fmt: skip
