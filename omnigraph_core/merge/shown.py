"""Conflicts of rows as people and programs see them: addresses come in, values as JSON go out.

Only so many conflicts carry values; of the others the ids tell. Bytes are shown by their length and
digest, and no more of them is in memory than fits a portion.
"""

from __future__ import annotations

import hashlib
import json
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
    from collections.abc import Mapping

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.merge.rows import RowMerge

MAX_SHOWN: Final = 1000
"""Conflicts that carry the values of their rows."""

_Row = dict[str, object]


def describe_conflicts(merge: RowMerge, *, most_shown: int = MAX_SHOWN) -> list[MergeConflict]:
    """The conflicts of a table, by id; the first so many with their rows."""
    found = merge.conflicts
    shown = min(most_shown, len(found))
    base = _rows(merge.base, found.base[:shown])
    ours = _rows(merge.ours, found.ours[:shown])
    theirs = _rows(merge.theirs, found.theirs[:shown])
    properties = _properties(merge, shown)
    is_gone = (found.ours == MISSING).tolist()
    rows = zip(found.ids.to_pylist(), found.decisions.tolist(), strict=True)
    described = []
    for place, (id, code) in enumerate(rows):
        names, has_rows = properties[place], place < shown
        described.append(
            MergeConflict(
                table_key=merge.label,
                row_id=id,
                kind=CONFLICTS[code],
                message=_message(code, names, is_gone=is_gone[place]),
                properties=names or (),
                base=base[place] if has_rows else None,
                ours=ours[place] if has_rows else None,
                theirs=theirs[place] if has_rows else None,
                has_rows=has_rows,
            )
        )
    return described


def _rows(view: RowView | None, addresses: np.ndarray) -> list[_Row | None]:
    """The rows as JSON objects, None where there is none."""
    rows: list[_Row | None] = [None] * len(addresses)
    places = np.flatnonzero(addresses != MISSING)
    if view is None or not len(places):
        return rows
    texts = [
        text
        for portion in view.iter_taken(addresses[places])
        for text in plain_objects(_without_bytes(portion), is_js_safe=True).to_pylist()
    ]
    for place, text in zip(places.tolist(), texts, strict=True):
        rows[place] = json.loads(text)
    return rows


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
