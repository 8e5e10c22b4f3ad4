"""Which rows differ between two versions, against reading all rows of both."""

from __future__ import annotations

import base64
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.compare import candidates
from omnigraph_core.compare.changes import MISSING, changed_rows, equal_rows
from omnigraph_core.compare.view import RowView
from omnigraph_core.constants import Constant
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.reshape import reshape
from omnigraph_core.storage import blob_content, rewrites
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.row_space import fragment_states, stored_bytes
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from tests.integration.compare.lines import (
    COLUMNS,
    PART,
    SCHEMA,
    VALUES,
    addresses_of,
    check_changes,
    mutate,
    new_line,
    part_type,
    rows_of,
    some_row,
)
from tests.support.examples import LONG
from tests.support.parts import present
from tests.support.table_writes import (
    add_filled_column,
    add_null_column,
    drop_column,
    rename_column,
    stage_delete_keys,
    stage_upsert,
)

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table


def view(table: Table) -> RowView:
    return RowView.of(table, PART)


def started(root: Path, chance: random.Random, location: str = "nodes/parts") -> Table:
    rows = rows_of(some_row(chance, f"{number:03}") for number in range(0, 60, 3))
    table = present(stage_append(new_line(root, location), rows.slice(0, 12)))
    return present(stage_append(table, rows.slice(12)))


