"""What places tell of two versions, against reading all rows of both."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.compare.changes import MISSING
from omnigraph_core.compare.touched import touched_rows
from omnigraph_core.compare.unlike import unlike_all
from omnigraph_core.compare.view import RowView
from omnigraph_core.schema.reshape import reshape
from omnigraph_core.storage import rewrites
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.storage.staged import stage_append
from tests.integration.compare.lines import (
    PART,
    content,
    mutate,
    new_line,
    part_type,
    rows_of,
    some_row,
)
from tests.support.parts import present
from tests.support.table_writes import add_null_column, drop_column, stage_upsert

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table


def view(table: Table) -> RowView:
    return RowView.of(table, PART)


def started(root: Path, chance: random.Random) -> Table:
    rows = rows_of(some_row(chance, f"{number:03}") for number in range(0, 60, 3))
    table = present(stage_append(new_line(root), rows.slice(0, 12)))
    return present(stage_append(table, rows.slice(12)))


@pytest.mark.parametrize("seed", range(16))
def test_rows_by_place(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrites, "LEAST_ROWS", 1)
    chance = random.Random(seed)
    base = ours = theirs = started(tmp_path, chance)
    for _ in range(chance.randrange(1, 7)):
        ours = mutate(chance, ours, theirs)
        theirs = mutate(chance, theirs, ours)
    old, new = content(view(base)), content(view(ours))
    touched = touched_rows(view(base), view(ours))
    assert touched is not None
    assert sorted(touched.deleted_ids.to_pylist()) == sorted(old.keys() - new.keys())
    ids = sorted({*old, *new, "nobody"})
    before = np.array([old[id][ADDRESS] if id in old else MISSING for id in ids], np.uint64)
    is_touched, places = touched.where(pa.array(ids), before)
    expected = [new[id][ADDRESS] if id in new else int(MISSING) for id in ids]
    assert places.tolist() == expected
    for id, has_changed in zip(ids, is_touched.tolist(), strict=True):
        mine, other = (side.get(id, {}) | {ADDRESS: None} for side in (old, new))
        assert has_changed or mine == other


@pytest.mark.parametrize("seed", range(8))
def test_rows_that_are_not_among_others(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    before = started(tmp_path, chance)
    after = before
    for _ in range(chance.randrange(1, 5)):
        after = mutate(chance, after, before)
    old, new = content(view(before)), content(view(after))
    sides = [np.array([row[ADDRESS] for row in rows.values()], np.uint64) for rows in (old, new)]
    is_unlike = unlike_all(view(before), sides[0], view(after), sides[1])
    others = [{**row, ADDRESS: None} for row in new.values()]
    for row, is_told in zip(old.values(), is_unlike.tolist(), strict=True):
        assert not (is_told and {**row, ADDRESS: None} in others)


def test_one_column_tells_all_rows(tmp_path: Path) -> None:
    chance = random.Random(4)
    before = started(tmp_path, chance)
    ids = [f"{number:03}" for number in range(0, 30, 3)]
    rows = before.read().filter(pa.compute.is_in(before.read(["id"]).column("id"), pa.array(ids)))
    place = rows.column_names.index("stock")
    others = rows.set_column(place, "stock", pa.array([1_000] * len(ids)))
    after = present(stage_upsert(before, others))
    touched = touched_rows(view(before), view(after))
    assert touched is not None
    gone, written = touched.gone_places, touched.places
    assert len(gone) == len(written) == len(ids)
    assert unlike_all(view(before), gone, view(after), written).all()
    again = present(stage_upsert(before, rows))
    touched = touched_rows(view(before), view(again))
    assert touched is not None
    assert not unlike_all(view(before), gone, view(again), touched.places).any()


def test_places_do_not_tell_of_columns_stored_anew(tmp_path: Path) -> None:
    before = started(tmp_path, random.Random(1))
    after = present(drop_column(before, "name"))
    after = present(add_null_column(after, pa.field("name", pa.utf8())))
    same = {name: name for name in PART.properties}
    seen = RowView.of(after, part_type(), reshape(PART, part_type(), same))
    assert touched_rows(view(before), seen) is None
    assert touched_rows(view(before), view(before)) is not None
