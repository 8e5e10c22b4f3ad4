"""Blobs read back: a type, an id and a property come in, the bytes or their address go out.

What is kept elsewhere is never fetched from here: a graph must not make its server open addresses
that somebody wrote into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.errors import ConfigError, NotFoundError
from omnigraph_core.schema.arrow import uri_column
from omnigraph_core.storage.blobs import open_blob, whole
from omnigraph_core.storage.lookup import find_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.storage.blobs import BlobReader
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob: `reader` over its bytes, or the `uri` it is kept at. Both None: it is null."""

    reader: BlobReader | None = None
    uri: str | None = None

    def read(self, offset: int = 0, length: int | None = None) -> bytes | None:
        """The bytes, or some of them; None for a null.

        Raises:
            ConfigError: they are kept elsewhere, or the range is negative or not of whole numbers.
        """
        if self.uri is not None:
            raise ConfigError(
                f"the blob is kept at {self.uri}", hint="fetch it from there; it is not stored here"
            )
        offset = whole(offset, "offset")
        length = None if length is None else whole(length, "length")
        if offset < 0 or (length is not None and length < 0):
            raise ConfigError(f"no range begins at {offset} and has length {length}")
        if self.reader is None:
            return None
        if length is None:
            length = max(0, self.reader.size - offset)
        return self.reader.read_range(offset, length)


def find_blob(
    catalog: Catalog,
    open_table: Callable[[str], Table],
    type_name: str,
    id: str,
    property: str,
) -> Blob:
    """The blob of one row.

    Raises:
        ConfigError: no such type, or no such Blob property.
        NotFoundError: no row of that id.
    """
    type = _find_type(catalog, type_name)
    if property not in type.blob_properties:
        known = sorted(type.blob_properties)
        hint = did_you_mean(property, known) or f"it has {', '.join(known) or 'none'}"
        raise ConfigError(f"`{type.name}` has no Blob property `{property}`", hint=hint)
    table = open_table(type.table_key)
    address = uri_column(property)
    rows = find_rows(table, "id", pa.array([id], pa.utf8()), [address])
    if not rows.num_rows:
        raise NotFoundError(f"no {type.name} has the id {id!r}")
    uri = rows.column(address)[0].as_py()
    if uri is not None:
        return Blob(uri=uri)
    return Blob(reader=open_blob(table, id, property))


def _find_type(catalog: Catalog, name: str) -> GraphType:
    """A node or edge type by name or table key; a node comes before an edge of the same name."""
    kind, _, bare = name.rpartition(":")
    if kind in ("", "node") and bare in catalog.nodes:
        return catalog.nodes[bare]
    edge = catalog.try_edge(bare) if kind in ("", "edge") else None
    if edge is not None:
        return edge
    known = (*catalog.nodes, *catalog.edges)
    hint = did_you_mean(bare, known) or f"types are {', '.join(known)}"
    raise ConfigError(f"unknown type `{name}`", hint=hint)
