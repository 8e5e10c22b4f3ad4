"""What the text of an environment variable means: a text comes in, a value goes out, or ValueError
with what was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_UNITS: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def pairs(text: str) -> dict[str, str]:
    """`name=value; other=value` as a mapping."""
    pairs = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise ValueError(f"expected name=value, found {part!r}")
        pairs[name] = value
    return pairs


def flag(text: str) -> bool:
    if text.lower() in ("true", "1", "yes"):
        return True
    if text.lower() in ("false", "0", "no"):
        return False
    raise ValueError("expected true or false")


def positive_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError("expected a number of seconds above zero")
    return seconds


def choice(*names: str) -> Callable[[str], str | None]:
    def parse(text: str) -> str | None:
        if text.lower() not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return text.lower()

    return parse


def count_or(default: int) -> Callable[[str], int]:
    """A number above zero; anything else means the default."""
    return lambda text: (int(text) if text.isascii() and text.isdigit() else 0) or default


def above_zero(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError("expected a number above zero")
    return int(text)


def milliseconds(text: str) -> int | None:
    return int(text) or None if text.isascii() and text.isdigit() else None


def switch(text: str) -> bool:
    return text.lower() in ("1", "true", "yes", "on")


def byte_count(text: str) -> int:
    number = text.upper().removesuffix("B").removesuffix("I")
    unit = number[-1:] if number[-1:] in ("K", "M", "G") else ""
    digits = number.removesuffix(unit).strip()
    if not (digits.isascii() and digits.isdigit() and int(digits)):
        raise ValueError("expected a number of bytes above zero, as 500000000, 512M or 4G")
    return int(digits) * _UNITS[unit]


def seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError("expected a number of seconds, zero or more")
    return seconds


def row_count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError("expected a number of rows above zero")
    return count
