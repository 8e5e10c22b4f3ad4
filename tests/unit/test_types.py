"""What types say about themselves."""

from __future__ import annotations

from omnigraph_core.types import I64, STRING, PropType, Scalar, scalars_compatible
from tests.support.cases import each


@each(
    ("type_", "text"),
    [
        (STRING, "String"),
        (PropType(Scalar.I32, is_nullable=True), "I32?"),
        (PropType(Scalar.DATE, is_list=True, is_nullable=True), "[Date]?"),
        (PropType(Scalar.VECTOR, dimension=3), "Vector(3)"),
        (PropType(Scalar.STRING, enum_values=("a", "b-c")), "enum(a, b-c)"),
    ],
)
def test_text_is_the_schema_language(type_: PropType, text: str) -> None:
    assert str(type_) == text


def test_kinds() -> None:
    vector = PropType(Scalar.VECTOR, dimension=2)
    numbers = PropType(Scalar.F32, is_list=True, is_nullable=True)
    assert vector.is_vector
    assert not vector.is_numeric
    assert not numbers.is_numeric
    assert numbers.element == PropType(Scalar.F32)
    assert PropType(Scalar.F32).is_numeric
    assert PropType(Scalar.BLOB).is_blob
    assert PropType(Scalar.STRING, enum_values=("a",)).is_enum
    assert STRING.is_string
    assert not PropType(Scalar.STRING, is_list=True).is_string
    assert Scalar.U64.is_integer
    assert not Scalar.U64.is_float


def test_nullability_changes_nothing_else() -> None:
    assert I64.nullable() == PropType(Scalar.I64, is_nullable=True)
    assert I64.nullable().nullable(is_nullable=False) == I64
    assert I64.nullable(is_nullable=False) is I64


def test_compatibility_is_equality_or_both_numbers() -> None:
    for left in Scalar:
        for right in Scalar:
            both_numbers = left.is_numeric and right.is_numeric
            assert scalars_compatible(left, right) is (left is right or both_numbers)
