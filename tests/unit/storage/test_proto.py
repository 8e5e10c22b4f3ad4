"""Field records change in the one value asked for and in nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.blob import blob_field
from lance.schema import LanceSchema

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.proto import NO_PARENT, FieldRecord
from tests.support.cases import each

FIELDS = [
    pa.field("id", pa.utf8(), nullable=False),
    pa.field("note", pa.utf8(), metadata={"unit": "mm"}),
    pa.field("tags", pa.list_(pa.field("item", pa.utf8()))),
    pa.field("shape", pa.list_(pa.field("item", pa.float32()), 3)),
    pa.field("box", pa.struct([pa.field("w", pa.int32()), pa.field("h", pa.int32())])),
    blob_field("drawing"),
]


def records() -> list[FieldRecord]:
    reduced = LanceSchema.from_pyarrow(pa.schema(FIELDS)).__reduce__()
    return [FieldRecord(content) for content in reduced[1][1:]]


def schema_of(items: list[FieldRecord]) -> pa.Schema:
    return LanceSchema._from_protos("{}", *(item.content for item in items)).to_pyarrow()


def test_names_ids_and_parents_are_read() -> None:
    seen = [(item.name, item.id, item.parent_id) for item in records()]
    assert seen == [
        ("id", 0, NO_PARENT),
        ("note", 1, NO_PARENT),
        ("tags", 2, NO_PARENT),
        ("item", 3, 2),
        ("shape", 4, NO_PARENT),
        ("box", 5, NO_PARENT),
        ("w", 6, 5),
        ("h", 7, 5),
        ("drawing", 8, NO_PARENT),
        ("data", 9, 8),
        ("uri", 10, 8),
        ("position", 11, 8),
        ("size", 12, 8),
    ]


def test_unchanged_records_make_the_same_schema() -> None:
    assert schema_of(records()).equals(pa.schema(FIELDS), check_metadata=True)


@each("name", ["n", "a much longer name than before", "größe", "日本", ""])
def test_renaming_changes_the_name_alone(name: str) -> None:
    changed = [item.renamed(name) if item.id == 1 else item for item in records()]
    expected = [field.with_name(name) if field.name == "note" else field for field in FIELDS]
    assert schema_of(changed).equals(pa.schema(expected), check_metadata=True)


@given(st.integers(0, 2**31 - 1), st.integers(-1, 2**31 - 1))
def test_renumbering_is_read_back(id: int, parent_id: int) -> None:
    record = records()[1].renumbered(id, parent_id)
    assert (record.id, record.parent_id, record.name) == (id, parent_id, "note")


def test_the_last_of_a_repeated_member_counts() -> None:
    once = records()[0].renamed("first").content
    twice = FieldRecord(once + b"\x12\x06second")
    assert twice.name == "second"
    assert twice.renamed("third").name == "third"


def test_members_of_fixed_length_pass_through() -> None:
    extra = b"\x99\x01" + b"8 bytes." + b"\xa5\x01" + b"four"
    record = FieldRecord(extra + records()[1].content).renamed("kept")
    assert record.name == "kept"
    assert record.content.startswith(extra)


@each(
    "content",
    [
        b"\x12",  # a name of no length
        b"\x12\x05abc",  # a name shorter than it says
        b"\x18\x80",  # a number without its end
        b"\x11abc",  # fewer than eight bytes
        b"\x13",  # a group, which nobody writes any more
        b"\x80",  # half a tag
    ],
)
def test_what_is_no_message_is_refused(content: bytes) -> None:
    with pytest.raises(InvariantBroken, match="field record"):
        _ = FieldRecord(content).name


def test_members_of_another_type_are_refused() -> None:
    with pytest.raises(InvariantBroken):
        _ = FieldRecord(b"\x10\x01").name  # a number where the name belongs
    with pytest.raises(InvariantBroken):
        _ = FieldRecord(b"\x1a\x01x").id  # a text where the id belongs
