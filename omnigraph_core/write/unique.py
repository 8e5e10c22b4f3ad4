"""Keys and unique groups: no two rows of a table after the write have the same.

Rows of the write are compared with each other by codes, then with the committed rows that share a
value with them; committed rows that the write replaces or deletes do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.schema.catalog import NodeType
from omnigraph_core.violations import Rule
from omnigraph_core.write.findings import shortened, shown
from omnigraph_core.write.tuples import (
    NO_CODE,
    TupleCodes,
    chosen,
    comparable,
    distinct,
    earlier_rows,
    first_rows,
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
    known = TupleCodes([chosen(ids, part.known)])
    codes = np.full(part.rows.num_rows, NO_CODE)
    codes[part.known] = known.codes
    earlier = earlier_rows(codes, known.count)
    part.repeats = earlier >= 0
    _report_keys(
        part,
        np.flatnonzero(part.repeats),
        lambda row: f"was given before, at {part.findings.place(int(earlier[row]))}",
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
    tuples = TupleCodes(columns)
    codes = np.where(part.repeats, NO_CODE, tuples.codes)
    earlier = earlier_rows(codes, tuples.count)
    _report_group(
        part,
        group,
        np.flatnonzero(earlier >= 0),
        lambda row: f"was given before, at {part.findings.place(int(earlier[row]))}",
    )
    is_first = (codes >= 0) & (earlier < 0)
    if not is_first.any() or part.delta.is_overwrite:
        return
    # Only the first row with a tuple is compared with committed ones: the others are reported.
    given = tuples.values if is_first.all() else [distinct(chosen(c, is_first)) for c in columns]
    holders = _committed_holders(part, group, tuples, given, view)
    if holders is not None:
        held = np.where(is_first, holders.rows[codes], -1)
        _report_group(
            part,
            group,
            np.flatnonzero(held >= 0),
            lambda row: f"is held by {shortened(holders.ids[int(held[row])].as_py())!r}",
        )


@dataclass(frozen=True, slots=True)
class _Holders:
    """Committed rows by the code of the tuple they hold, -1 where nobody holds it."""

    rows: np.ndarray
    ids: pa.ChunkedArray


def _committed_holders(
    part: Part,
    group: Sequence[str],
    tuples: TupleCodes,
    given: Sequence[pa.Array],
    view: CommittedView,
) -> _Holders | None:
    """Who holds tuples of the write and stays; None when nobody does."""
    probe = _probe(given)
    found = view.rows(part.table_key, group[probe], given[probe], ("id", *group))
    found = part.staying(found)
    if not found.num_rows:
        return None
    committed = [
        comparable(found.column(name).cast(values.type))
        for name, values in zip(group, given, strict=True)
    ]
    return _Holders(first_rows(tuples.codes_of(committed), tuples.count), found.column("id"))


def _probe(given: Sequence[pa.Array]) -> int:
    """The number of the column to look tuples up by.

    Texts and integers before others, of them the one with most values: it leaves fewest rows.
    """
    plain = [number for number, values in enumerate(given) if _is_plain(values.type)]
    return max(plain or range(len(given)), key=lambda number: len(given[number]))


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
