"""Keys and unique groups: no two rows of a table after the write have the same.

Rows of the write are compared with each other by codes, then with the committed rows that share a
value with them; committed rows that the write replaces or deletes do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.schema.catalog import NodeType
from omnigraph_core.violations import Rule
from omnigraph_core.write.findings import shortened, shown
from omnigraph_core.write.tuples import (
    NO_CODE,
    chosen,
    comparable,
    distinct,
    first_rows,
    tuple_codes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from omnigraph_core.write.delta import Part
    from omnigraph_core.write.view import CommittedView


def check_keys(part: Part, view: CommittedView) -> None:
    """Report ids given twice and, for a strict write, ids that are committed already."""
    if not part.known.any():
        return
    ids = part.rows.column("id")
    codes = np.full(part.rows.num_rows, NO_CODE)
    codes[part.known] = tuple_codes([chosen(ids, part.known)])
    first = first_rows(codes)
    part.repeats = first != np.arange(len(first))
    _report_keys(
        part,
        np.flatnonzero(part.repeats),
        lambda row: f"was given before, at {part.findings.place(int(first[row]))}",
    )
    if part.delta.is_strict and not part.delta.is_overwrite:
        once = part.known & ~part.repeats
        taken = view.present(part.table_key, chosen(ids, once)).to_numpy(zero_copy_only=False)
        _report_keys(part, np.flatnonzero(once)[taken], lambda _: "already exists")


def _report_keys(part: Part, wrong: np.ndarray, problem: Callable[[int], str]) -> None:
    key = part.delta.type.key if isinstance(part.delta.type, NodeType) else None
    where = _group_name(part.delta.type.name, key or ("id",))
    word = "key" if key else "id"

    def describe(row: int) -> tuple[str, object]:
        id = shown(part.rows.column("id")[row])
        return f"@unique violation on {where}: {word} {id!r} {problem(row)}", id

    part.findings.report(Rule.KEY, wrong, describe, property=", ".join(key or ("id",)))


def check_unique(part: Part, view: CommittedView) -> None:
    """Report rows with the tuple of an earlier row, or of a committed one that stays."""
    for group in part.delta.type.unique:
        _check_group(part, group, view)


def _check_group(part: Part, group: Sequence[str], view: CommittedView) -> None:
    columns = [comparable(part.rows.column(name)) for name in group]
    codes = tuple_codes(columns)
    codes[part.repeats] = NO_CODE
    first = first_rows(codes)
    is_later = first != np.arange(len(first))
    _report_group(
        part,
        group,
        np.flatnonzero(is_later),
        lambda row: f"was given before, at {part.findings.place(int(first[row]))}",
    )
    is_first = (codes >= 0) & ~is_later
    if is_first.any() and not part.delta.is_overwrite:
        given = [chosen(column, is_first) for column in columns]
        _check_committed(part, group, np.flatnonzero(is_first), given, view)


def _check_committed(
    part: Part,
    group: Sequence[str],
    rows: np.ndarray,
    given: Sequence[pa.ChunkedArray],
    view: CommittedView,
) -> None:
    probe, values = _probe(given)
    found = view.rows(part.table_key, group[probe], values, ("id", *group))
    found = part.staying(found)
    if not found.num_rows:
        return
    committed = [
        comparable(found.column(name).cast(column.type))
        for name, column in zip(group, given, strict=True)
    ]
    pairs = zip(committed, given, strict=True)
    codes = tuple_codes([pa.chunked_array([*old.chunks, *new.chunks]) for old, new in pairs])
    holders = first_rows(codes)[found.num_rows :]
    is_taken = holders < found.num_rows
    wrong, holders = rows[is_taken], holders[is_taken]

    def held_by(row: int) -> str:
        holder = int(holders[np.searchsorted(wrong, row)])
        return f"is held by {shortened(found.column('id')[holder].as_py())!r}"

    _report_group(part, group, wrong, held_by)


def _probe(columns: Sequence[pa.ChunkedArray]) -> tuple[int, pa.Array]:
    """The column to look the tuples up by, and its values.

    Texts and integers before others, of them the one with most values: it leaves fewest rows.
    """
    plain = [number for number, column in enumerate(columns) if _is_plain(column.type)]
    values = {number: distinct(columns[number]) for number in plain or range(len(columns))}
    best = max(values, key=lambda number: len(values[number]))
    return best, values[best]


def _is_plain(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_integer(type))


def _report_group(
    part: Part, group: Sequence[str], wrong: np.ndarray, problem: Callable[[int], str]
) -> None:
    where = _group_name(part.delta.type.name, group)

    def describe(row: int) -> tuple[str, object]:
        values = [shown(part.rows.column(name)[row]) for name in group]
        texts = ", ".join(repr(value) for value in values)
        if len(values) == 1:
            return f"@unique violation on {where}: {texts} {problem(row)}", values[0]
        return f"@unique violation on {where}: ({texts}) {problem(row)}", values

    part.findings.report(Rule.UNIQUE, wrong, describe, property=", ".join(group))


def _group_name(type_name: str, columns: Sequence[str]) -> str:
    """
    >>> _group_name("Part", ("code",)), _group_name("Part", ("maker", "code"))
    ('Part.code', 'Part.(maker, code)')
    """
    listed = ", ".join(columns)
    return f"{type_name}.{listed}" if len(columns) == 1 else f"{type_name}.({listed})"
