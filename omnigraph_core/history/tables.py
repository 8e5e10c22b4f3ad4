"""The handles of tables that an open graph keeps: a location and a version come in, a handle out.

A handle knows every fragment of its version, and each commit makes another version: old ones are
let go as soon as all together take too much memory.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from omnigraph_core.storage.dataset import open_table

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store

MOST_TABLE_BYTES: Final = 16 * 2**20
"""That handles of one graph may take; the last one used is kept, however large it is."""
_MOST_TABLES: Final = 512


class OpenTables:
    """The handles used last, by their bytes. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int], Table] = {}
        """The one not used longest first."""

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def nbytes(self) -> int:
        """What is kept takes, about, with the rows that handles keep."""
        with self._lock:
            return sum(table.nbytes for table in self._kept.values())

    def get(self, location: str, physical_version: int) -> Table:
        """A table at a version; the same handle for the same version while it is kept.

        Raises:
            ObjectNotFound: the version, or the table, is not in the store.
        """
        key = (location, physical_version)
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                self._kept[key] = found
                return found
        opened = open_table(self._store, location, physical_version)
        with self._lock:
            self._kept[key] = opened
            self._let_go()
        return opened

    def _let_go(self) -> None:
        # Measured anew: handles take more while they are used.
        sizes = {key: table.nbytes for key, table in self._kept.items()}
        held = sum(sizes.values())
        for key, size in list(sizes.items())[:-1]:
            if held <= MOST_TABLE_BYTES and len(self._kept) <= _MOST_TABLES:
                return
            del self._kept[key]
            held -= size
