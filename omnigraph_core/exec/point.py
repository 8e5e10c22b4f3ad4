"""One node by its id or key: the read that must cost nothing but a lookup.

The plan says that a query is this and no more. What the general executor would do for it, such as
frames, portions and order, is skipped; the row is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.exec.select import key_text
from omnigraph_core.query.typed import PropertyValue

if TYPE_CHECKING:
    from omnigraph_core.exec.context import ReadPlan
    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.plan.steps import KeyLookup
    from omnigraph_core.plan.values import Values
    from omnigraph_core.topology.dense import DenseTable


def find_point(graph: GraphData, read: ReadPlan, lookup: KeyLookup, values: Values) -> pa.Table:
    """The node a lookup asks for as the only row of the result; no row if there is none."""
    dense = graph.nodes(lookup.type_name)
    id = key_text(values.of(lookup.given), lookup.property.type.scalar)
    number = -1 if id is None else dense.number_of(id)
    if number < 0:
        return read.schema.empty_table()
    columns = zip(read.plan.ir.columns, read.schema.types, strict=True)
    arrays = [
        _value(dense, column.expr.property, number)
        if isinstance(column.expr, PropertyValue)
        else _object(dense, type, number)
        for column, type in columns
    ]
    return pa.Table.from_arrays(arrays, schema=read.schema)


def _value(dense: DenseTable, name: str, number: int) -> pa.Array:
    if dense.is_resident(name):
        # A copy: a stretch of the column would carry all its other rows along.
        return pa.concat_arrays([dense.column(name).slice(number, 1)])
    return dense.values(name, np.array([number], np.int32))


def _object(dense: DenseTable, shown: pa.StructType, number: int) -> pa.StructArray:
    fields = list(shown)
    return pa.StructArray.from_arrays(
        [_value(dense, field.name, number) for field in fields], fields=fields
    )
