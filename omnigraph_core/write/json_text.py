"""Exact JSON: text in, values out, and nothing lost on the way.

Numbers keep every digit (`Decimal` unless they are written as integers), repeated members are
remembered, and what Python takes beyond the standard (NaN, lone surrogates) is refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_INTEGER_DIGITS: Final = 400
"""Longer ones fit no column; Python reads them in quadratic time, or not at all."""
_FARTHEST_EXPONENT: Final = 10**18 - 1
_ZERO: Final = re.compile(r"-?[0.]+[eE]")


class JsonProblem(ValueError):
    """Why a text is no JSON, and at which of its characters, if that is known."""

    def __init__(self, what: str, at: int | None = None) -> None:
        super().__init__(what)
        self.at = at


class Repeated(dict[str, object]):
    """An object some of whose members were given more than once; the last ones count."""

    names: tuple[str, ...] = ()


def parse_json(text: str) -> object:
    """The value of a text.

    >>> parse_json('{"a": 9007199254740993.0, "b": [1, null]}')
    {'a': Decimal('9007199254740993.0'), 'b': [1, None]}

    Raises:
        JsonProblem: it is no JSON, or holds more than one value.
    """
    try:
        value, end = parse_json_at(text, _skip_blanks(text, 0))
    except JsonProblem as problem:
        if problem.at is None:
            raise
        column = problem.at - text.rfind("\n", 0, problem.at)
        raise JsonProblem(f"{problem} at column {column}", problem.at) from problem
    end = _skip_blanks(text, end)
    if end != len(text):
        raise JsonProblem(f"unexpected text after the value, at column {end + 1}", end)
    return value


def parse_json_at(text: str, start: int) -> tuple[object, int]:
    """The value that begins at a position, and where it ends.

    A problem takes time by its distance from the start of the text, which the decoder goes back to.

    Raises:
        JsonProblem: no value begins there.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as problem:
        raise JsonProblem(problem.msg, problem.pos) from problem
    except RecursionError as problem:
        raise JsonProblem("nested too deeply") from problem


def _skip_blanks(text: str, start: int) -> int:
    while start < len(text) and text[start] in " \t\r\n":
        start += 1
    return start


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeated = Repeated(members)
    counts = Counter(name for name, _ in pairs)
    repeated.names = tuple(name for name in members if counts[name] > 1)
    return repeated


def _integer(text: str) -> int | Decimal:
    # A float keeps the sign of zero, an integer cannot.
    return Decimal(text) if text == "-0" or len(text) > _MAX_INTEGER_DIGITS else int(text)


def _fraction(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return _far_number(text)


def _far_number(text: str) -> Decimal:
    """A number with an exponent of 19 digits or more: what comes nearest, but zero only for zero.

    >>> _far_number("-1e-99999999999999999999"), _far_number("0e99999999999999999999")
    (Decimal('-1E-999999999999999999'), Decimal('0'))
    """
    sign = "-" if text.startswith("-") else ""
    if _ZERO.match(text):
        return Decimal(f"{sign}0")
    is_small = "-" in text[1:]
    return Decimal(f"{sign}1e{'-' if is_small else ''}{_FARTHEST_EXPONENT}")


def _refuse_constant(text: str) -> NoReturn:
    raise JsonProblem(f"{text} is no JSON number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_float=_fraction,
    parse_int=_integer,
    parse_constant=_refuse_constant,
)
