"""Checks properties where they are written: their names, and the annotations they carry.

A declaration's properties come in; problems go out. What depends on the other properties of the
finished type (embedding sources, keys with defaults) is checked in `check_types`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.schema.catalog import EDGE_ENDS, EDGE_IMPLICIT, NODE_IMPLICIT
from omnigraph_core.schema.check_annotations import (
    check_former_name,
    check_texts,
    find_annotation,
)
from omnigraph_core.schema.defaults import read_default
from omnigraph_core.schema.type_names import is_unknown
from omnigraph_core.values import ValueProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.diagnostics import Diagnostics, Span
    from omnigraph_core.schema import ast
    from omnigraph_core.types import PropType

_STORAGE_COLUMNS: Final = frozenset(
    {
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    }
)
_IMPLICIT: Final = {
    "interface": NODE_IMPLICIT,
    "node": NODE_IMPLICIT,
    "edge": (*EDGE_IMPLICIT, *EDGE_ENDS),
}
_ONCE: Final = ("key", "unique", "index", "embed")


def check_properties(
    kind: str, owner: str, properties: Sequence[ast.Property], problems: Diagnostics
) -> None:
    """Report what is wrong with the properties of one declaration."""
    seen: set[str] = set()
    for item in properties:
        if item.name in seen:
            message = f"`{owner}` declares `{item.name}` twice"
            problems.add("C4", message, item.name.span)
        seen.add(item.name)
        _check_name(kind, item, problems)
        check_texts(item.annotations, problems, is_property=True)
        check_former_name(item.annotations, problems)
        _check_index_annotations(kind, item, problems)
        if embed := find_annotation(item, "embed"):
            _check_embed(item, embed, problems)
        _check_default(item, problems)


def _check_name(kind: str, item: ast.Property, problems: Diagnostics) -> None:
    if item.name in _STORAGE_COLUMNS:
        problems.add("P3", f"`{item.name}` is a column of the storage", item.name.span)
    elif item.name in _IMPLICIT[kind]:
        message = f"a property of {_article(kind)} cannot be called `{item.name}`"
        hint = (
            "every node has an `id`: for a natural key, name the property after what it holds"
            if kind != "edge"
            else "every edge has its id and its end points already"
        )
        problems.add("P19", message, item.name.span, hint=hint)


def _article(kind: str) -> str:
    return f"a {kind}" if kind == "node" else f"an {kind}"


def _check_index_annotations(kind: str, item: ast.Property, problems: Diagnostics) -> None:
    seen: set[str] = set()
    for annotation in item.annotations:
        name = str(annotation.name)
        if name not in _ONCE:
            continue
        if name in seen:
            problems.add("P11", f"`@{name}` is repeated on `{item.name}`", annotation.span)
            continue
        seen.add(name)
        if name != "embed" and (annotation.value or annotation.keywords):
            problems.add("P11", f"`@{name}` takes no value", annotation.span)
        if kind == "edge" and name in ("key", "embed"):
            message = f"an edge property cannot carry `@{name}`"
            hint = "use `@unique(src, dst)` in the body" if name == "key" else None
            problems.add("P11", message, annotation.span, hint=hint)
        elif not is_unknown(item.type):
            _check_carrier(item, name, annotation.span, problems)


def _check_carrier(item: ast.Property, name: str, span: Span, problems: Diagnostics) -> None:
    type = item.type
    if type.is_list or type.is_blob:
        kind = "list" if type.is_list else "Blob"
        problems.add("P10", f"`@{name}` cannot stand on a {kind} property", span)
    elif type.is_vector and name in ("key", "unique"):
        problems.add("P10", f"`@{name}` cannot stand on a Vector property", span)
    elif name == "key" and type.is_nullable:
        message = f"key property `{item.name}` cannot be nullable"
        problems.add(
            "P16", message, item.type_span, hint=f"write {type.nullable(is_nullable=False)}"
        )


def _check_embed(item: ast.Property, embed: ast.Annotation, problems: Diagnostics) -> None:
    type = item.type
    if not (type.is_vector or type.is_list or type.is_blob or is_unknown(type)):
        message = f"`@embed` stands on a Vector property, not on {type}"
        problems.add("P12", message, embed.span, hint=f"write `{item.name}: Vector(768)`")
    if embed.value is None or not embed.value.text.strip():
        message = "`@embed` needs the property to embed"
        problems.add("P12", message, embed.span, hint='write `@embed("text")`')
    for key, value in embed.keywords:
        if key != "model":
            message = f"`@embed` takes no keyword `{key}`"
            problems.add("P12", message, key.span, hint="the only keyword is `model`")
        elif not value.text.strip():
            problems.add("P12", "`model` is blank", value.span)


def _check_default(item: ast.Property, problems: Diagnostics) -> None:
    found = [annotation for annotation in item.annotations if annotation.name == "default"]
    for again in found[1:]:
        problems.add("P24", f"`{item.name}` has two defaults", again.span)
    for annotation in found[:1]:
        for key, _ in annotation.keywords:
            problems.add("P24", "`@default` takes one value and no keywords", key.span)
        if find_annotation(item, "embed"):
            message = f"`{item.name}` is filled by `@embed` and cannot have a default"
            problems.add("P24", message, annotation.span)
        elif annotation.value is None and not annotation.keywords:
            hint = "write `@default(0)` or `@default([])`"
            problems.add("P24", "`@default` needs a value", annotation.span, hint=hint)
        elif annotation.value is not None and not is_unknown(item.type):
            _check_default_value(item, annotation.value, problems)


def _check_default_value(item: ast.Property, value: ast.Argument, problems: Diagnostics) -> None:
    if item.type.is_list and value.items:
        for member in value.items:
            _check_fit(item, member, item.type.element, problems)
    else:
        _check_fit(item, value, item.type, problems)


def _check_fit(
    item: ast.Property, value: ast.Argument, type: PropType, problems: Diagnostics
) -> None:
    try:
        read_default(value, type)
    except ValueProblem as problem:
        message = f"default of `{item.name}: {item.type}` does not fit: {problem}"
        hint = "a nullable property without a default is null" if value.text == "null" else None
        problems.add("P24", message, value.span, hint=hint)
