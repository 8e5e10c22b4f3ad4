"""Keys and unique groups: no two rows of a table after the write have the same.

Rows of the write are compared by codes, with the committed rows that share a value with them and
with each other. Committed rows that the write replaces or deletes do not count, nor do bad rows: a
value that one of them does not get is free for the next.
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
    if not part.known.any() or (part.delta.has_distinct_ids and not part.delta.is_strict):
        return
    ids = part.rows.column("id")
    known = TupleCodes([chosen(ids, part.known)])
    codes = np.full(part.rows.num_rows, NO_CODE)
    codes[part.known] = known.codes
    earlier = earlier_rows(codes, known.count)
    is_repeat = earlier >= 0
    _report_keys(
        part,
        np.flatnonzero(is_repeat),
        lambda row: f"was given before, at {part.findings.place(int(earlier[row]))}",
    )
    if part.delta.is_strict and not part.delta.is_overwrite:
        once = part.known & ~is_repeat
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
    """Report rows with the tuple of a committed row that stays, or of an earlier good row."""
    counted = part.counted
    if not part.delta.type.unique or not counted.any():
        return
    claims = [_claims(part, group, counted, view) for group in part.delta.type.unique]
    is_good = _good_rows(claims)
    if is_good.all():
        return
    for claim in claims:
        _report_claims(part, claim, is_good)
    part.doubted = chosen(part.rows.column("id"), ~is_good)


@dataclass(frozen=True, slots=True)
class _Claims:
    """The tuples that rows want in one unique group."""

    group: Sequence[str]
    codes: np.ndarray
    """For each row the code of its tuple, `NO_CODE` for one that wants none or does not count."""
    count: int
    held: np.ndarray
    """For each code the committed row that has it and stays, -1 where none does."""
    holders: pa.ChunkedArray
    """The ids of committed rows."""

    def of_rows(self, by_code: np.ndarray) -> np.ndarray:
        """What is known by code, for each row; -1 where it wants no tuple."""
        return np.where(self.codes >= 0, by_code[self.codes], -1) if self.count else self.codes


def _claims(part: Part, group: Sequence[str], counted: np.ndarray, view: CommittedView) -> _Claims:
    columns = [comparable(part.rows.column(name)) for name in group]
    tuples = TupleCodes(columns)
    codes = np.where(counted, tuples.codes, NO_CODE)
    wants = codes >= 0
    found = None
    sought = wants if part.delta.settled is None else wants & ~part.delta.settled
    if sought.any() and not part.delta.is_overwrite:
        given = tuples.values if sought.all() else [distinct(chosen(c, sought)) for c in columns]
        probe = _probe(given)
        found = view.rows(part.table_key, group[probe], given[probe], ("id", *group))
        found = part.staying(found)
    if found is None or not found.num_rows:
        held, holders = np.full(tuples.count, -1), pa.chunked_array([], pa.utf8())
    else:
        same = zip(group, columns, strict=True)
        committed = [comparable(found.column(name).cast(column.type)) for name, column in same]
        held, holders = first_rows(tuples.codes_of(committed), tuples.count), found.column("id")
    return _Claims(group, codes, tuples.count, held, holders)


def _good_rows(claims: Sequence[_Claims]) -> np.ndarray:
    """The rows that get all they want: first come, first served."""
    is_free = np.logical_and.reduce([claim.of_rows(claim.held) < 0 for claim in claims])
    wanted = [np.where(is_free, claim.codes, NO_CODE) for claim in claims]
    earlier = [
        earlier_rows(codes, claim.count) for codes, claim in zip(wanted, claims, strict=True)
    ]
    is_late = np.logical_or.reduce([rows >= 0 for rows in earlier])
    if any(is_late[rows[rows >= 0]].any() for rows in earlier):
        # The first with a tuple of one group is too late in another, so somebody else may have it.
        is_late = _late_rows(wanted)
    good: np.ndarray = is_free & ~is_late
    return good


def _late_rows(wanted: Sequence[np.ndarray]) -> np.ndarray:
    """Rows that want what an earlier row got, one after the other: each depends on those before."""
    is_late = np.zeros(len(wanted[0]), dtype=bool)
    contested = np.flatnonzero(np.logical_or.reduce([_is_shared(codes) for codes in wanted]))
    taken: list[set[int]] = [set() for _ in wanted]
    tuples = zip(*(codes[contested].tolist() for codes in wanted), strict=True)
    for row, codes in zip(contested.tolist(), tuples, strict=True):
        if any(code in others for code, others in zip(codes, taken, strict=True)):
            is_late[row] = True
            continue
        for code, others in zip(codes, taken, strict=True):
            if code != NO_CODE:
                others.add(code)
    return is_late


def _is_shared(codes: np.ndarray) -> np.ndarray:
    """Whether other rows have the code too; `NO_CODE` is shared with nobody."""
    # Shifted by one, so that it has a number as well.
    shared: np.ndarray = (np.bincount(codes + 1)[codes + 1] > 1) & (codes >= 0)
    return shared


def _probe(given: Sequence[pa.Array]) -> int:
    """The number of the column to look tuples up by.

    Texts and integers before others, of them the one with most values: it leaves fewest rows.
    """
    plain = [number for number, values in enumerate(given) if _is_plain(values.type)]
    return max(plain or range(len(given)), key=lambda number: len(given[number]))


def _is_plain(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_integer(type))


def _report_claims(part: Part, claim: _Claims, is_good: np.ndarray) -> None:
    """Report the rows that do not get their tuple of a group."""
    held = claim.of_rows(claim.held)
    owner = claim.of_rows(first_rows(np.where(is_good, claim.codes, NO_CODE), claim.count))
    is_late = (owner >= 0) & (owner < np.arange(len(owner)))
    where = _group_name(part.delta.type.name, claim.group)

    def describe(row: int) -> tuple[str, object]:
        values = [shown(part.rows.column(name)[row]) for name in claim.group]
        texts = ", ".join(repr(value) for value in values)
        if held[row] >= 0:
            problem = f"is held by {shortened(claim.holders[int(held[row])].as_py())!r}"
        else:
            problem = f"was given before, at {part.findings.place(int(owner[row]))}"
        if len(values) == 1:
            return f"@unique violation on {where}: {texts} {problem}", values[0]
        return f"@unique violation on {where}: ({texts}) {problem}", values

    wrong = np.flatnonzero(is_late | (held >= 0))
    part.findings.report(Rule.UNIQUE, wrong, describe, property=", ".join(claim.group))


def _group_name(type_name: str, columns: Sequence[str]) -> str:
    """
    >>> _group_name("Part", ("code",)), _group_name("Part", ("maker", "code"))
    ('Part.code', 'Part.(maker, code)')
    """
    listed = ", ".join(columns)
    return f"{type_name}.{listed}" if len(columns) == 1 else f"{type_name}.({listed})"
