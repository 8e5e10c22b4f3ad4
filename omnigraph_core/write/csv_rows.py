"""CSV bytes in, columns of text out, each row with the line it begins at.

The first row names the columns. An empty field is null, a quoted empty one is empty text. A blank
line, or a row of nothing but empty fields, is no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from omnigraph_core.errors import RecordError
from omnigraph_core.write.csv_blocks import RowBlock, fields_of, iter_row_blocks

OnBadRow: TypeAlias = Callable[[int, str, str], None]
"""Told the line of a row that is none of the table's, what is wrong with it, and its text."""
_Numbered: TypeAlias = tuple[pa.RecordBatch, np.ndarray]
_AFTER_QUOTE: Final = "text after the closing quote of a field"


def read_csv(
    stream: IO[bytes], on_bad_row: OnBadRow
) -> tuple[tuple[str, ...], Iterator[_Numbered]]:
    """The names of the columns, none if there is nothing; batches of binary columns, and lines.

    Raises:
        RecordError: a quoted field does not end, also while rows are read.
        UnicodeDecodeError: a name is not UTF-8.
    """
    blocks = iter_row_blocks(stream)
    first = next(blocks, None)
    if first is None or not first.text(0):
        return (), iter(())
    if first.odd[0]:
        raise RecordError(f"{_AFTER_QUOTE}, in the names of the columns")
    names = tuple(name.decode() for name in fields_of(first.text(0)))
    return names, _batches(first, blocks, _Parser(names, on_bad_row))


def _batches(first: RowBlock, rest: Iterator[RowBlock], parser: _Parser) -> Iterator[_Numbered]:
    yield parser.parse(first.without_first())
    for block in rest:
        yield parser.parse(block)


class _Parser:
    """Makes columns of the rows that have the right number of fields."""

    def __init__(self, names: tuple[str, ...], on_bad_row: OnBadRow) -> None:
        self._names = names
        self._on_bad_row = on_bad_row
        self._nothing = pa.schema([(name, pa.binary()) for name in names]).empty_table()

    def parse(self, block: RowBlock) -> _Numbered:
        """The good rows of a block; the others are told."""
        if not block.odd.any():
            try:
                return self._numbered(block)
            except pa.ArrowInvalid:
                pass  # as for a row that lacks fields
        problems = {row: what for row in range(len(block)) if (what := self._problem(block, row))}
        for row, what in problems.items():
            text = block.text(row).decode(errors="replace")
            self._on_bad_row(int(block.lines[row]), what, text)
        is_good = ~np.isin(np.arange(len(block)), list(problems))
        return self._numbered(block.where(is_good))

    def _problem(self, block: RowBlock, row: int) -> str | None:
        if block.odd[row]:
            return _AFTER_QUOTE
        text, expected = block.text(row), len(self._names)
        count = len(fields_of(text)) if b'"' in text else text.count(b",") + 1
        if not text or count == expected:
            return None
        return f"expected {expected} fields, found {count}"

    def _numbered(self, block: RowBlock) -> _Numbered:
        table = self._table(block.data) if len(block) else self._nothing
        if table.num_rows != len(block):
            raise RecordError(f"expected {len(block)} rows, found {table.num_rows}")
        is_row = np.zeros(len(block), dtype=bool)
        for column in table.columns:
            is_row |= column.is_valid().to_numpy()
        rows = table if is_row.all() else table.filter(pa.array(is_row))
        columns = [column.combine_chunks() for column in rows.columns]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema), block.lines[is_row]

    def _table(self, data: bytes) -> pa.Table:
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                column_names=self._names, block_size=len(data) + 1, use_threads=False
            ),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(self._names, pa.binary()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
