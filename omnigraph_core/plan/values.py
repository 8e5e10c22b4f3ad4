"""What a run knows before its first row: the value of every parameter and its one timestamp.

A value declared F32 is the nearest F32, as it would be in a column, so that what was stored from a
parameter is found again with it.
"""

from __future__ import annotations

import operator
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from omnigraph_core.query.typed import Constant, NowValue, ParamValue, TypedOp
from omnigraph_core.types import Scalar

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias, TypeGuard

    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.values import Value

    GivenExpr: TypeAlias = Constant | ParamValue | NowValue

OPERATORS: Final[dict[TypedOp, Callable[[Any, Any], Any]]] = {
    TypedOp.EQ: operator.eq,
    TypedOp.NE: operator.ne,
    TypedOp.LT: operator.lt,
    TypedOp.LE: operator.le,
    TypedOp.GT: operator.gt,
    TypedOp.GE: operator.ge,
}
"""The comparisons that order values, on plain values and on NumPy arrays."""


def is_given(expr: TypedExpr) -> TypeGuard[GivenExpr]:
    """Whether an expression has one value for the whole run."""
    return isinstance(expr, Constant | ParamValue | NowValue)


@dataclass(frozen=True, slots=True)
class Values:
    """Coerced parameters and the moment that `now()` stands for, in UTC, cut to milliseconds."""

    now: dt.datetime
    params: Mapping[str, Value] = field(default_factory=dict)

    def of(self, expr: GivenExpr) -> Value:
        """The value of an expression that does not depend on a row."""
        match expr:
            case Constant(value=value):
                found = value
            case ParamValue(name=name):
                found = self.params[name]
            case NowValue():
                return self.now
        return _nearest_f32(found) if expr.type.scalar is Scalar.F32 else found


def _nearest_f32(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(_nearest_f32(member) for member in value)
    if isinstance(value, int | float):
        nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
        return nearest
    return value


def compare_values(left: Value, op: TypedOp, right: Value) -> bool:
    """A comparison of two values: false if either is null."""
    if left is None or right is None:
        return False
    if op is TypedOp.HAS_TEXT or op is TypedOp.HAS_MEMBER:
        return right in left  # type: ignore[operator]
    if op is TypedOp.STARTS_WITH:
        return str(left).startswith(str(right))
    return bool(OPERATORS[op](left, right))
