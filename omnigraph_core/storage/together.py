"""Rows of two versions of a table, read at once: places of both come in, both keep their rows.

What one version has deleted the other may still have, in the same data file and often close to what
it has deleted itself. Read by each for itself, such a file would be gone through twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.storage.row_space import column_identities, fragment_states
from omnigraph_core.storage.runs import is_in
from omnigraph_core.storage.sparse import are_far_apart, spread
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.storage.dataset import Table

_MOST_ROWS: Final = 512
"""Of both versions: of more, each is worth reading by itself."""
_AT_ONCE: Final = 64
"""Rows that are read at once without knowing how wide they are."""
_MOST_BYTES: Final = 1 << 20
"""Of what was read, after which the rest is left to whoever asks for it."""
_LEAST_SHARED: Final = 0.25
"""Of the places that rows are at, that have rows of both versions: below it nothing is gained."""

_OFFSET_BITS: Final = np.uint64(32)


def read_together(
    a: Table,
    a_addresses: np.ndarray,
    b: Table,
    b_addresses: np.ndarray,
    columns: Sequence[str],
) -> None:
    """Read what both versions have in files they share, where that is less than twice as much.

    Whoever takes the rows of either version next gets what was read. Nothing is wrong if this has
    read nothing: few rows of an object store are worth it.

    Raises:
        ObjectNotFound: a file is gone.
    """
    if a.store.options is None or a.uri != b.uri or not len(a_addresses) or not len(b_addresses):
        return
    names = _same_columns(a, b, columns)
    fragments = _same_fragments(a, b)
    if not names or not len(fragments):
        return
    places = [
        (table, _inside(fragments, where)) for table, where in ((a, a_addresses), (b, b_addresses))
    ]
    for lacking, group in _by_lacking(places, names).items():
        sides = [
            (table, np.frombuffer(missing, np.uint64))
            for (table, _), missing in zip(places, lacking, strict=True)
        ]
        wanted = np.unique(np.concatenate([addresses for _, addresses in sides]))
        if _is_worth_it(a, [addresses for _, addresses in sides], wanted):
            _read(sides, wanted, group)


def _by_lacking(
    places: Sequence[tuple[Table, np.ndarray]], columns: Sequence[str]
) -> dict[tuple[bytes, ...], list[str]]:
    """Columns by the rows that either version has not kept in them, which are ascending."""
    found: dict[tuple[bytes, ...], list[str]] = {}
    for name in columns:
        lacking = (np.unique(table.sparse.lacking(where, name)) for table, where in places)
        found.setdefault(tuple(missing.tobytes() for missing in lacking), []).append(name)
    return found


def _read(
    sides: Sequence[tuple[Table, np.ndarray]], wanted: np.ndarray, columns: Sequence[str]
) -> None:
    table = sides[0][0]
    read_bytes = 0
    with translated("reading rows", table.uri):
        is_sparse = are_far_apart(len(wanted), table.count_rows())
        dataset = table.sparse.with_deleted(is_sparse=is_sparse)
        for start in range(0, len(wanted), _AT_ONCE):
            here = wanted[start : start + _AT_ONCE]
            rows = dataset._take_rows(here.tolist(), columns=list(columns))
            if rows.num_rows != len(here):
                return  # whoever asks for the rows is told what is wrong
            for side, addresses in sides:
                # Each keeps rows that it has: what it has deleted must stay unknown to it.
                places = np.flatnonzero(is_in(here, addresses))
                side.sparse.keep(here[places], rows.take(places))
            read_bytes += rows.nbytes
            if read_bytes > _MOST_BYTES:
                return


def _same_columns(a: Table, b: Table, columns: Sequence[str]) -> list[str]:
    """Those that are stored alike in both; blobs are read otherwise."""
    mine, other = column_identities(a), column_identities(b)
    blobs = a.blobs_of(columns)
    return [
        name
        for name in columns
        if name not in blobs and name in mine and mine[name] == other.get(name)
    ]


def _same_fragments(a: Table, b: Table) -> np.ndarray:
    """Ids of the fragments of which both have the same files, whatever they have deleted."""
    files = {state.id: state.files for state in fragment_states(b)}
    found = [state.id for state in fragment_states(a) if files.get(state.id) == state.files]
    return np.array(sorted(found), np.uint64)


def _inside(fragments: np.ndarray, addresses: np.ndarray) -> np.ndarray:
    found: np.ndarray = addresses[is_in(addresses >> _OFFSET_BITS, fragments)]
    return found


def _is_worth_it(table: Table, sides: Sequence[np.ndarray], wanted: np.ndarray) -> bool:
    if len(wanted) > _MOST_ROWS or not all(map(len, sides)):
        return False
    if not are_far_apart(len(wanted), table.count_rows()):
        return True
    apart = sum(map(spread, sides))
    return apart - spread(wanted) >= _LEAST_SHARED * spread(wanted)
