"""Types by the names that callers use: `Person`, `node:Person` or `edge:Knows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.write.batches import GraphType


def find_type(catalog: Catalog, name: str) -> GraphType:
    """The type that `Person`, `node:Person` or `edge:Knows` names.

    Raises:
        ConfigError: there is none, or there are two.
    """
    kind, _, bare = name.rpartition(":")
    node = catalog.nodes.get(bare) if kind in ("", "node") else None
    edge = catalog.try_edge(bare) if kind in ("", "edge") else None
    if node is not None and edge is not None:
        raise ConfigError(
            f"`{bare}` is a node type and an edge type", hint=f"say node:{bare} or edge:{bare}"
        )
    found = node or edge
    if found is None:
        known = [*catalog.nodes, *catalog.edges]
        hint = did_you_mean(bare, known) or f"types there: {', '.join(known) or 'none'}"
        raise ConfigError(f"unknown type `{name}`", hint=hint)
    return found
