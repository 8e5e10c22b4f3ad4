"""Ids: a batch comes in, the same batch goes out with the id of every row that can have one.

A keyed node's id is the canonical text of its key; whatever else has none is given a fresh ULID.
Ids made here in one process ascend, so rows keep the order of the input when sorted by id.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.ids import key_id
from omnigraph_core.schema.catalog import NodeType
from omnigraph_core.values import ValueProblem, canonical_text
from omnigraph_core.violations import Rule, Violation
from omnigraph_core.write.batches import FRESH, LINE, SOURCE, Batch

if TYPE_CHECKING:
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import Places

_ALPHABET: Final = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
_ULID_LENGTH: Final = 26
_HALF_BITS: Final = 40
_HALF_MASK: Final = 2**_HALF_BITS - 1
_ESCAPED_IN_JSON: Final = r'["\\\x00-\x1f]'


def assign_ids(batch: Batch, places: Places, violations: Violations) -> Batch:
    """The batch with ids, and the working column that tells which of them are fresh.

    An id stays null where the key it would be made of is null or not finite; the rules for rows
    report those. A given id that contradicts the key is reported here; whether it is fresh is null.
    """
    given = batch.rows.column("id").combine_chunks()
    key = batch.type.key if isinstance(batch.type, NodeType) else None
    if key is None:
        fresh = pc.is_null(given)
        missing = pc.sum(fresh).as_py() or 0
        ids = pc.replace_with_mask(given, fresh, fresh_ids(missing)) if missing else given
    else:
        ids = key_ids(batch.rows, key)
        fresh = _contradicted(given, ids)
        _report_mismatches(batch, key, given, ids, places, violations)
    rows = batch.rows.set_column(batch.rows.schema.get_field_index("id"), "id", ids)
    return replace(batch, rows=rows.append_column(FRESH, fresh))


def key_ids(rows: pa.Table, key: tuple[str, ...]) -> pa.StringArray:
    """The id of each row from its key columns, null where one of them has no text."""
    texts = [canonical_texts(rows.column(name).combine_chunks()) for name in key]
    if len(texts) == 1:
        return texts[0]
    if any(pc.any(pc.match_substring_regex(text, _ESCAPED_IN_JSON)).as_py() for text in texts):
        tuples = zip(*(text.to_pylist() for text in texts), strict=True)
        return pa.array([None if None in item else key_id(item) for item in tuples], pa.utf8())
    quoted = [pc.binary_join_element_wise('"', text, '"', "") for text in texts]
    return pc.binary_join_element_wise("[", pc.binary_join_element_wise(*quoted, ","), "]", "")


def canonical_texts(column: pa.Array) -> pa.StringArray:
    """`values.canonical_text` of every value, at the width the column stores."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).cast(pa.utf8())
    if pa.types.is_date64(kind):
        return column.cast(pa.int64()).cast(pa.utf8())
    if pa.types.is_floating(kind):
        return _float_texts(column)
    return column.cast(pa.utf8())


def _float_texts(column: pa.Array) -> pa.StringArray:
    # Few keys are floats; Python prints the shortest text of each distinct one.
    encoded = column.dictionary_encode()
    distinct = encoded.dictionary.to_numpy(zero_copy_only=False)
    texts = pa.array([_float_text(value) for value in distinct], pa.utf8())
    return texts.take(encoded.indices)


def _float_text(value: np.floating) -> str | None:
    try:
        return canonical_text(float(str(value)))
    except ValueProblem:
        return None


def _contradicted(given: pa.Array, ids: pa.Array) -> pa.BooleanArray:
    """False, and null where a given id contradicts the key."""
    differs = pc.fill_null(pc.not_equal(given, ids), fill_value=False)
    return pc.if_else(differs, pa.scalar(None, pa.bool_()), pa.scalar(value=False))


def _report_mismatches(
    batch: Batch,
    key: tuple[str, ...],
    given: pa.Array,
    ids: pa.Array,
    places: Places,
    violations: Violations,
) -> None:
    wrong = pc.indices_nonzero(pc.fill_null(pc.not_equal(given, ids), fill_value=False))
    if not len(wrong):
        return
    shown = wrong[: violations.room]
    columns = [given, ids, batch.rows.column(SOURCE), batch.rows.column(LINE)]
    name = batch.type.name
    property = key[0] if len(key) == 1 else f"({', '.join(key)})"
    for id, expected, source, line in zip(
        *(column.take(shown).to_pylist() for column in columns), strict=True
    ):
        message = (
            f"id {id!r} of {name} does not agree with its key `{property}`, which is {expected!r}"
        )
        violation = Violation(Rule.ID_MISMATCH, message, name, property, expected, id)
        violations.add(places.at(violation, source, line))
    violations.count(Rule.ID_MISMATCH, len(wrong) - len(shown))


class _Ulids:
    """The newest ULID of this process: the next ones follow it, whatever the clock does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._moment = 0
        self._next = 0

    def reserve(self, count: int) -> tuple[int, int]:
        """Milliseconds and the first of `count` random parts in a row."""
        with self._lock:
            moment = time.time_ns() // 1_000_000
            if moment > self._moment:
                # One bit short of 80: counting up from here cannot overflow.
                self._moment, self._next = moment, secrets.randbits(2 * _HALF_BITS - 1)
            first = self._next
            self._next += count
            return self._moment, first


_ulids: Final = _Ulids()


def fresh_ids(count: int) -> pa.StringArray:
    """New ULIDs, ascending, also from one call to the next.

    >>> first, second = fresh_ids(2).to_pylist()
    >>> len(first), first < second
    (26, True)
    """
    moment, first = _ulids.reserve(count)
    low = (first & _HALF_MASK) + np.arange(count, dtype=np.int64)
    high = (first >> _HALF_BITS) + (low >> _HALF_BITS)
    letters = np.empty((count, _ULID_LENGTH), dtype=np.uint8)
    letters[:, :10] = _base32(np.array([moment], dtype=np.int64), 10)
    letters[:, 10:18] = _base32(high, 8)
    letters[:, 18:] = _base32(low & _HALF_MASK, 8)
    offsets = np.arange(count + 1, dtype=np.int32) * _ULID_LENGTH
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))


def _base32(numbers: np.ndarray, digits: int) -> np.ndarray:
    shifts = np.arange(digits - 1, -1, -1, dtype=np.int64) * 5
    letters: np.ndarray = _ALPHABET[(numbers[:, None] >> shifts) & 31]
    return letters
