"""Vectors near a given one: through a vector index, or all of them one after another.

A table, a column and a vector come in; addresses go out, nearest first by cosine distance. Rows no
index covers are searched as well. More of an index is looked at until it stops finding new rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.storage.indexes import index_coverage
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.storage.segments import Metric, SegmentKind
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from omnigraph_core.storage.dataset import Table

_DISTANCE: Final = "_distance"
_PARTITION_ROWS: Final = 4_096
"""Of the partitions an index is built with; a guess that is wrong costs time, no results."""

_FIRST_PROBES: Final = 16
"""Partitions of a first look; of many more it is twice the square root of their number."""

_ALL_PROBES: Final = 2**20
"""More partitions than any index has: every one is searched."""

_WITNESSES: Final = 50
"""Rows that are looked for at least: whether ten are the nearest shows in those around them."""

_MOVING_SHARE: Final = 0.2
"""Of new rows after a look twice as wide: beyond it vectors lie anywhere, and all are looked at."""

_STILL_SHARE: Final = 0.005
"""Of new rows up to which the nearest count as found."""

_REFINE: Final = 10
"""Rows compared exactly for each one wanted, where an index keeps shortened vectors."""


def nearest_rows(
    table: Table, column: str, vector: np.ndarray, count: int, *, check: Callable[[], None]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Addresses (uint64) and distances (float32) of the nearest rows; None without an index.

    Fewer than `count` come back only where the column has fewer vectors. The distances are those
    of Lance, close to the true ones.

    Args:
        check: called before each look into the index; may raise to stop.
    """
    options = _search_options(table, column)
    if options is None:
        return None
    wanted = max(count, _WITNESSES)
    query = {"column": column, "q": vector, "k": wanted, **options}
    partitions = table.count_rows() // _PARTITION_ROWS
    first = max(_FIRST_PROBES, 2 * math.isqrt(partitions))
    probes = first if partitions > 2 * first else _ALL_PROBES
    check()
    addresses, distances = _search(table, query, probes)
    while probes < _ALL_PROBES:
        check()
        known = addresses
        probes = 2 * probes if 2 * probes < partitions else _ALL_PROBES
        addresses, distances = _search(table, query, probes)
        moved = np.count_nonzero(~np.isin(addresses, known)) / wanted
        if moved <= _STILL_SHARE and len(addresses) == wanted:
            break
        if moved > _MOVING_SHARE:
            partitions = 0  # the next look is at everything
    return addresses[:count], distances[:count]


def iter_vectors(table: Table, column: str, *, batch_rows: int) -> Iterator[pa.Array]:
    """The whole column in scan order, some rows at a time."""
    with translated("reading vectors", table.uri):
        for batch in table.scanner([column], batch_rows=batch_rows).to_batches():
            yield batch.column(0)


def _search_options(table: Table, column: str) -> dict[str, object] | None:
    """How a cosine index of the column is to be asked; None if there is none."""
    for coverage in index_coverage(table):
        if coverage.columns == (column,) and coverage.metric is Metric.COSINE:
            # Not given, the metric is another one wherever rows are searched without the index.
            options: dict[str, object] = {"metric": Metric.COSINE.value}
            if coverage.kind is not SegmentKind.IVF_FLAT:
                options["refine_factor"] = _REFINE
            return options
    return None


def _search(table: Table, query: dict[str, object], probes: int) -> tuple[np.ndarray, np.ndarray]:
    with translated("searching vectors", table.uri):
        found = table.dataset.scanner(
            columns=[_DISTANCE], with_row_address=True, nearest={**query, "nprobes": probes}
        ).to_table()
    return found.column(ADDRESS).to_numpy(), found.column(_DISTANCE).to_numpy()
