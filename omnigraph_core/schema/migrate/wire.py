"""The fields of migration steps on the wire and on a terminal.

Property types and constraints have the spelling clients match on; it is added to, never changed.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import Name
from omnigraph_core.schema.ast import Annotation, Cardinality, Check, Index, Key, Range, Unique
from omnigraph_core.schema.document.parts import bound_to_json, type_to_json
from omnigraph_core.schema.document.shape import annotation_shape
from omnigraph_core.types import PropType
from omnigraph_core.values import to_json

if TYPE_CHECKING:
    from omnigraph_core.schema.ast import Constraint

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def constraint_to_json(constraint: Constraint) -> dict[str, object]:
    """A constraint on the wire, externally tagged.

    >>> constraint_to_json(Unique(("src", "dst")))
    {'Unique': ['src', 'dst']}
    """
    match constraint:
        case Key(columns) | Unique(columns) | Index(columns):
            body: object = [str(column) for column in columns]
        case Range(name, minimum, maximum):
            bounds = {"min": bound_to_json(minimum), "max": bound_to_json(maximum)}
            body = {"property": str(name), **bounds}
        case Check(name, pattern):
            body = {"property": str(name), "pattern": pattern}
    return {type(constraint).__name__: body}


def to_wire(value: object) -> object:
    """A field of a step in its wire form."""
    match value:
        case PropType():
            return type_to_json(value)
        case Annotation():
            return annotation_shape(value)
        case Key() | Unique() | Index() | Range() | Check():
            return constraint_to_json(value)
        case Cardinality(minimum, maximum):
            return {"min": minimum, "max": maximum}
        case tuple():
            return [to_wire(item) for item in value]
        case StrEnum() | Name():
            return str(value)
        case dt.date():
            return to_json(value)
    return value


def shown(value: object) -> str:
    """A field of a step as people read it."""
    match value:
        case PropType():
            return str(value)
        case Cardinality(minimum, maximum):
            return f"{minimum}..{'' if maximum is None else maximum}"
        case str() if _PLAIN.fullmatch(value):
            return str(value)
    return json.dumps(to_wire(value), ensure_ascii=False, separators=(",", ":"))
