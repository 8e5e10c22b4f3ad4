"""A table of parts in a real store: one column of every kind that storage treats differently."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.segments import Metric
from omnigraph_core.storage.session import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

LOCATION = "nodes/parts"
SHAPE = pa.list_(pa.field("item", pa.float32()), 4)
TAGS = pa.list_(pa.field("item", pa.utf8()))
FIELDS = {
    "id": pa.field("id", pa.utf8(), nullable=False),
    "name": pa.field("name", pa.utf8()),
    "stock": pa.field("stock", pa.int64()),
    "tags": pa.field("tags", TAGS),
    "shape": pa.field("shape", SHAPE),
    "drawing": pa.field("drawing", pa.large_binary()),
}
SCHEMA = pa.schema(list(FIELDS.values()))
QUERY = [1.0, 3.0, 2.0, 0.5]
"""A shape to look for."""

LARGE = b"line " * 20_000
"""A drawing large enough to be kept in a file of its own."""


def new_table(root: Path | str, schema: pa.Schema = SCHEMA) -> Table:
    store = open_store(str(root))
    store.create_root()
    return create_table(store, LOCATION, schema)


def present(table: Table | None) -> Table:
    """The table an operation must have changed."""
    assert table is not None
    return table


def part(number: int | str, **values: Any) -> dict[str, Any]:
    """A row; what is not given follows from the number."""
    seed = int(number) if str(number).isdigit() else 0
    row = {
        "id": str(number),
        "name": f"bolt number{seed}",
        "stock": seed,
        "tags": ["steel", f"m{seed % 3}"],
        "shape": [1.0, float(seed), float(seed % 7), 0.5],
        "drawing": f"drawing {seed}".encode(),
    }
    return {**row, **values}


def parts(numbers: Iterable[int | str], **values: Any) -> list[dict[str, Any]]:
    return [part(number, **values) for number in numbers]


def rows(items: Iterable[Mapping[str, Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows as Arrow, in the schema's columns."""
    listed = list(items)
    columns = [pa.array([item.get(field.name) for item in listed], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def shaped(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Rows with random shapes; the seed is in their ids."""
    chance = random.Random(seed)
    return [
        part(f"{seed}-{number}", shape=[chance.uniform(-1, 1) for _ in range(4)])
        for number in range(count)
    ]


def nearest(table: Table, k: int, metric: Metric = Metric.L2, **options: Any) -> list[str]:
    """The ids of the rows whose shapes are nearest to QUERY, nearest first."""
    found = table.dataset.to_table(
        columns=["id", "_distance"],
        nearest={"column": "shape", "q": QUERY, "k": k, "metric": metric.value, **options},
    )
    return [str(item) for item in found.column("id").to_pylist()]


def contents(table: Table) -> dict[str, dict[str, Any]]:
    """Every row by its id, blobs as bytes; a repeated id is an error."""
    found = table.read().to_pylist()
    by_id = {row["id"]: row for row in found}
    assert len(by_id) == len(found) == table.count_rows()
    return by_id


def by_id(items: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in items}


def files_below(root: Path, folder: str) -> set[str]:
    """Paths of the table's files in one of its folders."""
    base = root / LOCATION
    return {str(path.relative_to(base)) for path in (base / folder).rglob("*") if path.is_file()}
