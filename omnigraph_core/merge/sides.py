"""The three snapshots of a merge, each seen as rows of the merged schema.

Types and properties that were renamed, added, dropped or widened on the way are matched once, here;
whoever compares rows sees the same columns on every side.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.compare.view import RowView
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.schema.continuity import continuity
from omnigraph_core.schema.document import document_from_json
from omnigraph_core.schema.reshape import is_same_shape, reshape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.image import AcceptedSchema, TableEntry
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.schema.document import SchemaDocument
    from omnigraph_core.schema.reshape import ColumnSource
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType


@dataclass(frozen=True, slots=True)
class Side:
    """A snapshot and what the merged schema calls its types and properties."""

    context: GraphContext
    snapshot: Snapshot
    catalog: Catalog
    """Its own."""
    merged: Mapping[str, GraphType]
    names: Mapping[str, str]
    """Its table keys → those of the merged schema, for every type that continues."""
    properties: Mapping[str, Mapping[str, str]]
    """By its table key: its properties → those of the merged type."""

    def type_of(self, entry: TableEntry) -> GraphType:
        """The type of a table as this side has it."""
        return types_by_key(self.catalog)[entry.table_key]

    def merged_type(self, entry: TableEntry) -> GraphType | None:
        key = self.names.get(entry.table_key)
        return None if key is None else self.merged.get(key)

    def is_in_shape(self, entry: TableEntry) -> bool:
        """Whether the table is stored in the columns of its merged type."""
        after = self.merged_type(entry)
        if after is None:
            return False
        return is_same_shape(self.type_of(entry), after, self._renamed(entry))

    def has_other_rules(self, entry: TableEntry) -> bool:
        """Whether the merged type differs in anything from the one this side kept its rows to."""
        return self.merged_type(entry) != self.type_of(entry)

    def sources(self, entry: TableEntry, after: GraphType) -> Mapping[str, ColumnSource]:
        return reshape(self.type_of(entry), after, self._renamed(entry))

    def view(self, entry: TableEntry) -> RowView:
        """The rows of a table as those of its merged type; of its own if there is none."""
        table, after = self.open(entry), self.merged_type(entry)
        if after is None:
            return RowView.of(table, self.type_of(entry))
        is_plain = self.is_in_shape(entry)
        return RowView.of(table, after, None if is_plain else self.sources(entry, after))

    def open(self, entry: TableEntry) -> Table:
        return self.context.table(entry.location, entry.physical_version)

    def _renamed(self, entry: TableEntry) -> Mapping[str, str]:
        return self.properties[entry.table_key]


def side_of(
    context: GraphContext,
    snapshot: Snapshot,
    merged: AcceptedSchema,
    *,
    common: SchemaDocument | None,
) -> Side:
    """A snapshot as a side of a merge.

    Args:
        merged: the schema that its rows are seen in.
        common: the newest document that its schema and the merged one both descend from, unless
            its own is that.
    """
    catalog = accepted_catalog(snapshot.schema)
    later = types_by_key(accepted_catalog(merged))
    names: dict[str, str] = {}
    properties: dict[str, Mapping[str, str]] = {}
    if snapshot.schema.hash != merged.hash:
        names, properties = _continued(document_of(snapshot.schema), document_of(merged), common)
    taken = set(names.values())
    for key, type in types_by_key(catalog).items():
        # A type that was dropped and made anew is another one, with the same name all the same.
        if key not in names and key in later and key not in taken:
            names[key] = key
            properties[key] = {name: name for name in type.properties}
    return Side(context, snapshot, catalog, later, names, properties)


def document_of(schema: AcceptedSchema) -> SchemaDocument:
    return document_from_json(json.loads(schema.document))


def type_ids(document: SchemaDocument) -> dict[str, int]:
    """The ids of the types that have a table, by its key."""
    nodes = {node_table_key(item.name): item.type_id for item in document.nodes}
    return nodes | {edge_table_key(item.name): item.type_id for item in document.edges}


def continued_keys(
    before: SchemaDocument, after: SchemaDocument, common: SchemaDocument
) -> dict[str, str]:
    """Table keys of one document → those of another, for every type that continues."""
    return _continued(before, after, common)[0]


def types_by_key(catalog: Catalog) -> dict[str, GraphType]:
    """The types that have a table, by its key."""
    types: tuple[GraphType, ...] = (*catalog.nodes.values(), *catalog.edges.values())
    return {type.table_key: type for type in types}


def _continued(
    before: SchemaDocument, after: SchemaDocument, common: SchemaDocument | None
) -> tuple[dict[str, str], dict[str, Mapping[str, str]]]:
    found = continuity(before, after, common=common)
    names = {node_table_key(old): node_table_key(new) for old, new in found.nodes.items()}
    names |= {edge_table_key(old): edge_table_key(new) for old, new in found.edges.items()}
    keys = {"node": node_table_key, "edge": edge_table_key}
    properties = {
        keys[kind](name): renamed
        for (kind, name), renamed in found.properties.items()
        if kind in keys
    }
    return names, properties
