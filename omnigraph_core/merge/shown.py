"""Conflicts of rows as people and programs see them: addresses come in, values as JSON go out.

Only so many conflicts carry values, and only so much of them; of the others the ids tell. Bytes are
shown by their length and digest, and no more of them is in memory than fits a portion.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.changes import MISSING
from omnigraph_core.exec.json_rows import plain_objects
from omnigraph_core.merge.decide import CONFLICTS, Decision
from omnigraph_core.merge.model import MergeConflict
from omnigraph_core.merge.properties import Triples, compare_properties, differing
from omnigraph_core.schema.arrow import uri_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.merge.row_merge import RowMerge

MAX_SHOWN: Final = 1000
"""Conflicts that carry the values of their rows."""
MAX_SHOWN_CHARACTERS: Final = 32 << 20
"""Of these as JSON, all together; the first is shown whatever its size."""

_Row = dict[str, object]


@dataclass(slots=True)
class Room:
    """What conflicts may still show of their rows, in all tables of a merge."""

    rows: int = MAX_SHOWN
    characters: int = MAX_SHOWN_CHARACTERS


def describe_conflicts(merge: RowMerge, room: Room) -> list[MergeConflict]:
    """The conflicts of a table, by id; the first, for which there is room, with their rows."""
    found = merge.conflicts
    rows_shown = _rows_shown(merge, room)
    shown = len(rows_shown)
    properties = _properties(merge, shown)
    is_gone = (found.ours == MISSING).tolist()
    rows = zip(found.ids.to_pylist(), found.decisions.tolist(), strict=True)
    described = []
    for place, (id, code) in enumerate(rows):
        names, has_rows = properties[place], place < shown
        base, ours, theirs = rows_shown[place] if has_rows else (None, None, None)
        described.append(
            MergeConflict(
                table_key=merge.label,
                row_id=id,
                kind=CONFLICTS[code],
                message=_message(code, names, is_gone=is_gone[place]),
                properties=names or (),
                base=base,
                ours=ours,
                theirs=theirs,
                has_rows=has_rows,
            )
        )
    return described


def _rows_shown(merge: RowMerge, room: Room) -> list[tuple[_Row | None, ...]]:
    """Base, ours and theirs of as many conflicts as there is room for, which they take up."""
    found = merge.conflicts
    sides = (
        _texts(view, addresses[: room.rows])
        for view, addresses in (
            (merge.base, found.base),
            (merge.ours, found.ours),
            (merge.theirs, found.theirs),
        )
    )
    shown: list[tuple[_Row | None, ...]] = []
    for texts in zip(*sides, strict=True):
        size = sum(len(text) for text in texts if text is not None)
        if size > room.characters and room.rows < MAX_SHOWN:
            room.rows = 0  # in order: a conflict without rows is not followed by one with them
            break
        room.rows -= 1
        room.characters -= size
        shown.append(tuple(None if text is None else json.loads(text) for text in texts))
    return shown


def _texts(view: RowView | None, addresses: np.ndarray) -> Iterator[str | None]:
    """The rows as JSON, read as they are asked for; None where there is none."""
    is_there = addresses != MISSING
    if view is None:
        yield from [None] * len(addresses)
        return
    texts = (
        text.as_py()
        for portion in view.iter_taken(addresses[is_there])
        for text in plain_objects(_without_bytes(portion), is_js_safe=True)
    )
    for has_row in is_there.tolist():
        yield next(texts) if has_row else None


def _without_bytes(rows: pa.Table) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if pa.types.is_large_binary(field.type):
            texts = pa.array([_digest(value) for value in rows.column(place)], pa.utf8())
            addresses = rows.column(uri_column(field.name))
            shown = pc.coalesce(addresses, pa.chunked_array([texts]))
            rows = rows.set_column(place, pa.field(field.name, pa.utf8()), shown)
    return rows


def _digest(value: pa.Scalar) -> str | None:
    if not value.is_valid:
        return None
    content = value.as_buffer()
    return f"{len(content)} bytes, sha256:{hashlib.sha256(content).hexdigest()}"


def _properties(merge: RowMerge, shown: int) -> list[tuple[str, ...] | None]:
    """What the sides disagree on; None where that is not known, or not asked."""
    found = merge.conflicts
    names: list[tuple[str, ...] | None] = [None] * len(found)
    updates = np.flatnonzero(found.decisions == Decision.DIVERGENT_UPDATE)
    if found.properties is not None:
        _name(names, updates, {name: mask[updates] for name, mask in found.properties.items()})
    elif merge.base is not None:
        updates = updates[updates < shown]
        rows = Triples(found.base[updates], found.ours[updates], found.theirs[updates])
        told = compare_properties(rows, merge.base, merge.ours, merge.theirs)
        _name(names, updates, told.in_conflict)
    inserts = np.flatnonzero(found.decisions[:shown] == Decision.DIVERGENT_INSERT)
    differ = differing(merge.ours, found.ours[inserts], merge.theirs, found.theirs[inserts])
    _name(names, inserts, differ)
    return names


def _name(
    names: list[tuple[str, ...] | None], places: np.ndarray, masks: Mapping[str, np.ndarray]
) -> None:
    """Enter what is marked in each of the rows at these places."""
    for number, place in enumerate(places.tolist()):
        names[place] = tuple(name for name, mask in masks.items() if mask[number])


def _message(decision: int, names: tuple[str, ...] | None, *, is_gone: bool) -> str:
    """
    Args:
        is_gone: the target has no such row.
    """
    listed = ", ".join(f"`{name}`" for name in names or ())
    if decision == Decision.DELETE_VS_UPDATE:
        if is_gone:
            return "the target deleted the row, the source changed it"
        return "the target changed the row, the source deleted it"
    if decision == Decision.DIVERGENT_INSERT:
        return f"both sides inserted the row, with different values{listed and f' of {listed}'}"
    if listed:
        return f"both sides changed {listed} of the row, to different values"
    if names is None:
        return "both sides changed the row, to different values"
    return "the sides changed different properties of the row; merging by property keeps both"
