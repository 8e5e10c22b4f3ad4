"""Single values: read from JSON by declared type, written back, and put into canonical text.

In memory a Date is `datetime.date`, a DateTime is an aware `datetime.datetime` in UTC cut to
milliseconds, a Blob is its text form (`base64:…` or a URI), a Vector is a tuple of floats and a
list is a tuple. Columns never come through here: they are converted by Arrow kernels.
"""

from __future__ import annotations

import builtins
import datetime as dt
import math
import re
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from omnigraph_core.types import INTEGER_RANGES, PropType, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ScalarValue: TypeAlias = str | int | float | bool | dt.date | dt.datetime
Value: TypeAlias = ScalarValue | tuple["Value", ...] | None

F32_OVERFLOW: Final = 2.0**128 - 2.0**103
"""The least number that 32 bits would round to infinity."""
_MOST_DIGITS: Final = 40
JS_SAFE_INTEGER: Final = 2**53 - 1
_EPOCH_DATE: Final = dt.date(1970, 1, 1)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LARGEST_OFFSET: Final = dt.timedelta(hours=23, minutes=59)
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_DATETIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\s?(?:([Zz])|([+-])(\d\d):?(\d\d))?)?",
    re.ASCII,
)
_INTEGER_TEXT: Final = re.compile(r"[+-]?\d+", re.ASCII)


class ValueProblem(ValueError):
    """Why a value does not fit; caught by the pass that knows where the value stood."""


def parse_date(text: str) -> dt.date:
    """A `YYYY-MM-DD` text as a date.

    Raises:
        ValueProblem: not of that form, or no such day.
    """
    found = _DATE.fullmatch(text)
    if not found:
        raise ValueProblem(f"expected a date like 2026-01-31, found {text!r}")
    year, month, day = map(int, found.groups())
    try:
        return dt.date(year, month, day)
    except ValueError as problem:
        raise ValueProblem(f"no such date: {text!r} ({problem})") from problem


def parse_datetime(text: str) -> dt.datetime:
    """An ISO-8601 text as a UTC instant; a bare date is midnight, no offset means UTC.

    >>> parse_datetime("2026-01-31 10:00:00.5+02:00").isoformat()
    '2026-01-31T08:00:00.500000+00:00'

    Raises:
        ValueProblem: not of that form, or no such instant.
    """
    found = _DATETIME.fullmatch(text)
    if not found:
        raise ValueProblem(f"expected a datetime like 2026-01-31T10:00:00Z, found {text!r}")
    year, month, day, hour, minute, second, fraction, _, sign, off_hour, off_minute = found.groups()
    milliseconds = int((fraction or "0")[:3].ljust(3, "0"))
    offset = dt.timedelta(hours=int(off_hour or 0), minutes=int(off_minute or 0))
    if offset > _LARGEST_OFFSET or int(off_minute or 0) > 59:
        raise ValueProblem(f"no such datetime: {text!r} (offsets go up to 23:59)")
    try:
        local = dt.datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0),
            milliseconds * 1000, tzinfo=dt.UTC,
        )  # fmt: skip
        return local + offset if sign == "-" else local - offset
    except (ValueError, OverflowError) as problem:
        raise ValueProblem(f"no such datetime: {text!r} ({problem})") from problem


def _in_utc(value: dt.datetime) -> dt.datetime:
    """A moment in UTC, cut to milliseconds; without a zone it is UTC already."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    try:
        moved = aware.astimezone(dt.UTC)
    except OverflowError as problem:
        raise ValueProblem(f"no such datetime: {value} ({problem})") from problem
    return moved.replace(microsecond=moved.microsecond // 1000 * 1000)


def epoch_days(value: dt.date) -> int:
    return (value - _EPOCH_DATE).days


def epoch_milliseconds(value: dt.datetime) -> int:
    return (value - _EPOCH) // dt.timedelta(milliseconds=1)


def format_datetime(value: dt.datetime) -> str:
    """Wire form: UTC with exactly three decimals and `Z`."""
    text = value.astimezone(dt.UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def canonical_text(value: ScalarValue) -> str:
    """The one text of a key value: what ids, uniqueness and edge endpoints compare.

    >>> [canonical_text(v) for v in ("a", 7, True, -0.0, 2.50, dt.date(1970, 1, 3))]
    ['a', '7', 'true', '0', '2.5', '2']

    Raises:
        ValueProblem: NaN or infinity, which equal nothing.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueProblem(f"{value} cannot be a key")
        return repr(value).removesuffix(".0") if value else "0"
    if isinstance(value, dt.datetime):
        return str(epoch_milliseconds(value))
    if isinstance(value, dt.date):
        return str(epoch_days(value))
    return str(value)


def from_json(value: object, type: PropType) -> Value:
    """A JSON value read by a declared type. Strict: nothing is guessed, truncated or nulled.

    Integers also come as decimal text, because JSON readers in browsers lose digits.

    Raises:
        ValueProblem: what was expected and what was found.
    """
    if value is None:
        if type.is_nullable:
            return None
        raise ValueProblem(f"expected {type}, found null")
    if type.is_list:
        return _members(_expect_array(value, type), type)
    if type.is_vector:
        members = _expect_array(value, type)
        if len(members) != type.dimension:
            raise ValueProblem(f"expected {type.dimension} numbers, found {len(members)}")
        return _members(members, type)
    return _scalar_from_json(value, type)


def _expect_array(value: object, type: PropType) -> list[object] | tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise ValueProblem(f"expected {type} as an array, found {_found(value)}")
    return value


