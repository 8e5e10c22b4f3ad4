"""Walking trees of dataclasses and tuples, as queries and their IR are."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, nothing for any other type."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def inside(part: object) -> Iterable[object]:
    """What a part is made of; nothing where it is a leaf."""
    if isinstance(part, tuple):
        return part
    return [getattr(part, name) for name in field_names(type(part))]
