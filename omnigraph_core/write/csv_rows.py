"""CSV bytes in, columns of text out, each row with the line it begins at.

The first row names the columns. An empty field is null, a quoted empty one is empty text. A blank
line, or a row of nothing but empty fields, is no row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

if TYPE_CHECKING:
    from omnigraph_core.write.sources import Source

_BLOCK_BYTES: Final = 16 << 20
OnRagged = Callable[[int, str, str], None]
"""Told the line of a row with too many or too few fields, what is wrong with it, and its text."""


def csv_header(source: Source) -> tuple[str, ...]:
    """The names of the columns; none if the source is empty.

    Raises:
        UnicodeDecodeError: a name is not UTF-8.
    """
    with (
        source.open() as stream,
        io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="") as text,
    ):
        names = next(csv.reader(text), [])
    return tuple(name.encode("utf-8", "surrogateescape").decode() for name in names)


def csv_batches(
    stream: IO[bytes], header: tuple[str, ...], on_ragged: OnRagged
) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
    """Batches of binary columns, and the lines of their rows."""
    lines = _LineCount(header, on_ragged)
    reader = arrow_csv.open_csv(
        pa.PythonFile(stream, "r"),
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
        parse_options=arrow_csv.ParseOptions(
            newlines_in_values=True,
            ignore_empty_lines=False,
            invalid_row_handler=lines.skip,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.binary()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )
    for batch in reader:
        at = lines.of(batch)
        is_row = _has_value(batch)
        yield batch.filter(pa.array(is_row)), at[is_row]
    lines.finish()


def _has_value(batch: pa.RecordBatch) -> np.ndarray:
    found = np.zeros(batch.num_rows, dtype=bool)
    for column in batch.columns:
        found |= column.is_valid().to_numpy(zero_copy_only=False)
    return found


class _LineCount:
    """Follows the rows of a CSV through its lines: a quoted field may hold several of them."""

    def __init__(self, header: tuple[str, ...], on_ragged: OnRagged) -> None:
        self._on_ragged = on_ragged
        self._skipped: dict[int, arrow_csv.InvalidRow] = {}
        self._row = 2
        """The next row; the header is the first."""
        self._line = 2 + sum(name.count("\n") for name in header)

    def skip(self, row: arrow_csv.InvalidRow) -> str:
        self._skipped[row.number] = row
        return "skip"

    def of(self, batch: pa.RecordBatch) -> np.ndarray:
        """The lines of the next rows."""
        extra = np.zeros(batch.num_rows, dtype=np.int64)
        for column in batch.columns:
            found = pc.fill_null(pc.count_substring(column, b"\n"), 0)
            extra += found.to_numpy(zero_copy_only=False)
        lines = np.empty(batch.num_rows, dtype=np.int64)
        start = 0
        for skipped in sorted(self._skipped):
            count = skipped - self._row
            if start + count > batch.num_rows:
                break
            self._advance(lines, extra, start, start + count)
            start += count
            self._report(self._skipped.pop(skipped))
        self._advance(lines, extra, start, batch.num_rows)
        return lines

    def _advance(self, lines: np.ndarray, extra: np.ndarray, start: int, stop: int) -> None:
        """Give lines to rows that follow each other."""
        heights = extra[start:stop] + 1
        lines[start:stop] = self._line + np.concatenate([[0], np.cumsum(heights)])[:-1]
        self._line += int(heights.sum())
        self._row += stop - start

    def _report(self, row: arrow_csv.InvalidRow) -> None:
        what = f"expected {row.expected_columns} fields, found {row.actual_columns}"
        self._on_ragged(self._line, what, row.text)
        self._line += row.text.count("\n") + 1
        self._row += 1

    def finish(self) -> None:
        """Report the rows after the last batch."""
        for skipped in sorted(self._skipped):
            self._report(self._skipped.pop(skipped))
