"""A type before and after, with its properties matched: what the passes of one type work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from omnigraph_core.schema.catalog import EdgeType, InterfaceType, NodeType
from omnigraph_core.schema.document.match import match_properties

if TYPE_CHECKING:
    from omnigraph_core.schema.document.match import Match
    from omnigraph_core.schema.migrate.steps import TypeKind

T = TypeVar("T", InterfaceType, NodeType, EdgeType)


@dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    kind: TypeKind
    before: T
    after: T
    properties: Match

    @property
    def name(self) -> str:
        """What the type is called once its own rename is done."""
        return str(self.after.name)

    def renamed(self, column: str) -> str:
        """What an accepted column is called now; one that is dropped keeps its name."""
        return self.properties.renamed.get(column, column)

    def entity(self, property_name: str | None = None) -> str:
        """The thing as messages name it: `node:Person` or `node:Person.age`."""
        tail = "" if property_name is None else f".{property_name}"
        return f"{self.kind}:{self.name}{tail}"


def pair_types(kind: TypeKind, before: T, after: T) -> Pair[T]:
    """Put a type beside the one that continues it."""
    return Pair(kind, before, after, match_properties(before.properties, after.properties))
