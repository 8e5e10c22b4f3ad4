"""Reads `@default(…)`: an annotation argument and a declared type in, a value of that type out.

Nothing is converted by guesswork: text is quoted, numbers fit, dates are ISO text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.schema.ast import Argument, ArgumentKind
from omnigraph_core.types import PropType, Scalar
from omnigraph_core.values import ValueProblem, from_json

if TYPE_CHECKING:
    from omnigraph_core.schema import ast
    from omnigraph_core.values import Value

_QUOTED: Final = frozenset({ArgumentKind.STRING})
_WHOLE: Final = frozenset({ArgumentKind.INT})
_NUMBERS: Final = frozenset({ArgumentKind.INT, ArgumentKind.FLOAT})
_ENUM_VALUES: Final = frozenset(ArgumentKind) - {ArgumentKind.LIST, ArgumentKind.FLOAT}
_ACCEPTED: Final = {
    Scalar.STRING: (_QUOTED, "a quoted text"),
    Scalar.BOOL: (frozenset({ArgumentKind.BOOL}), "true or false"),
    Scalar.I32: (_WHOLE, "a whole number"),
    Scalar.I64: (_WHOLE, "a whole number"),
    Scalar.U32: (_WHOLE, "a whole number"),
    Scalar.U64: (_WHOLE, "a whole number"),
    Scalar.F32: (_NUMBERS, "a number"),
    Scalar.F64: (_NUMBERS, "a number"),
    Scalar.DATE: (_QUOTED, 'a quoted date like "2026-01-31"'),
    Scalar.DATETIME: (_QUOTED, 'a quoted datetime like "2026-01-31T10:00:00Z"'),
}


def default_value(property: ast.Property) -> Value:
    """The value of the property's `@default`, or None without one.

    Raises:
        ValueProblem: the value does not fit the type.
    """
    for annotation in property.annotations:
        if annotation.name == "default" and annotation.value is not None:
            return read_default(annotation.value, property.type)
    return None


def read_default(argument: Argument, type: PropType) -> Value:
    """A written default as a value of the type.

    >>> read_default(Argument(ArgumentKind.INT, "3"), PropType(Scalar.F64))
    3.0

    Raises:
        ValueProblem: the value does not fit the type.
    """
    if type.is_vector or type.is_blob:
        raise ValueProblem(f"a {type.scalar} cannot have a default")
    if not type.is_list:
        return _read_scalar(argument, type.element)
    if argument.kind is not ArgumentKind.LIST:
        raise ValueProblem("expected a list like [] or [1, 2]")
    return tuple(_read_scalar(item, type.element) for item in argument.items)


def _read_scalar(argument: Argument, type: PropType) -> Value:
    if type.is_enum:
        if argument.kind not in _ENUM_VALUES:
            raise ValueProblem("expected one of the enum values")
        return from_json(argument.text, type)
    kinds, wanted = _ACCEPTED[type.scalar]
    if argument.kind not in kinds:
        raise ValueProblem(f"expected {wanted}, found {_found(argument)}")
    if type.scalar.is_float:
        return from_json(float(argument.text), type)
    return from_json(_json_form(argument), type)


def _json_form(argument: Argument) -> str | bool:
    """Integer text goes on as text, whatever its length; leading zeros would count as digits."""
    if argument.kind is ArgumentKind.BOOL:
        return argument.text == "true"
    if argument.kind is not ArgumentKind.INT:
        return argument.text
    sign = "-" if argument.text.startswith("-") else ""
    return sign + (argument.text.lstrip("-").lstrip("0") or "0")


def _found(argument: Argument) -> str:
    if argument.kind is ArgumentKind.LIST:
        return "a list"
    return f'"{argument.text}"' if argument.kind is ArgumentKind.STRING else f"`{argument.text}`"
