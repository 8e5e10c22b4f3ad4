"""The value types of both languages, and when two of them can meet.

A `PropType` is what a schema property or a query parameter declares; an `enum` is a String with an
allowed set; a vector is a scalar with a dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


class Scalar(StrEnum):
    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"
    VECTOR = "Vector"

    @property
    def is_integer(self) -> bool:
        return self in _INTEGERS

    @property
    def is_float(self) -> bool:
        return self in _FLOATS

    @property
    def is_numeric(self) -> bool:
        return self in _INTEGERS or self in _FLOATS


_INTEGERS: Final = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
_FLOATS: Final = frozenset({Scalar.F32, Scalar.F64})

SCALAR_NAMES: Final = tuple(str(scalar) for scalar in Scalar if scalar is not Scalar.VECTOR)
"""Names usable as plain types; `Vector` always carries a dimension."""

MAX_VECTOR_DIMENSION: Final = 2**31 - 1

INTEGER_RANGES: Final = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class PropType:
    """A declared type: scalar, vector (`dimension`), list (`is_list`) or enum (`enum_values`)."""

    scalar: Scalar
    dimension: int | None = None
    is_list: bool = False
    is_nullable: bool = False
    enum_values: tuple[str, ...] | None = None

    @property
    def is_vector(self) -> bool:
        return self.scalar is Scalar.VECTOR

    @property
    def is_blob(self) -> bool:
        return self.scalar is Scalar.BLOB

    @property
    def is_enum(self) -> bool:
        return self.enum_values is not None

    @property
    def is_numeric(self) -> bool:
        """A single number, not a list of them."""
        return self.scalar.is_numeric and not self.is_list

    @property
    def is_string(self) -> bool:
        """A single String, enums included."""
        return self.scalar is Scalar.STRING and not self.is_list

    @property
    def element(self) -> PropType:
        """The type of a list's members; of anything else, the type itself without null."""
        return replace(self, is_list=False, is_nullable=False)

    def nullable(self, *, is_nullable: bool = True) -> PropType:
        """The same type with the given nullability."""
        return self if self.is_nullable == is_nullable else replace(self, is_nullable=is_nullable)

    def __str__(self) -> str:
        """The type as the schema language writes it.

        >>> str(PropType(Scalar.VECTOR, dimension=4, is_nullable=True))
        'Vector(4)?'
        >>> str(PropType(Scalar.STRING, enum_values=("a", "b")))
        'enum(a, b)'
        """
        if self.enum_values is not None:
            base = f"enum({', '.join(self.enum_values)})"
        elif self.is_vector:
            base = f"Vector({self.dimension})"
        elif self.is_list:
            base = f"[{self.scalar}]"
        else:
            base = str(self.scalar)
        return f"{base}?" if self.is_nullable else base


def scalars_compatible(left: Scalar, right: Scalar) -> bool:
    """Whether two scalar types may be compared or assigned: equal, or both numeric."""
    return left == right or (left.is_numeric and right.is_numeric)


STRING: Final = PropType(Scalar.STRING)
BOOL: Final = PropType(Scalar.BOOL)
I64: Final = PropType(Scalar.I64)
U64: Final = PropType(Scalar.U64)
F64: Final = PropType(Scalar.F64)
DATE: Final = PropType(Scalar.DATE)
DATETIME: Final = PropType(Scalar.DATETIME)