def compare(before: Table, after: Table) -> None:
    check_changes(changed_rows(view(before), view(after)), view(before), view(after))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are kept of small compactions too."""
    monkeypatch.setattr(rewrites, "LEAST_ROWS", 1)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("seed", range(16 if LONG else 6))
def test_two_lines_that_part(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    base = started(tmp_path, chance)
    ours, theirs = base, base
    for _ in range(chance.randrange(1, 9)):
        ours = mutate(chance, ours, theirs)
        theirs = mutate(chance, theirs, ours)
    compare(base, ours)
    compare(theirs, base)
    compare(ours, theirs)
    names = ["tags", "weight"]
    found = changed_rows(view(ours), view(theirs), names)
    check_changes(found, view(ours), view(theirs), *names)


@pytest.mark.parametrize("limit", [1, 3, 20])
@pytest.mark.parametrize("seed", range(4 if LONG else 2))
def test_several_passes_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, limit: int
) -> None:
    monkeypatch.setattr(candidates, "COMPARE_ROWS", Constant("compare_rows", limit, "few"))
    chance = random.Random(seed)
    ours = theirs = started(tmp_path, chance)
    for _ in range(6):
        ours, theirs = mutate(chance, ours, theirs), mutate(chance, theirs, ours)
    compare(ours, theirs)
    check_changes(changed_rows(None, view(ours)), None, view(ours))


def test_tables_at_different_places(tmp_path: Path) -> None:
    chance = random.Random(5)
    here = started(tmp_path, chance)
    there = present(stage_append(new_line(tmp_path, "nodes/again"), here.read()))
    assert len(changed_rows(view(here), view(there))) == 0
    compare(here, there)
    there = present(stage_upsert(there, rows_of([some_row(chance, "003"), some_row(chance, "x")])))
    compare(here, mutate(chance, there, here))


def test_tables_that_come_and_go(tmp_path: Path) -> None:
    table = started(tmp_path, random.Random(1))
    check_changes(changed_rows(None, view(table)), None, view(table))
    check_changes(changed_rows(view(table), None), view(table), None)
    empty = new_line(tmp_path, "nodes/none")
    check_changes(changed_rows(view(empty), view(table)), view(empty), view(table))
    assert len(changed_rows(None, view(empty))) == len(changed_rows(None, None)) == 0


def test_every_kind_of_value_counts(tmp_path: Path) -> None:
    """One column at a time, each value with each other one."""
    chance = random.Random(3)
    plain = some_row(chance, "0")
    pairs = [
        (column, old, new) for column, values in VALUES.items() for old in values for new in values
    ]
    sides: list[list[dict[str, Any]]] = [
        [
            {**plain, "id": f"{n:04}", column: (old, new)[side]}
            for n, (column, old, new) in enumerate(pairs)
        ]
        for side in (0, 1)
    ]
    before = present(stage_append(new_line(tmp_path), rows_of(sides[0])))
    after = present(stage_upsert(before, rows_of(sides[1])))
    found = changed_rows(view(before), view(after))
    check_changes(found, view(before), view(after))
    assert 0 < len(found) < len(pairs)


def test_what_was_asked_for_has_not_changed(tmp_path: Path) -> None:
    chance = random.Random(2)
    before = started(tmp_path, chance)
    after = present(stage_upsert(before, rows_of([some_row(chance, "003")])))
    after = present(stage_delete_keys(after, pa.array(["006"])))
    found = changed_rows(view(before), view(after))
    assert len(found.unchanged_at(np.zeros(0, np.uint64))) == 0
    for place in (found.before[:1], found.before[1:], np.array([MISSING]), np.array([9 << 32])):
        with pytest.raises(InvariantBroken, match="have not changed"):
            found.unchanged_at(place.astype(np.uint64))
    with pytest.raises(InvariantBroken, match="have not changed"):
        changed_rows(None, view(after)).unchanged_at(np.zeros(1, np.uint64))


def test_columns_must_be_the_same(tmp_path: Path) -> None:
    table = started(tmp_path, random.Random(1))
    other = part_type(SCHEMA.replace("ok: Bool?", ""))
    less = RowView.of(table, other, reshape(PART, other, dict.fromkeys(PART.properties)))
    with pytest.raises(InvariantBroken, match="seen in the same columns"):
        changed_rows(view(table), less)


def test_pairs_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_content, "PIECE_BYTES", 30_000)
    monkeypatch.setattr(blob_content, "PORTION_BYTES", 120_000)
    chance = random.Random(4)
    rows = [{**some_row(chance, str(n)), "drawing": b"x" * 100_000} for n in range(4)]
    rows += [{**rows[0], "id": "4", "drawing": b"x" * 99_999 + b"y"}]
    table = view(present(stage_append(new_line(tmp_path), rows_of(rows))))
    places = addresses_of(table.table).to_numpy()
    turned = places[::-1].copy()
    only = ["drawing"]
    assert equal_rows(table, places, table, places).all()
    assert equal_rows(table, places, table, turned, only).tolist() == [False, *[True] * 3, False]
    assert equal_rows(table, places, table, turned, []).all()
    assert equal_rows(table, places[:0], table, places[:0]).tolist() == []


LATER = (
    SCHEMA.replace("name: String?", "title: String?")
    .replace("scale: F32?", "scale: F64?")
    .replace("stock: I64?", "stock: I64 @default(3)")
    .replace("ok: Bool?", "grade: I64 @default(5)\n  note: String?")
)


def evolved(table: Table) -> Table:
    """A table of the earlier type as one of the middle type: renamed, filled, dropped, added."""
    columns = {field.name: field for field in table_schema(part_type(MIDDLE))}
    table = rename_column(table, "name", "title")
    table = drop_column(add_filled_column(table, columns["grade"], pa.scalar(5)), "ok")
    return add_null_column(table, columns["note"])


MIDDLE = SCHEMA.replace("name: String?", "title: String?").replace(
    "ok: Bool?", "grade: I64 @default(5)\n  note: String?"
)
RENAMED = {name: "title" if name == "name" else name for name in PART.properties if name != "ok"}


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_changed_schema_alone_changes_no_row(tmp_path: Path, *, is_compacted: bool) -> None:
    before = started(tmp_path, random.Random(8))
    before = present(stage_delete_keys(before, pa.array(["009", "042"])))
    middle = part_type(MIDDLE)
    after = evolved(before)
    if is_compacted:
        after = present(compact(after))
    sources = reshape(PART, middle, RENAMED)
    old, new = RowView.of(before, middle, sources), RowView.of(after, middle)
    assert len(changed_rows(old, new)) == 0
    check_changes(changed_rows(old, new), old, new)
    other = RowView.of(before, middle, {**sources, "grade": sources["note"]})
    assert len(changed_rows(other, new)) == before.count_rows(), "null is not the default"
    check_changes(changed_rows(other, new), other, new)
    assert len(changed_rows(other, new, ["note", "title"])) == 0


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("seed", range(8 if LONG else 4))
def test_lines_with_different_schemas(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    base = started(tmp_path, chance)
    ours = base
    for _ in range(4):
        ours = mutate(chance, ours, base)
    theirs = present(stage_delete_keys(base, pa.array(["003", "021"])))
    theirs = evolved(theirs)
    middle = part_type(MIDDLE)
    more = rows_of(
        [{**some_row(chance, id), "title": "new", "grade": 5 + seed % 2} for id in ("006", "x")],
        theirs.schema,
    )
    theirs = present(stage_upsert(theirs, more))
    if seed % 2:
        theirs = present(compact(theirs))
    sources = reshape(PART, middle, RENAMED)
    for table in (base, ours):
        old, new = RowView.of(table, middle, sources), RowView.of(theirs, middle)
        check_changes(changed_rows(old, new), old, new)
        check_changes(changed_rows(new, old), new, old)


def test_both_seen_as_a_later_type(tmp_path: Path) -> None:
    """Widened and filled columns are compared as they are seen."""
    chance = random.Random(9)
    before = started(tmp_path, chance)
    after = before
    for _ in range(5):
        after = mutate(chance, after, before)
    later = part_type(LATER)
    sources = reshape(PART, later, RENAMED)
    old, new = RowView.of(before, later, sources), RowView.of(after, later, sources)
    check_changes(changed_rows(old, new), old, new)


def wide_rows(count: int, chance: np.random.Generator, start: int = 0) -> pa.Table:
    """About 300 bytes a row that do not compress."""
    numbers = [f"{n:08}" for n in range(start, start + count)]
    noise = base64.b64encode(chance.bytes(count * 195)).decode()
    texts = [noise[n * 260 : n * 260 + 260] for n in range(count)]
    columns: dict[str, Any] = {
        "id": numbers,
        "sku": numbers,
        "name": texts,
        "stock": chance.integers(0, 2**62, count),
        "weight": chance.random(count),
        "tags": pa.array([[text[:6], text[6:12]] for text in texts], pa.list_(pa.utf8())),
        "shape": pa.FixedSizeListArray.from_arrays(
            pa.array(chance.random(count * 3, np.float32)), 3
        ),
    }
    return pa.Table.from_arrays(
        [
            pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(count, field.type)
            for field in COLUMNS
        ],
        schema=COLUMNS,
    )


def bytes_read(before: Table, after: Table, expected: int) -> int:
    """By a comparison that finds nothing in memory."""
    store = open_store(before.store.root.text)
    fresh = [open_table(store, item.location, item.physical_version) for item in (before, after)]
    fresh[0].dataset.io_stats_incremental()
    found = changed_rows(view(fresh[0]), view(fresh[1]))
    assert len(found) == expected
    return int(fresh[0].dataset.io_stats_incremental().read_bytes)


def test_few_changes_read_little(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    rows = wide_rows(80_000, chance)
    before = present(stage_append(new_line(tmp_path), rows))
    chosen = np.sort(chance.choice(80_000, 100, replace=False))
    changed = rows.take(pa.array(chosen))
    place = changed.schema.get_field_index("stock")
    changed = changed.set_column(place, changed.field(place), pa.array(np.arange(100)))
    after = present(stage_upsert(before, changed))
    stored = present_bytes(before)
    assert stored > 250 * 80_000
    assert bytes_read(before, before, 0) == 0
    assert bytes_read(before, after, 100) <= 0.05 * stored
    gone = present(stage_delete_keys(after, pa.array([f"{n:08}" for n in range(20_000)])))
    moved = present(compact(gone))
    assert {state.files for state in fragment_states(moved)}.isdisjoint(
        state.files for state in fragment_states(gone)
    )
    assert bytes_read(gone, moved, 0) < 1_000_000, "what was deleted, and nothing else"
    later = present(stage_append(moved, wide_rows(10, chance, 300_000)))
    assert bytes_read(gone, later, 10) < 1_000_000


def present_bytes(table: Table) -> int:
    found = stored_bytes(table)
    assert found is not None
    return found
