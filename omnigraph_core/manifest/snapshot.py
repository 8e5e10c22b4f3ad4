"""What a reader holds: one branch at one catalog version. Immutable, cheap, cacheable."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph_core.errors import TableNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.manifest.image import AcceptedSchema, GraphCommit, Image, TableEntry


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A branch at a manifest version; `incarnation` tells it from a later branch of that name.

    `read_at`, in seconds since the epoch, is when this was known to be there: whatever is staged on
    the snapshot is younger.
    """

    branch: str
    incarnation: str
    manifest_version: int
    image: Image
    read_at: float = field(default_factory=time.time, compare=False)

    def __hash__(self) -> int:
        return hash((self.incarnation, self.manifest_version, self.commit.graph_commit_id))

    @property
    def commit(self) -> GraphCommit:
        """The newest commit this snapshot contains; its id is the snapshot's id."""
        return self.image.head

    @property
    def schema(self) -> AcceptedSchema:
        return self.image.schema

    @property
    def tables(self) -> Mapping[str, TableEntry]:
        """By table key, sorted."""
        return self.image.tables

    @property
    def table_keys(self) -> dict[str, str]:
        """Table keys by location."""
        return {entry.location: table_key for table_key, entry in self.tables.items()}

    def table(self, table_key: str) -> TableEntry:
        """
        Raises:
            TableNotFound: this snapshot has no such table.
        """
        entry = self.image.tables.get(table_key)
        if entry is None:
            known = ", ".join(self.image.tables) or "none"
            raise TableNotFound(
                f"no table `{table_key}` on {self.branch} at version {self.manifest_version}",
                hint=f"tables there: {known}",
            )
        return entry
