"""Where a table is: small values that another process opens the same version by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.session import open_store

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store


@dataclass(frozen=True, slots=True)
class TablePlace:
    """One table at one physical version, below the address of its store."""

    root: str
    location: str
    physical_version: int

    @classmethod
    def of(cls, table: Table) -> TablePlace:
        return cls(table.store.root.text, table.location, table.physical_version)

    def open(self) -> Table:
        """The table, with the caches that all tables of the store share in this process.

        Raises:
            ObjectNotFound: the version, or the table, is not in the store.
        """
        return open_table(shared_store(self.root), self.location, self.physical_version)


@lru_cache(maxsize=4)
def shared_store(root: str) -> Store:
    """The store at an address; the same one for all callers of this process."""
    return open_store(root)
