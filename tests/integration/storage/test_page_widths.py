"""How wide rows are is known before they are read, also where few of many are wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.storage import lookup, page_widths
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.lookup import iter_taken
from omnigraph_core.storage.page_widths import row_widths
from omnigraph_core.storage.row_space import fragment_states, iter_addresses
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from tests.support.parts import present

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

SHORT, WIDE, WIDTH = 60_000, 40, 1 << 20
PORTION, PAGE = 4 << 20, 8 << 20
SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("text", pa.utf8()),
        pa.field("words", pa.list_(pa.utf8())),
        pa.field("number", pa.int64()),
    ]
)


@pytest.fixture(scope="module", params=["any", "one"])
def skewed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Short rows, then wide ones, then short ones, in one file; texts of any letters, or of one."""
    table = create_table(open_store(str(tmp_path_factory.mktemp("skewed"))), "rows", SCHEMA)
    chance = np.random.default_rng(5)

    def wide() -> str:
        if request.param == "one":
            return "x" * WIDTH
        return bytes(chance.integers(97, 123, WIDTH, np.uint8)).decode()

    def rows(first: int, texts: list[str]) -> pa.RecordBatch:
        count = len(texts)
        ids = [f"{number:09}" for number in range(first, first + count)]
        columns = [ids, texts, [["a", "b"]] * count, list(range(count))]
        return pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)],
            schema=SCHEMA,
        )

    batches = [rows(0, ["short"] * SHORT)]
    batches += [rows(SHORT + number, [wide()]) for number in range(WIDE)]
    batches.append(rows(SHORT + WIDE, ["short"] * SHORT))
    reader = pa.RecordBatchReader.from_batches(SCHEMA, iter(batches))
    table = present(stage_append(table, reader))
    assert len(fragment_states(table)) == 1
    return table


def addresses_of(table: Table) -> np.ndarray:
    return np.concatenate(list(iter_addresses(table, None)))


def test_wide_rows_are_known(skewed: Table) -> None:
    addresses = addresses_of(skewed)
    widths = row_widths(skewed, addresses, ["id", "text"])
    assert widths[SHORT + 10 : SHORT + WIDE - 10].min() >= WIDTH / 2
    assert widths[-SHORT // 2 :].max() < 1_000
    assert np.array_equal(widths[::-7], row_widths(skewed, addresses[::-7], ["id", "text"]))


def test_columns_that_are_not_asked_for_do_not_count(skewed: Table) -> None:
    widths = row_widths(skewed, addresses_of(skewed), ["id", "words", "number"])
    assert 0 < widths.max() < 1_000


def test_a_small_file_is_not_asked(skewed: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_widths, "_SMALL_FILE", 1 << 40)
    monkeypatch.setattr(page_widths, "_columns", None)
    widths = row_widths(skewed, addresses_of(skewed)[:3], ["text"])
    assert 0 < widths[0] == widths[2]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of all that is read at once."""
    found: list[int] = []
    take = lookup._taken

    def counted(*given: Any, **named: Any) -> pa.Table:
        rows = take(*given, **named)
        found.append(rows.nbytes)
        return rows

    monkeypatch.setattr(lookup, "_taken", counted)
    return found


@pytest.mark.parametrize("step", [1, 3, -1])
def test_no_more_is_read_at_once_whatever_came_before(
    skewed: Table, read: list[int], step: int
) -> None:
    addresses = pa.array(addresses_of(skewed)[::step])
    portions = iter_taken(skewed, addresses, ["id", "text"], portion_bytes=PORTION)
    ids = [id for rows in portions for id in rows.column("id").to_pylist()]
    assert ids == [f"{number:09}" for number in range(2 * SHORT + WIDE)][::step]
    # A page may hold short rows and the first of the wide ones: so much more.
    assert max(read) <= PORTION + PAGE


def test_otherwise_all_wide_rows_would_be_read_at_once(
    skewed: Table, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_FEW_ROWS", 1 << 40)
    list(iter_taken(skewed, pa.array(addresses_of(skewed)), ["text"], portion_bytes=PORTION))
    assert max(read) > WIDE * WIDTH / 2 > PORTION + PAGE


def test_of_rows_that_are_not_there_nothing_is_known(skewed: Table, tmp_path: Path) -> None:
    empty = create_table(open_store(str(tmp_path)), "rows", SCHEMA)
    assert row_widths(empty, np.array([3], np.uint64), ["text"]).tolist() == [0]
