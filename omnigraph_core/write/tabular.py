"""Tables in (Parquet, CSV, Arrow), batches out: the columns are the properties of one type.

Besides the properties there may be `id`, for edges `from` and `to` (or `src` and `dst`), and the
column of URIs of a blob. A column that has no place is reported once, a value that does not fit by
its row; such rows are left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.errors import RecordError
from omnigraph_core.violations import Rule
from omnigraph_core.write.arrow_shown import shown_scalar
from omnigraph_core.write.batches import Batch
from omnigraph_core.write.intake import suggestion
from omnigraph_core.write.table_files import open_table_file
from omnigraph_core.write.table_rows import TableReader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.write.batches import GraphType
    from omnigraph_core.write.intake import Intake
    from omnigraph_core.write.sources import Source


def read_tabular(intake: Intake) -> Iterator[Batch]:
    """The rows of a tabular source; what is wrong with it is reported."""
    type = _type(intake)
    if type is None or not intake.is_wanted(type):
        return
    reader = TableReader(intake, type)
    try:
        with open_table_file(intake.source, reader.report_row) as file:
            if not reader.accepts(file.schema):
                return
            for rows, numbers in file.batches:
                intake.count_read(rows.num_rows)
                yield Batch(type, reader.read(rows, numbers))
    except RecordError as problem:
        intake.report(Rule.RECORD, None, problem.message, type_name=type.name)


def raw_rows(source: Source, numbers: Collection[int]) -> Iterator[tuple[int, str]]:
    """The rows of these numbers as JSON objects; a row of CSV that does not fit them as text."""
    wanted = np.array(sorted(numbers), dtype=np.int64)
    found: dict[int, str] = {}

    def keep(line: int, what: str, text: str) -> None:
        if line in numbers:
            found[line] = text

    with open_table_file(source, keep) as file:
        for rows, at in file.batches:
            is_wanted = np.isin(at, wanted)
            if is_wanted.any():
                texts = _texts(rows.filter(pa.array(is_wanted)))
                found.update(zip(at[is_wanted].tolist(), texts, strict=True))
            yield from sorted(found.items())
            found.clear()
    yield from sorted(found.items())


def _texts(rows: pa.RecordBatch) -> Iterator[str]:
    for row in range(rows.num_rows):
        values = [shown_scalar(column[row]) for column in rows.columns]
        yield json.dumps(dict(zip(rows.schema.names, values, strict=True)), ensure_ascii=False)


def _type(intake: Intake) -> GraphType | None:
    catalog = intake.catalog
    given = intake.source.type_name or ""
    kind, _, name = given.rpartition(":")
    node = catalog.nodes.get(name) if kind in ("", "node") else None
    edge = catalog.try_edge(name) if kind in ("", "edge") else None
    if node is not None and edge is not None:
        what = f"`{name}` is a node type and an edge type; say node:{name} or edge:{name}"
        intake.report(Rule.UNKNOWN_TYPE, None, what, value=given)
        return None
    if node is None and edge is None:
        known = _known(catalog, kind)
        what = f"unknown type `{given}`{suggestion(name, known)}"
        intake.report(Rule.UNKNOWN_TYPE, None, what, value=given)
    return node or edge


def _known(catalog: Catalog, kind: str) -> tuple[str, ...]:
    nodes = tuple(catalog.nodes) if kind != "edge" else ()
    return nodes + (tuple(catalog.edges) if kind != "node" else ())
