"""Tables at an exact version: a location and a physical version come in, a handle goes out.

A table's linear HEAD stays at the empty version 1; all content lives in detached versions, opened
by number without any listing. A handle never changes: every write returns another one. Columns of
bytes are plain large binaries to whoever uses a table, however Lance keeps them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import lance

from omnigraph_core.errors import AlreadyExists, ObjectNotFound
from omnigraph_core.storage.blob_columns import is_stored_blob, plain_rows, to_plain, to_stored
from omnigraph_core.storage.create import try_create
from omnigraph_core.storage.sparse import SparseRows
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from lance import LanceDataset
    from lance.dataset import LanceScanner

    from omnigraph_core.storage.session import Store

EMPTY_VERSION: Final = 1
"""The version every table is created at and its linear HEAD stays at: no rows."""

DATA_STORAGE_VERSION: Final = "2.2"

_HANDLE_BYTES: Final = 4_096
_FRAGMENT_BYTES: Final = 1_024
_FIELD_BYTES: Final = 8
"""What a handle takes, each fragment it knows of, and each column of each of them; measured."""


class Table:
    """One table at one physical version. Immutable and safe to share between threads.

    `base_version` is the version staging began on, this one if nothing is staged; `staged_since`,
    in seconds since the epoch, is a moment before anything staged was written. `schema` has the
    columns as they are given and read, `stored_schema` as Lance keeps them.
    """

    __slots__ = (
        "_blobs",
        "_handle_bytes",
        "_sparse",
        "base_version",
        "dataset",
        "location",
        "schema",
        "staged_since",
        "store",
        "stored_schema",
    )

    def __init__(
        self,
        store: Store,
        location: str,
        dataset: LanceDataset,
        *,
        base_version: int | None = None,
        staged_since: float | None = None,
        sparse: SparseRows | None = None,
    ) -> None:
        self.store = store
        self.location = location
        self.dataset = dataset
        self.base_version = int(dataset.version) if base_version is None else base_version
        self.staged_since = time.time() if staged_since is None else staged_since
        self.stored_schema: pa.Schema = dataset.schema
        self.schema = to_plain(self.stored_schema)
        self._blobs = tuple(field.name for field in self.stored_schema if is_stored_blob(field))
        self._sparse = sparse or SparseRows(store, self.uri, dataset)
        self._handle_bytes: int | None = None

    @property
    def uri(self) -> str:
        return self.store.uri(self.location)

    @property
    def physical_version(self) -> int:
        return int(self.dataset.version)

    @property
    def sparse(self) -> SparseRows:
        """The same version for reading rows that lie far apart, with no bytes between them."""
        return self._sparse

    @property
    def nbytes(self) -> int:
        """What the handle takes in memory, about, with what it has opened and read for itself."""
        if self._handle_bytes is None:
            of_fragment = _FRAGMENT_BYTES + _FIELD_BYTES * len(self.stored_schema)
            self._handle_bytes = _HANDLE_BYTES + of_fragment * self.count_fragments()
        return self._handle_bytes * (2 if self._sparse.is_open else 1) + self._sparse.nbytes

    def blobs_of(self, columns: Sequence[str] | None = None) -> tuple[str, ...]:
        """Which of these columns, or of all, Lance keeps as blobs."""
        return tuple(name for name in self._blobs if columns is None or name in columns)

    def count_rows(self) -> int:
        """From the version's metadata: reads no data."""
        with translated("counting rows", self.uri):
            return int(self.dataset.count_rows())

    def count_fragments(self) -> int:
        return len(self.dataset.fragment_ids())

    def read(
        self, columns: Sequence[str] | None = None, *, where: str | pa.Expression | None = None
    ) -> pa.Table:
        """The rows as one Arrow table, in insertion order.

        Args:
            where: a filter in Lance's SQL (names in backticks) or an Arrow expression.
        """
        with translated("reading", self.uri):
            rows = self.scanner(columns, where=where).to_table()
        return plain_rows(rows, self.blobs_of(columns))

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: str | pa.Expression | None = None,
        has_addresses: bool = False,
        batch_rows: int | None = None,
        fragment_ids: Sequence[int] | None = None,
    ) -> LanceScanner:
        """Lance's reader of the rows, in insertion order; failures are for the caller to translate.

        Blobs come as bytes, in fields that are to be cleaned with `plain_rows`.

        Args:
            has_addresses: adds the column `lookup.ADDRESS`, last.
            batch_rows: rows of a batch at most.
            fragment_ids: the only fragments to read.
        """
        chosen = None
        if fragment_ids is not None:
            wanted = set(fragment_ids)
            chosen = [f for f in self.dataset.get_fragments() if f.fragment_id in wanted]
        return self.dataset.scanner(
            columns=None if columns is None else list(columns),
            filter=where,
            fragments=chosen,
            with_row_address=has_addresses,
            batch_size=batch_rows,
            blob_handling="all_binary" if self.blobs_of(columns) else None,
        )

    def at(self, dataset: LanceDataset) -> Table:
        """The same table at a version staged on this one."""
        return Table(
            self.store,
            self.location,
            dataset,
            base_version=self.base_version,
            staged_since=self.staged_since,
        )

    def since(self, moment: float) -> Table:
        """The same for work that uses files written since a moment, if that is earlier."""
        return Table(
            self.store,
            self.location,
            self.dataset,
            base_version=self.base_version,
            staged_since=min(moment, self.staged_since),
            sparse=self._sparse,
        )

    def reopened(self) -> Table:
        """The same version for work that begins now."""
        return Table(self.store, self.location, self.dataset, sparse=self._sparse)


def create_table(store: Store, location: str, schema: pa.Schema) -> Table:
    """Make an empty table.

    Raises:
        AlreadyExists: something is at that location; it is left alone.
    """
    dataset = try_create(store, location, to_stored(schema))
    if dataset is None:
        raise AlreadyExists(f"a dataset exists at {store.uri(location)}")
    return Table(store, location, dataset)


def open_empty(store: Store, location: str, schema: pa.Schema) -> Table | None:
    """The table at that location if it is of that schema and was never written to."""
    try:
        table = open_table(store, location, EMPTY_VERSION)
    except ObjectNotFound:
        return None
    return table if table.schema.equals(schema) and table.count_rows() == 0 else None


def open_table(store: Store, location: str, physical_version: int) -> Table:
    """The table at exactly that version.

    Raises:
        ObjectNotFound: the version, or the table, is not in the store.
    """
    where = f"{store.uri(location)} (version {physical_version})"
    with translated("opening a table", where):
        dataset = lance.dataset(
            store.uri(location),
            version=physical_version,
            storage_options=store.options,
            session=store.session,
        )
    return Table(store, location, dataset)
