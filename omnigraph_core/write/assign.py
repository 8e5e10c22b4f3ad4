"""Assignments as columns: values of a statement come in, new rows or changed rows go out.

A value takes the type of its column here; one that does not fit is reported with the number of its
statement. Companion columns follow: a blob is bytes or an address, a vector that was given has no
origin, and one whose text has changed is made anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.exec.scalars import arrow_array
from omnigraph_core.plan.values import is_given
from omnigraph_core.schema.arrow import origin_column, uri_column
from omnigraph_core.schema.catalog import NodeType
from omnigraph_core.types import STRING
from omnigraph_core.values import ValueProblem, from_json
from omnigraph_core.violations import Rule, Violation
from omnigraph_core.write.batches import LINE, SOURCE, STATEMENTS, Batch, batch_schema
from omnigraph_core.write.blob_text import parse_blob
from omnigraph_core.write.pending import ASKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import GraphType

    Assignments = Sequence[tuple[str, TypedExpr]]


def assigned_cells(
    type: GraphType,
    assignments: Assignments,
    values: Values,
    statement: int,
    violations: Violations,
) -> dict[str, pa.Array] | None:
    """One cell for each column that the assignments set; None if a value was reported."""
    cells: dict[str, pa.Array] = {}
    is_sound = True
    for name, expr in assignments:
        assert is_given(expr)  # nothing else can be assigned
        declared = type.properties[name].type if name in type.properties else STRING
        value = values.of(expr)
        try:
            cells |= _cells(type, name, declared, value)
        except ValueProblem as problem:
            is_sound = False
            message = f"{type.name}.{name}: {problem}"
            shown = value if isinstance(value, int | float) else None
            violation = Violation(Rule.VALUE, message, type.name, name, shown)
            violations.add(STATEMENTS.at(violation, 0, statement))
    return cells if is_sound else None


def new_row(type: GraphType, cells: Mapping[str, pa.Array], statement: int) -> Batch:
    """A row of the given cells, of defaults and of nulls; its id is still to be made."""
    defaults = {
        name: arrow_array([property.default], property.type)
        for name, property in type.properties.items()
        if property.has_default and name not in cells
    }
    given = {**defaults, **cells, **_place(statement, 1)}
    schema = batch_schema(type)
    columns = [
        given[field.name] if field.name in given else pa.nulls(1, field.type) for field in schema
    ]
    return Batch(type, pa.Table.from_arrays(columns, schema=schema))


def changed_rows(
    type: GraphType, rows: pa.Table, cells: Mapping[str, pa.Array], statement: int
) -> pa.Table:
    """The rows with these cells in place of their own, as that statement made them."""
    repeated = pa.array(np.zeros(rows.num_rows, np.int64))
    columns = {name: cell.take(repeated) for name, cell in cells.items()}
    columns |= _outdated_vectors(type, rows, columns)
    columns |= _place(statement, rows.num_rows)
    if _touches_vectors(type, cells):
        columns[ASKS] = pa.array(np.ones(rows.num_rows, np.bool_))
    for name, column in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
    return rows


def _cells(type: GraphType, name: str, declared: PropType, value: Value) -> dict[str, pa.Array]:
    if declared.is_blob:
        assert value is None or isinstance(value, str)
        data, uri = (None, None) if value is None else parse_blob(value)
        return {
            name: pa.array([data], pa.large_binary()),
            uri_column(name): pa.array([uri], pa.utf8()),
        }
    cells = {name: arrow_array([_fit(value, declared)], declared)}
    if isinstance(type, NodeType) and name in type.embeddings:
        cells[origin_column(name)] = pa.nulls(1, pa.int64())
    return cells


def _fit(value: Value, declared: PropType) -> Value:
    """A value as its column can hold it; whether an enum allows it, the rules for rows say."""
    if not declared.scalar.is_numeric:
        return value
    return from_json(value, replace(declared, is_nullable=True))


def _outdated_vectors(
    type: GraphType, rows: pa.Table, assigned: Mapping[str, pa.Array]
) -> dict[str, pa.Array]:
    """Vectors without those that were made of a text that has changed."""
    columns: dict[str, pa.Array] = {}
    for vector, embedding in type.embeddings.items() if isinstance(type, NodeType) else ():
        text = assigned.get(embedding.source)
        if text is None or vector in assigned:
            continue
        same = _is_same(rows.column(embedding.source), text)
        for name in (vector, origin_column(vector)):
            kept = rows.column(name)
            columns[name] = pc.if_else(same, kept, pa.scalar(None, kept.type))
    return columns


def _touches_vectors(type: GraphType, cells: Mapping[str, pa.Array]) -> bool:
    embeddings = type.embeddings if isinstance(type, NodeType) else {}
    return any(name in cells or item.source in cells for name, item in embeddings.items())


def _is_same(old: pa.ChunkedArray, new: pa.Array) -> pa.ChunkedArray:
    equal = pc.fill_null(pc.equal(old, new), fill_value=False)
    return pc.or_(equal, pc.and_(pc.is_null(old), pc.is_null(new)))


def _place(statement: int, count: int) -> dict[str, pa.Array]:
    return {
        SOURCE: pa.array(np.zeros(count, np.int32)),
        LINE: pa.array(np.full(count, statement, np.int64)),
    }
