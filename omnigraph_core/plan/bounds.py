"""Comparisons of a number column with any number, in terms of numbers the column can hold.

`I32 < 2.5` becomes `I32 <= 2`, `F64 = 2^53 + 1` becomes false. What comes out says exactly the same
and needs no conversion of the column, so nothing is rounded wherever it is evaluated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from omnigraph_core.query.typed import TypedOp
from omnigraph_core.types import INTEGER_RANGES, Scalar

if TYPE_CHECKING:
    Number: TypeAlias = int | float

_F32_MAX: Final = float(np.finfo(np.float32).max)
_DOWN: Final = frozenset({TypedOp.LT, TypedOp.LE})

FLIPPED: Final = {
    TypedOp.EQ: TypedOp.EQ,
    TypedOp.NE: TypedOp.NE,
    TypedOp.LT: TypedOp.GT,
    TypedOp.LE: TypedOp.GE,
    TypedOp.GT: TypedOp.LT,
    TypedOp.GE: TypedOp.LE,
}
"""`a op b` is `b FLIPPED[op] a`."""


def fit_bound(op: TypedOp, number: Number, scalar: Scalar) -> tuple[TypedOp, Number] | bool:
    """The same comparison with a number of the column's type, or what it is for every number.

    >>> fit_bound(TypedOp.LT, 2.5, Scalar.I32)
    (<TypedOp.LE: '<='>, 2)
    >>> fit_bound(TypedOp.EQ, 2**53 + 1, Scalar.F64), fit_bound(TypedOp.NE, -1, Scalar.U64)
    (False, True)
    """
    below, above = _neighbours(number, scalar)
    if below is not None and below == above:
        return op, below
    if op in (TypedOp.EQ, TypedOp.NE):
        return op is TypedOp.NE
    nearest = below if op in _DOWN else above
    if nearest is None:
        return False
    return (TypedOp.LE if op in _DOWN else TypedOp.GE), nearest


def _neighbours(number: Number, scalar: Scalar) -> tuple[Number | None, Number | None]:
    """The greatest number of the type up to this one and the least one from it on."""
    if scalar.is_integer:
        low, high = INTEGER_RANGES[scalar]
        down, up = math.floor(number), math.ceil(number)
        return (min(down, high) if down >= low else None, max(up, low) if up <= high else None)
    if scalar is Scalar.F32:
        return _f32_neighbours(number)
    near = float(number)
    if near == number:
        return near, near
    if near < number:
        return near, math.nextafter(near, math.inf)
    return math.nextafter(near, -math.inf), near


def _f32_neighbours(number: Number) -> tuple[float | None, float | None]:
    if abs(number) > _F32_MAX:
        return (_F32_MAX, None) if number > 0 else (None, -_F32_MAX)
    near = np.float32(number)
    towards = math.inf if float(near) < number else -math.inf if float(near) > number else near
    other = np.nextafter(near, np.float32(towards))
    return min(float(near), float(other)), max(float(near), float(other))
