"""What the parts of a load say to each other: small values, for other processes to work by."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.spark.embed.leases import Share
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.storage.session import Store, open_store

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.embed import EmbedMode
    from omnigraph_core.write.load_model import LoadMode
    from omnigraph_core.write.sources import Source


@dataclass(frozen=True, slots=True)
class Job:
    """What every part of one load works by."""

    root: str
    """The address of the graph."""
    id: str
    schema: AcceptedSchema
    tables: dict[str, tuple[str, int]]
    """By table key the location and the physical version that the load began with."""
    mode: LoadMode
    embed: EmbedMode
    seed: int
    """Of the hashes of keys."""
    listed: int
    """Problems that a part spells out."""
    is_tolerant: bool = False
    is_dry_run: bool = False
    only: tuple[str, ...] | None = None
    share: Share = field(default_factory=Share)
    """What a part may ask of the provider of vectors."""

    @property
    def catalog(self) -> Catalog:
        return accepted_catalog(self.schema)

    @property
    def store(self) -> Store:
        return _store(self.root)

    @property
    def scratch(self) -> Scratch:
        return Scratch(self.store, self.id)

    def open(self, table_key: str) -> Table:
        return self.open_at(*self.tables[table_key])

    def open_at(self, location: str, physical_version: int) -> Table:
        return _table(self.root, location, physical_version).reopened()


@lru_cache(maxsize=4)
def _store(root: str) -> Store:
    return open_store(root)


@lru_cache(maxsize=256)
def _table(root: str, location: str, physical_version: int) -> Table:
    return open_table(_store(root), location, physical_version)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the input that one task reads; parts are in the order of the input."""

    number: int
    source_index: int
    source: Source
    name: str | None
    unit: str


@dataclass(frozen=True, slots=True)
class PartRead:
    """What became of a part: files that no version refers to, keys, and what is wrong with it."""

    number: int
    source_index: int
    line_count: int
    rows: dict[str, int]
    """By table key the rows that go on."""
    files: dict[str, str]
    """By table key the staged fragments, as JSON."""
    keys: str
    """The object that has the key columns of its rows."""
    problems: Violations
    known: dict[str, int]
    """By table key the rows whose id somebody may have."""
    types: tuple[str, ...]
    """The keys of all tables that the part has records for, good or bad."""
    embedded: int = 0
    pending: int = 0
    bytes_read: int = 0
