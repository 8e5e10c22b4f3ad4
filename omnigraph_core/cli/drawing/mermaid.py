"""A schema as a Mermaid entity diagram: boxes and arrows come in, text goes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.cli.drawing.schema_model import Arrow, Box, Drawing, Line
    from omnigraph_core.schema.ast import Cardinality

_ANY: Final = "}o"
"""How many sources a target has: schemas do not bound it."""


def mermaid(drawing: Drawing) -> str:
    return "\n".join(["erDiagram", *_lines(drawing)]) + "\n"


def _lines(drawing: Drawing) -> Iterator[str]:
    for box in drawing.boxes:
        yield from _box(box)
    for arrow in drawing.arrows:
        yield f"  {_arrow(arrow)}"


def _box(box: Box) -> Iterator[str]:
    # Mermaid has no interfaces here: the name in the box tells, the one in arrows stays as it is.
    name = f'{box.name}["«interface» {box.name}"]' if box.is_interface else box.name
    if not box.lines:
        yield f"  {name}"
        return
    yield f"  {name} {{"
    yield from (f"    {_property(line)}" for line in box.lines)
    yield "  }"


def _property(line: Line) -> str:
    """
    >>> from omnigraph_core.cli.drawing.schema_model import Line
    >>> from omnigraph_core.types import PropType, Scalar
    >>> _property(Line("sku", PropType(Scalar.STRING), is_key=True))
    'String sku PK'
    >>> _property(Line("tags", PropType(Scalar.STRING, is_list=True, is_nullable=True)))
    'String[] tags "optional"'
    """
    type = line.type
    if type.is_enum:
        shown = "enum"
    elif type.is_list:
        shown = f"{type.scalar}[]"
    else:
        shown = str(type.nullable(is_nullable=False))
    key = " PK" if line.is_key else " UK" if line.is_unique else ""
    notes = [_quotable(" | ".join(type.enum_values))] if type.enum_values else []
    if type.is_nullable:
        notes.append("optional")
    comment = f' "{", ".join(notes)}"' if notes else ""
    return f"{shown} {line.name}{key}{comment}"


def _arrow(arrow: Arrow) -> str:
    if arrow.cardinality is None:
        return f'{arrow.source} }}o..|| {arrow.target} : "implements"'
    names = ", ".join(line.name for line in arrow.lines)
    label = f"{arrow.name} ({names})" if names else arrow.name
    return f'{arrow.source} {_ANY}--{_bound(arrow.cardinality)} {arrow.target} : "{label}"'


def _bound(cardinality: Cardinality) -> str:
    """How many targets a source has, as Mermaid draws it: none or one or many of them."""
    is_needed = cardinality.minimum > 0
    if cardinality.maximum == 1:
        return "||" if is_needed else "o|"
    return "|{" if is_needed else "o{"


def _quotable(text: str) -> str:
    return text.replace('"', "'").replace("\n", " ")
