"""Reads type expressions: words and dimensions in, `PropType` out, with a hint for near misses.

A type that cannot be read becomes `UNKNOWN_TYPE`, so later passes can stay silent about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import Diagnostics, Name, Span, did_you_mean
from omnigraph_core.types import MAX_VECTOR_DIMENSION, SCALAR_NAMES, PropType, Scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

UNKNOWN_TYPE: Final = PropType(Scalar.STRING, enum_values=())
"""Stands for a type already reported; no text can declare an enum without values."""

OTHER_LANGUAGES: Final = {
    "int": "I64", "integer": "I64", "long": "I64", "bigint": "I64", "number": "I64` or `F64",
    "int64": "I64", "int32": "I32", "short": "I32", "uint": "U64", "ulong": "U64", "uint64": "U64",
    "uint32": "U32", "float": "F64", "double": "F64", "decimal": "F64", "real": "F64",
    "float64": "F64", "float32": "F32", "text": "String", "str": "String", "varchar": "String",
    "char": "String", "uuid": "String", "url": "String", "json": "String", "boolean": "Bool",
    "timestamp": "DateTime", "instant": "DateTime", "time": "DateTime", "bytes": "Blob",
    "binary": "Blob", "embedding": "Vector(768)", "list": "[String]", "array": "[String]",
}  # fmt: skip


def is_unknown(type: PropType) -> bool:
    """Whether the type was refused already."""
    return type.enum_values == ()


def named_type(word: Name, problems: Diagnostics) -> PropType:
    """The scalar a word names."""
    if word in SCALAR_NAMES:
        return PropType(Scalar(word))
    problems.add("P1", f"unknown type `{word}`", word.span, hint=_type_hint(word))
    return UNKNOWN_TYPE


def _type_hint(word: str) -> str:
    if known := OTHER_LANGUAGES.get(word.lower()):
        return f"use `{known}`"
    return did_you_mean(word, SCALAR_NAMES) or (
        f"types are {', '.join(SCALAR_NAMES)}, Vector(n), [T] and enum(a, b)"
    )


def vector_type(dimension: int, span: Span, problems: Diagnostics) -> PropType:
    """A vector of a dimension that fits a fixed-size list."""
    if 1 <= dimension <= MAX_VECTOR_DIMENSION:
        return PropType(Scalar.VECTOR, dimension=dimension)
    message = f"a vector has between 1 and {MAX_VECTOR_DIMENSION} dimensions"
    problems.add("P2", message, span, hint="use the dimension of the embedding model, like 768")
    return UNKNOWN_TYPE


def list_type(member: PropType, span: Span, problems: Diagnostics) -> PropType:
    """A list of plain, non-null scalars."""
    if is_unknown(member):
        return UNKNOWN_TYPE
    if member.is_list or member.is_vector or member.is_enum:
        kind = "a list" if member.is_list else "a vector" if member.is_vector else "an enum"
        hint = "a list holds scalars, like [String] or [F64]"
        problems.add("P1", f"a list cannot hold {kind}", span, hint=hint)
        return UNKNOWN_TYPE
    if member.is_nullable:
        hint = f"write [{member.scalar}]? for a list that may be absent"
        problems.add("P1", "list members cannot be marked nullable", span, hint=hint)
        return UNKNOWN_TYPE
    if member.is_blob:
        problems.add("P2", "a list cannot hold Blobs", span, hint="use a node per Blob")
        return UNKNOWN_TYPE
    return PropType(member.scalar, is_list=True)


def enum_type(values: Sequence[Name], problems: Diagnostics) -> PropType:
    """A String with an allowed set; the set is kept sorted, since its order means nothing."""
    seen: set[str] = set()
    for value in values:
        if value in seen:
            problems.add("P2", f"enum value `{value}` is given twice", value.span)
        seen.add(value)
    return PropType(Scalar.STRING, enum_values=tuple(sorted(map(str, seen))))
