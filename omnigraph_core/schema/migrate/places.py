"""Where the types and properties of a schema text are declared, by the names plan steps use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import NO_SPAN, Span
from omnigraph_core.schema import ast
from omnigraph_core.schema.parse import parse_schema

if TYPE_CHECKING:
    from omnigraph_core.diagnostics import Source


class Places:
    """Spans by entity: `node:Person` or `node:Person.age`."""

    def __init__(self, source: Source) -> None:
        self._spans: dict[str, Span] = {}
        for item in parse_schema(source.text, source.name).declarations:
            entity = f"{_KINDS[type(item)]}:{item.name}"
            self._spans.setdefault(entity, item.name.span)
            for prop in item.properties:
                self._spans.setdefault(f"{entity}.{prop.name}", prop.name.span)

    def find(self, entity: str) -> Span:
        """Where an entity is declared; an inherited property has the place of its type."""
        owner, _, _ = entity.partition(".")
        return self._spans.get(entity) or self._spans.get(owner, NO_SPAN)


_KINDS: dict[type, str] = {ast.Interface: "interface", ast.Node: "node", ast.Edge: "edge"}
