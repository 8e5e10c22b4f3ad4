"""Arrow schemas: every type, nullability and column order."""

from __future__ import annotations

import pyarrow as pa

from omnigraph_core.schema.arrow import arrow_type, edge_schema, node_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.types import PropType, Scalar
from tests.support.cases import each

ITEM = "item"


@each(
    ("type", "expected"),
    [
        (PropType(Scalar.STRING), pa.utf8()),
        (PropType(Scalar.STRING, enum_values=("a", "b")), pa.utf8()),
        (PropType(Scalar.BLOB), pa.large_binary()),
        (PropType(Scalar.BOOL), pa.bool_()),
        (PropType(Scalar.I32), pa.int32()),
        (PropType(Scalar.I64), pa.int64()),
        (PropType(Scalar.U32), pa.uint32()),
        (PropType(Scalar.U64), pa.uint64()),
        (PropType(Scalar.F32), pa.float32()),
        (PropType(Scalar.F64), pa.float64()),
        (PropType(Scalar.DATE), pa.date32()),
        (PropType(Scalar.DATETIME), pa.date64()),
        (PropType(Scalar.I32, is_nullable=True), pa.int32()),
        (PropType(Scalar.DATE, is_list=True), pa.list_(pa.field(ITEM, pa.date32()))),
        (
            PropType(Scalar.VECTOR, dimension=3),
            pa.list_(pa.field(ITEM, pa.float32(), nullable=True), 3),
        ),
    ],
    ids=str,
)
def test_types(type: PropType, expected: pa.DataType) -> None:
    found = arrow_type(type)
    assert found == expected
    if pa.types.is_list(found) or pa.types.is_fixed_size_list(found):
        assert found.value_field.name == ITEM
        assert found.value_field.nullable


def test_node_columns() -> None:
    text = "interface I { z: Date } node A implements I { b: I32? a: [String] }"
    assert node_schema(compile_schema(text).nodes["A"]) == pa.schema(
        [
            pa.field("id", pa.utf8(), nullable=False),
            pa.field("b", pa.int32(), nullable=True),
            pa.field("a", pa.list_(pa.field(ITEM, pa.utf8())), nullable=False),
            pa.field("z", pa.date32(), nullable=False),
        ]
    )


def test_edge_columns() -> None:
    edge = compile_schema("node A {} edge B: A -> A { w: F64? }").edges["B"]
    schema = edge_schema(edge)
    assert schema.names == ["id", "src", "dst", "w"]
    assert [field.nullable for field in schema] == [False, False, False, True]
