"""Few rows of a version, from an object store: addresses come in, rows go out.

What was read lately is kept: a comparison first asks for the ids of rows, then for columns of some
of them, then for the whole of those that differ. A version never changes, so what is kept is right.
Of rows that lie far apart only what is adjacent is read together.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import lance
import numpy as np
import pyarrow as pa

from omnigraph_core.storage.proto import without
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance import LanceDataset

    from omnigraph_core.storage.session import Store

_BLOCK: Final = 16_384
"""Bytes between two ranges up to which both are read at once.

Lance itself reads up to 64 KiB that nobody asked for rather than asking an object store twice. That
is right for rows close together; of few rows among many it reads most of a column.
"""
_KEPT_BYTES: Final = 4 << 20
"""Of rows that are kept, of one version."""

_LISTS_OF_DELETED: Final = (2, 3)
"""Of a version's description: its fragments, and in each the file of rows deleted from it."""

_NEAR: Final = 16
"""Rows between two that are read together, about."""
_SPARSE_SHARE: Final = 100
"""One row of so many: what lies between the rows is then too much to be read along."""


def are_far_apart(count: int, among: int) -> bool:
    """Whether so many rows, of a table of so many, are."""
    return count * _SPARSE_SHARE <= among


def spread(addresses: np.ndarray) -> int:
    """At how many places rows lie, about: those close to each other are at one.

    >>> spread(np.array([3, 2**32, 1, 2**20], np.uint64))
    3
    """
    steps = np.diff(np.sort(addresses))
    return int(np.count_nonzero(steps > _NEAR)) + bool(len(addresses))


class SparseRows:
    """A version of a table opened once more, when it is first needed. Safe to share."""

    __slots__ = ("_dataset", "_kept", "_lock", "_opened", "_store", "_uri")

    def __init__(self, store: Store, uri: str, dataset: LanceDataset) -> None:
        self._store = store
        self._uri = uri
        self._dataset = dataset
        self._opened: LanceDataset | None = None
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether the version was opened once more."""
        return self._opened is not None

    @property
    def nbytes(self) -> int:
        """Of the rows that are kept."""
        with self._lock:
            return sum(item.nbytes for item in self._kept.values())

    def take(
        self, addresses: Sequence[int], columns: Sequence[str], *, is_sparse: bool = True
    ) -> pa.Table:
        """The rows at these addresses in the order given; fewer where one is not there.

        Failures are for the caller to translate.

        Args:
            is_sparse: False reads what lies between them along, where that is little.
        """
        if self._store.options is None:
            return self._dataset._take_rows(list(addresses), columns=list(columns))
        wanted = np.asarray(addresses, np.uint64)
        with self._lock:
            known = {name: self._kept.get(name, _NOTHING) for name in columns}
        handle = self._handle() if is_sparse else self._dataset
        read = self._read(handle, wanted, known)
        if any(not item.has(wanted).all() for item in read.values()):
            # A row is missing: only the dataset itself says which come back.
            return handle._take_rows(list(addresses), columns=list(columns))
        self._keep(read)
        columns_read = [read[name].at(wanted) for name in columns]
        fields = [read[name].field for name in columns]
        return pa.Table.from_arrays(columns_read, schema=pa.schema(fields))

    def count_lacking(self, addresses: np.ndarray, columns: Sequence[str]) -> int:
        """Of how many of the rows something has to be read before they can be taken."""
        with self._lock:
            known = [self._kept.get(name, _NOTHING) for name in columns]
        is_kept = np.ones(len(addresses), np.bool_)
        for item in known:
            is_kept &= item.has(addresses)
        return int(np.count_nonzero(~is_kept))

    def lacking(self, addresses: np.ndarray, column: str) -> np.ndarray:
        """Those of the rows that are not kept in a column."""
        with self._lock:
            kept = self._kept.get(column, _NOTHING)
        missing: np.ndarray = addresses[~kept.has(addresses)]
        return missing

    def keep(self, addresses: np.ndarray, rows: pa.Table) -> None:
        """Keep rows of this version that somebody has read, at ascending addresses."""
        with self._lock:
            known = {name: self._kept.get(name, _NOTHING) for name in rows.column_names}
        read = {}
        for name, kept in known.items():
            is_new = ~kept.has(addresses)
            values = rows.column(name).filter(pa.array(is_new)).combine_chunks()
            read[name] = kept.joined(_Kept(rows.field(name), addresses[is_new], values))
        self._keep(read)

    def with_deleted(self, *, is_sparse: bool) -> LanceDataset:
        """The version with the rows that were deleted from its fragments: reads nothing."""
        manifest = without(self._dataset._ds.serialized_manifest(), _LISTS_OF_DELETED)
        return lance.LanceDataset(
            self._uri,
            serialized_manifest=manifest,
            storage_options=self._store.options,
            session=self._store.session,
            block_size=_BLOCK if is_sparse else None,
        )

    def _read(
        self, handle: LanceDataset, wanted: np.ndarray, known: dict[str, _Kept]
    ) -> dict[str, _Kept]:
        """Every column with all wanted rows: those that lack the same rows are read together."""
        lacking: dict[bytes, list[str]] = {}
        for name, kept in known.items():
            missing = np.unique(wanted[~kept.has(wanted)])
            lacking.setdefault(missing.tobytes(), []).append(name)
        found = dict(known)
        for missing_bytes, names in lacking.items():
            missing = np.frombuffer(missing_bytes, np.uint64)
            if not len(missing):
                continue
            rows = handle._take_rows(missing.tolist(), columns=names)
            if rows.num_rows == len(missing):
                for name in names:
                    values = rows.column(name).combine_chunks()
                    found[name] = known[name].joined(_Kept(rows.field(name), missing, values))
        return found

    def _keep(self, read: dict[str, _Kept]) -> None:
        with self._lock:
            self._kept.update(read)
            if sum(item.nbytes for item in self._kept.values()) > _KEPT_BYTES:
                self._kept.clear()

    def _handle(self) -> LanceDataset:
        with self._lock:
            if self._opened is None:
                with translated("opening a table", self._uri):
                    self._opened = lance.dataset(
                        self._uri,
                        version=int(self._dataset.version),
                        storage_options=self._store.options,
                        session=self._store.session,
                        block_size=_BLOCK,
                    )
            return self._opened


class _Kept:
    """Values of a column at ascending addresses."""

    __slots__ = ("addresses", "field", "values")

    def __init__(self, field: pa.Field, addresses: np.ndarray, values: pa.Array) -> None:
        self.field = field
        self.addresses = addresses
        self.values = values

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes) + int(self.addresses.nbytes)

    def has(self, wanted: np.ndarray) -> np.ndarray:
        if not len(self.addresses):
            return np.zeros(len(wanted), np.bool_)
        places = np.searchsorted(self.addresses, wanted)
        found: np.ndarray = self.addresses.take(places, mode="clip") == wanted
        return found

    def at(self, wanted: np.ndarray) -> pa.Array:
        return self.values.take(pa.array(np.searchsorted(self.addresses, wanted)))

    def joined(self, other: _Kept) -> _Kept:
        if not len(self.addresses):
            return other
        together = np.concatenate((self.addresses, other.addresses))
        order = np.argsort(together)
        values = pa.concat_arrays([self.values, other.values])
        return _Kept(self.field, together[order], values.take(pa.array(order)))


_NOTHING: Final = _Kept(pa.field("", pa.null()), np.zeros(0, np.uint64), pa.nulls(0))