def _members(members: list[object] | tuple[object, ...], type: PropType) -> tuple[ScalarValue, ...]:
    if _are_plain(members, type):
        return tuple(members)  # type: ignore[arg-type]
    element = type.element
    read = _READERS[type.scalar]
    return tuple(_member(read, item, index, element) for index, item in enumerate(members))


def _are_plain(members: list[object] | tuple[object, ...], type: PropType) -> bool:
    """Whether all members are floats or texts that need no second look; asks them all at once."""
    kinds = set(map(builtins.type, members))
    if kinds == {str}:
        return type.scalar is Scalar.STRING and type.enum_values is None and _is_utf8(members)
    if kinds != {float} or _READERS[type.scalar] is not _float_from_json:
        return False
    numbers = cast("Sequence[float]", members)
    # Nothing that is not finite can be part of a finite sum.
    most = math.inf if type.scalar is Scalar.F64 else F32_OVERFLOW
    return math.isfinite(sum(numbers)) and max(numbers) < most and min(numbers) > -most


def _is_utf8(members: Iterable[object]) -> bool:
    try:
        "".join(cast("Iterable[str]", members)).encode()
    except UnicodeEncodeError:
        return False
    return True


def _member(
    read: Callable[[object, PropType], ScalarValue], item: object, index: int, element: PropType
) -> ScalarValue:
    try:
        return read(item, element)
    except ValueProblem as problem:
        raise ValueProblem(f"element {index}: {problem}") from problem


def _scalar_from_json(value: object, type: PropType) -> ScalarValue:
    return _READERS[type.scalar](value, type)


def _string_from_json(value: object, type: PropType) -> str:
    if not isinstance(value, str):
        raise ValueProblem(f"expected {type.scalar}, found {_found(value)}")
    try:
        value.encode()  # whatever cannot be written as UTF-8 cannot be stored
    except UnicodeEncodeError as problem:
        raise ValueProblem("text with half of a surrogate pair") from problem
    if type.enum_values is not None and value not in type.enum_values:
        raise ValueProblem(f"invalid enum value {value!r}, expected {' | '.join(type.enum_values)}")
    return value


def _bool_from_json(value: object, type: PropType) -> bool:
    if not isinstance(value, bool):
        raise ValueProblem(f"expected {type.scalar}, found {_found(value)}")
    return value


def _integer_from_json(value: object, type: PropType) -> int:
    number: int
    if isinstance(value, str) and _INTEGER_TEXT.fullmatch(value):
        number = int(value) if len(value) <= 20 else 2**65  # longer text cannot be in range
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        raise ValueProblem(f"expected {type.scalar}, found {_found(value)}")
    low, high = INTEGER_RANGES[type.scalar]
    if not low <= number <= high:
        raise ValueProblem(f"{_shown(value)} is out of range for {type.scalar} ({low}..{high})")
    return number


def _float_from_json(value: object, type: PropType) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueProblem(f"expected a number, found {_found(value)}")
    try:
        number = float(value)
    except OverflowError as problem:
        raise ValueProblem(f"{_shown(value)} is out of range for {type.scalar}") from problem
    if not math.isfinite(number):
        raise ValueProblem(f"expected a finite number, found {value}")
    if type.scalar is not Scalar.F64 and abs(number) >= F32_OVERFLOW:
        raise ValueProblem(f"{_shown(value)} is out of range for {type.scalar}")
    return number


def _date_from_json(value: object, type: PropType) -> dt.date:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value  # as Python gives it
    if not isinstance(value, str):
        raise ValueProblem(f"expected {type.scalar} text, found {_found(value)}")
    return parse_date(value)


def _datetime_from_json(value: object, type: PropType) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return _in_utc(value)  # as Python gives it
    if not isinstance(value, str):
        raise ValueProblem(f"expected {type.scalar} text, found {_found(value)}")
    return parse_datetime(value)


_READERS: Final[dict[Scalar, Callable[[object, PropType], ScalarValue]]] = {
    Scalar.STRING: _string_from_json,
    Scalar.BLOB: _string_from_json,
    Scalar.BOOL: _bool_from_json,
    Scalar.I32: _integer_from_json,
    Scalar.I64: _integer_from_json,
    Scalar.U32: _integer_from_json,
    Scalar.U64: _integer_from_json,
    Scalar.F32: _float_from_json,
    Scalar.F64: _float_from_json,
    Scalar.DATE: _date_from_json,
    Scalar.DATETIME: _datetime_from_json,
    Scalar.VECTOR: _float_from_json,
}


def _shown(value: object) -> str:
    """A number as messages have it: Python refuses to write out one of thousands of digits."""
    if isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS:
        return f"a number of more than {_MOST_DIGITS} digits"
    return f"{value}"


def _found(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"boolean {str(value).lower()}"
    if isinstance(value, str):
        return f"text {value!r}"
    if isinstance(value, int | float):
        return f"number {_shown(value)}"
    if isinstance(value, dict):
        return "an object"
    return "an array" if isinstance(value, list | tuple) else f"{value!r}"


def to_json(value: Value, *, is_js_safe: bool = False) -> object:
    """A value in its wire form; in JS-safe mode integers beyond 2^53-1 become text.

    >>> to_json(float("nan")), to_json(2**60, is_js_safe=True)
    ('NaN', '1152921504606846976')
    """
    if isinstance(value, tuple):
        return [to_json(item, is_js_safe=is_js_safe) for item in value]
    if isinstance(value, dt.datetime):
        return format_datetime(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if is_js_safe and type(value) is int and abs(value) > JS_SAFE_INTEGER:
        return str(value)
    return value
