"""What parts of a schema mean, whichever way they were written.

Hashing and migration planning both compare through these forms, so a difference that one of them
sees the other sees too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.schema.ast import ArgumentKind
from omnigraph_core.schema.catalog import Embedding, InterfaceType, NodeType
from omnigraph_core.schema.document.match import RENAME_FROM
from omnigraph_core.values import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.schema.ast import Annotation, Argument
    from omnigraph_core.schema.catalog import EdgeType, PropertyDef
    from omnigraph_core.values import Value

_EMBED: Final = "embed"
_NOT_METADATA: Final = frozenset({RENAME_FROM, _EMBED, "default"})


def stored_default(item: PropertyDef) -> Value:
    """A property's default as its type reads it: 1 and 1.0 are one default of a float."""
    return None if item.default is None else from_json(to_json(item.default), item.type)


def metadata(annotations: Iterable[Annotation]) -> tuple[Annotation, ...]:
    """The annotations that only describe, in a fixed order.

    `@rename_from` is a hint for one migration; `@embed` and `@default` have steps of their own.
    """
    found = [item for item in annotations if item.name not in _NOT_METADATA]
    return tuple(sorted(found, key=lambda item: str(annotation_shape(item))))


def annotation_shape(annotation: Annotation) -> dict[str, object]:
    """An annotation as `{name, value}`; quoted or bare, a value is its text."""
    shape: dict[str, object] = {
        "name": str(annotation.name),
        "value": None if annotation.value is None else _text(annotation.value),
    }
    if annotation.keywords:
        keywords = sorted((str(name), _text(value)) for name, value in annotation.keywords)
        shape["keywords"] = dict(keywords)
    return shape


def _text(argument: Argument) -> str:
    if argument.kind is ArgumentKind.LIST:
        return f"[{', '.join(_text(item) for item in argument.items)}]"
    return argument.text


def embeddings_of(item: InterfaceType | NodeType | EdgeType) -> Mapping[str, Embedding]:
    """Vector property → what fills it. An interface only says so; a node has it resolved."""
    if isinstance(item, NodeType):
        return item.embeddings
    return {
        name: found
        for name, prop in item.properties.items()
        if (found := _declared_embedding(prop.annotations))
    }


def _declared_embedding(annotations: Iterable[Annotation]) -> Embedding | None:
    for annotation in annotations:
        if annotation.name == _EMBED and annotation.value is not None:
            models = [value.text for name, value in annotation.keywords if name == "model"]
            return Embedding(annotation.value.text, models[0] if models else None)
    return None


def unordered_groups(groups: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Column groups whose order says nothing: uniqueness and indexes."""
    return {tuple(sorted(group)) for group in groups}
