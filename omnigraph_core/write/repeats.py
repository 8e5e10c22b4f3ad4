"""Records of one input with the same id, where the last one counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.catalog import NodeType
from omnigraph_core.write.batches import FRESH

if TYPE_CHECKING:
    from omnigraph_core.write.batches import GraphType


def repeated_rows(type: GraphType, rows: pa.Table) -> pa.Table:
    """The rows that a later row of the same id replaces.

    A key is given once per input: two rows of one key are a mistake, not a sequence.
    """
    if isinstance(type, NodeType) and type.key is not None:
        return rows.slice(0, 0)
    rows = rows.filter(pc.invert(rows.column(FRESH)))
    places = pa.array(np.arange(rows.num_rows))
    last = pa.table({"id": rows.column("id"), "place": places})
    newest = last.group_by("id").aggregate([("place", "max")])
    if newest.num_rows == rows.num_rows:
        return rows.slice(0, 0)
    is_last = np.zeros(rows.num_rows, dtype=bool)
    is_last[newest.column("place_max").to_numpy()] = True
    return rows.filter(pa.array(~is_last))
