"""One JSON value by its declared type: what `parse_json` gave in, what a column takes out.

Out come Python values that Arrow builds columns from: days for a Date, milliseconds for a DateTime,
a 32-bit number for an F32, and for a Blob its bytes or its URI. Strict: nothing is guessed,
truncated or nulled. Whether null or an enum value is allowed is for the row rules.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.types import INTEGER_RANGES, PropType, Scalar
from omnigraph_core.values import (
    F32_OVERFLOW,
    ValueProblem,
    epoch_days,
    epoch_milliseconds,
    parse_date,
    parse_datetime,
    to_json,
)
from omnigraph_core.write.blob_text import parse_blob

if TYPE_CHECKING:
    from collections.abc import Callable

DATE_RANGE: Final = (epoch_days(dt.date.min), epoch_days(dt.date.max))
"""Days that can be shown again as ISO text."""
DATETIME_RANGE: Final = (DATE_RANGE[0] * 86_400_000, (DATE_RANGE[1] + 1) * 86_400_000 - 1)
"""Milliseconds that can be."""
MAX_SHOWN: Final = 60
"""Characters of a value that messages and violations repeat."""


def read_value(value: object, type: PropType) -> object:
    """A value read by a declared type; null stays null. A Blob is a pair of bytes and URI.

    Raises:
        ValueProblem: what was expected and what was found.
    """
    if value is None:
        return None
    if type.is_vector:
        members = _array(value, type)
        if len(members) != type.dimension:
            raise ValueProblem(f"expected {type.dimension} numbers, found {len(members)}")
    elif type.is_list:
        members = _array(value, type)
    else:
        return _READERS[type.scalar](value, type.scalar)
    return [_member(item, place, type.scalar) for place, item in enumerate(members)]


def read_text(value: object) -> str:
    """A String.

    Raises:
        ValueProblem: it is none, or holds half a character.
    """
    return _string(value, Scalar.STRING)


def shortened(value: object) -> object:
    """A value as a violation repeats it: JSON-ready and short."""
    if isinstance(value, str):
        clean = value.encode("utf-8", "backslashreplace").decode()
        return clean if len(clean) <= MAX_SHOWN else clean[:MAX_SHOWN] + "…"
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return to_json(value)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else shortened(Decimal(value))
    if isinstance(value, Decimal):
        return shortened(str(value))
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    return "[…]" if value else "[]"


def _array(value: object, type: PropType) -> list[object]:
    if not isinstance(value, list):
        raise ValueProblem(f"expected {type.nullable(is_nullable=False)} as an array, {_f(value)}")
    return value


def _member(item: object, place: int, scalar: Scalar) -> object:
    try:
        return _READERS[scalar](item, scalar)
    except ValueProblem as problem:
        raise ValueProblem(f"element {place}: {problem}") from problem


def _string(value: object, scalar: Scalar) -> str:
    if not isinstance(value, str):
        raise ValueProblem(f"expected {scalar}, {_f(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        raise ValueProblem("text with half of a surrogate pair") from problem
    return value


def _bool(value: object, scalar: Scalar) -> bool:
    if not isinstance(value, bool):
        raise ValueProblem(f"expected {scalar}, {_f(value)}")
    return value


def _integer(value: object, scalar: Scalar) -> int:
    low, high = INTEGER_RANGES[scalar]
    return _whole(value, str(scalar), low, high)


def _whole(value: object, what: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueProblem(f"expected {what}, {_f(value)}")
    # Compared first: 1e999999999 as an integer would fill the memory.
    if not low <= value <= high:
        raise ValueProblem(f"{shortened(value)} is out of range for {what} ({low}..{high})")
    number = int(value)
    if number != value:
        raise ValueProblem(f"expected {what}, {_f(value)}")
    return number


def _f64(value: object, scalar: Scalar) -> float:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueProblem(f"expected {_number_name(scalar)}, {_f(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise ValueProblem(f"{shortened(value)} is out of range for {_number_name(scalar)}")
    return number


def _f32(value: object, scalar: Scalar) -> float:
    number = _f64(value, scalar)
    if abs(number) >= F32_OVERFLOW:
        # The value itself may lie just below: 64 bits rounded it up.
        if not -F32_OVERFLOW < value < F32_OVERFLOW:  # type: ignore[operator]
            raise ValueProblem(f"{shortened(value)} is out of range for {_number_name(scalar)}")
        number = math.nextafter(number, 0.0)
    near = np.float32(number)
    if float(near) == number:
        return number
    # Rounding twice is wrong where the first rounding lands half way between two 32-bit numbers.
    with np.errstate(over="ignore"):
        other = np.nextafter(near, np.float32(math.copysign(math.inf, number - float(near))))
    is_half_way = abs(number - float(near)) == abs(float(other) - number)
    if is_half_way and value != number:
        number = math.nextafter(number, math.inf if value > number else -math.inf)  # type: ignore[operator]
    return float(np.float32(number))


def _number_name(scalar: Scalar) -> str:
    return "a number" if scalar is Scalar.VECTOR else str(scalar)


def _date(value: object, scalar: Scalar) -> int:
    if isinstance(value, str):
        return epoch_days(parse_date(value))
    return _whole(value, f"{scalar} text or days", *DATE_RANGE)


def _datetime(value: object, scalar: Scalar) -> int:
    if isinstance(value, str):
        return epoch_milliseconds(parse_datetime(value))
    return _whole(value, f"{scalar} text or milliseconds", *DATETIME_RANGE)


def _blob(value: object, scalar: Scalar) -> tuple[bytes | None, str | None]:
    return parse_blob(_string(value, scalar))


_READERS: Final[dict[Scalar, Callable[[object, Scalar], object]]] = {
    Scalar.STRING: _string,
    Scalar.BLOB: _blob,
    Scalar.BOOL: _bool,
    Scalar.I32: _integer,
    Scalar.I64: _integer,
    Scalar.U32: _integer,
    Scalar.U64: _integer,
    Scalar.F32: _f32,
    Scalar.F64: _f64,
    Scalar.DATE: _date,
    Scalar.DATETIME: _datetime,
    Scalar.VECTOR: _f32,
}


def _f(value: object) -> str:
    """What was found, as the end of a message."""
    if value is None:
        return "found null"
    if isinstance(value, bool):
        return f"found boolean {str(value).lower()}"
    if isinstance(value, str):
        return f"found text {shortened(value)!r}"
    if isinstance(value, int | Decimal):
        return f"found number {shortened(value)}"
    return "found an object" if isinstance(value, dict) else "found an array"
