"""Checks the annotations that mean something on types and properties alike.

Annotations come in; blank, repeated or misplaced ones are reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.schema.ast import ArgumentKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.diagnostics import Diagnostics
    from omnigraph_core.schema import ast

_PROPERTY_ONLY: Final = {
    "key": "P8",
    "unique": "P8",
    "index": "P8",
    "embed": "P8",
    "default": "P24",
}


def check_type_annotations(
    kind: str, annotations: Sequence[ast.Annotation], problems: Diagnostics
) -> None:
    """Report what is wrong with the annotations of a node or edge header."""
    for annotation in annotations:
        if code := _PROPERTY_ONLY.get(annotation.name):
            message = f"`@{annotation.name}` belongs to a property, not to the {kind}"
            hint = "put it after the type of its property"
            problems.add(code, message, annotation.span, hint=hint)
    check_texts(annotations, problems, is_property=False)
    check_former_name(annotations, problems)


def check_texts(
    annotations: Sequence[ast.Annotation], problems: Diagnostics, *, is_property: bool
) -> None:
    """Report blank, repeated or misplaced `@description` and `@instruction`."""
    seen: set[str] = set()
    for annotation in annotations:
        name = str(annotation.name)
        if name not in ("description", "instruction"):
            continue
        if name == "instruction" and is_property:
            hint = "use `@description`, or put it on the type"
            problems.add("P9", "a property takes no `@instruction`", annotation.span, hint=hint)
        elif name in seen:
            problems.add("P9", f"`@{name}` is repeated", annotation.span)
        elif not has_one_text(annotation):
            message = f"`@{name}` needs one text that is not blank"
            problems.add("P9", message, annotation.span, hint=f'write `@{name}("…")`')
        seen.add(name)


def check_former_name(annotations: Sequence[ast.Annotation], problems: Diagnostics) -> None:
    """Report `@rename_from` that does not give exactly one former name."""
    found = [annotation for annotation in annotations if annotation.name == "rename_from"]
    for again in found[1:]:
        problems.add("P25", "`@rename_from` is repeated", again.span)
    if found and not has_one_text(found[0]):
        message = "`@rename_from` takes one former name"
        problems.add("P25", message, found[0].span, hint='write `@rename_from("Old")`')


def has_one_text(annotation: ast.Annotation) -> bool:
    """Whether the annotation has one non-blank value, no list and no keywords."""
    value = annotation.value
    is_text = value is not None and value.kind is not ArgumentKind.LIST and value.text.strip()
    return bool(is_text) and not annotation.keywords


def find_annotation(property: ast.Property, name: str) -> ast.Annotation | None:
    """The first annotation of that name."""
    return next((item for item in property.annotations if item.name == name), None)
