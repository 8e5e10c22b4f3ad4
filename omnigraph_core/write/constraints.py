"""The rules a row must keep by itself: a batch comes in, which rows are good goes out.

Required values, finite numbers, list members, enums, ranges and checks, in the order of the
properties; every broken rule of every row is reported. Committed rows play no part.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.arrow import uri_column
from omnigraph_core.schema.catalog import EDGE_ENDS, EdgeType, NodeType
from omnigraph_core.types import INTEGER_RANGES, Scalar
from omnigraph_core.violations import Rule
from omnigraph_core.write.embed import lacks_vector
from omnigraph_core.write.findings import Findings, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.schema.ast import Check, Range
    from omnigraph_core.schema.catalog import PropertyDef
    from omnigraph_core.violations import Violations
    from omnigraph_core.write.batches import Batch, GraphType, Places


def check_rows(batch: Batch, places: Places, violations: Violations) -> pa.BooleanArray | None:
    """Report what is wrong with single rows; True for good ones, None when all are good.

    A required vector that is made of a text may be null where there is such a text, whether it is
    made right after this or later.
    """
    findings = Findings(batch.type.name, batch.rows, places, violations)
    if isinstance(batch.type, EdgeType):
        for end in EDGE_ENDS.values():
            _report_missing(batch.type, end, _nulls(batch.rows.column(end)), findings)
    for property in batch.type.properties.values():
        _check_property(batch, property, findings)
    if isinstance(batch.type, NodeType):
        for bounds in batch.type.ranges:
            _check_range(batch, bounds, findings)
        for check in batch.type.checks:
            _check_pattern(batch, check, findings)
    return None if findings.bad is None else pa.array(~findings.bad)


def _check_property(batch: Batch, property: PropertyDef, findings: Findings) -> None:
    column = batch.rows.column(property.name)
    if column.null_count and not property.type.is_nullable:
        _report_missing(batch.type, property.name, _lacking(batch, property), findings)
    if property.type.is_list or property.type.is_vector:
        _check_members(batch.type, property, column, findings)
    elif property.type.scalar.is_float:
        _check_finite(batch.type, property, column, findings)
    if property.type.enum_values is not None:
        _check_enum(batch.type, property, column, findings)


def _lacking(batch: Batch, property: PropertyDef) -> np.ndarray:
    """The rows without a value for a required property, and without what will give them one."""
    lacking = pc.is_null(batch.rows.column(property.name))
    if property.type.is_blob:
        lacking = pc.and_(lacking, pc.is_null(batch.rows.column(uri_column(property.name))))
    if isinstance(batch.type, NodeType) and property.name in batch.type.embeddings:
        embedding = batch.type.embeddings[property.name]
        will_be_made = lacks_vector(batch.rows, property.name, embedding)
        lacking = pc.and_(lacking, pc.invert(will_be_made))
        if not batch.type.properties[embedding.source].type.is_nullable:
            # A text that is missing is reported as such, and once is enough.
            lacking = pc.and_(lacking, pc.is_valid(batch.rows.column(embedding.source)))
    return _true(lacking)


def _report_missing(type: GraphType, name: str, wrong: np.ndarray, findings: Findings) -> None:
    message = f"missing required property `{name}` on {type.name}"
    if isinstance(type, NodeType) and name in type.embeddings:
        message += f", and no text in `{type.embeddings[name].source}` to make it from"
    findings.report(Rule.REQUIRED, wrong, lambda _: (message, None), property=name)


def _check_finite(
    type: GraphType, property: PropertyDef, column: pa.ChunkedArray, findings: Findings
) -> None:
    if isinstance(type, NodeType) and any(item.property == property.name for item in type.ranges):
        infinite = pc.is_inf(column)  # a NaN lies outside every range and is reported so
    else:
        infinite = pc.invert(pc.is_finite(column))

    def describe(row: int) -> tuple[str, object]:
        value = shown(column[row])
        return f"{type.name}.{property.name} is {value}, expected a finite number", value

    findings.report(Rule.VALUE, _true(infinite), describe, property=property.name)


def _check_members(
    type: GraphType, property: PropertyDef, column: pa.ChunkedArray, findings: Findings
) -> None:
    name = property.name
    members = pc.list_flatten(column)
    if members.null_count:
        _report_members(
            type, name, column, pc.is_null(members), lambda item: not item.is_valid, findings
        )
    if not pa.types.is_floating(members.type) or pc.all(pc.is_finite(members)).as_py() is not False:
        return
    _report_members(
        type, name, column, pc.invert(pc.is_finite(members)),
        lambda item: item.is_valid and not math.isfinite(item.as_py()), findings,
    )  # fmt: skip


def _report_members(
    type: GraphType,
    name: str,
    column: pa.ChunkedArray,
    wrong: pa.ChunkedArray,
    is_wrong: Callable[[pa.Scalar], bool],
    findings: Findings,
) -> None:
    def describe(row: int) -> tuple[str, object]:
        index, member = _first_member(column[row], is_wrong)
        value = shown(member)
        found = "null" if value is None else value
        expected = "a value" if value is None else "a finite number"
        return f"element {index} of {type.name}.{name} is {found}, expected {expected}", value

    findings.report(Rule.VALUE, _rows_of(column, wrong), describe, property=name)


def _first_member(
    members: pa.Scalar, is_wrong: Callable[[pa.Scalar], bool]
) -> tuple[int, pa.Scalar]:
    return next((index, item) for index, item in enumerate(members.values) if is_wrong(item))


def _check_enum(
    type: GraphType, property: PropertyDef, column: pa.ChunkedArray, findings: Findings
) -> None:
    values = property.type.enum_values or ()
    allowed = pa.array(values, pa.utf8())
    items = pc.list_flatten(column) if property.type.is_list else column
    wrong = pc.and_(pc.invert(pc.is_in(items, value_set=allowed)), pc.is_valid(items))

    def describe(row: int) -> tuple[str, object]:
        found = column[row]
        if property.type.is_list:
            found = _first_member(found, lambda item: item.is_valid and item.as_py() not in values)[
                1
            ]
        value = shown(found)
        where = f"{type.name}.{property.name}"
        return f"invalid enum value {value!r} on {where}, expected {' | '.join(values)}", value

    rows = _rows_of(column, wrong) if property.type.is_list else _true(wrong)
    findings.report(Rule.ENUM, rows, describe, property=property.name)


def _check_range(batch: Batch, bounds: Range, findings: Findings) -> None:
    name = str(bounds.property)
    column = batch.rows.column(name)
    scalar = batch.type.properties[name].type.scalar
    wrong = (_outside_integers if scalar.is_integer else _outside_floats)(column, bounds, scalar)
    low, high = ("" if side is None else side for side in (bounds.minimum, bounds.maximum))

    def describe(row: int) -> tuple[str, object]:
        value = shown(column[row])
        where = f"{batch.type.name}.{name}"
        return f"@range violation on {where}: {value} is not in {low}..{high}", value

    findings.report(Rule.RANGE, _true(wrong), describe, property=name)


def _outside_integers(column: pa.ChunkedArray, bounds: Range, scalar: Scalar) -> pa.ChunkedArray:
    """Compared as integers of the column's width: no digit is lost."""
    lowest, highest = INTEGER_RANGES[scalar]
    low = lowest if bounds.minimum is None else max(bounds.minimum, lowest)
    high = highest if bounds.maximum is None else min(bounds.maximum, highest)
    if low > highest or high < lowest:
        return pc.is_valid(column)
    below = pc.less(column, pa.scalar(math.ceil(low), column.type))
    return pc.or_(below, pc.greater(column, pa.scalar(math.floor(high), column.type)))


def _outside_floats(column: pa.ChunkedArray, bounds: Range, scalar: Scalar) -> pa.ChunkedArray:
    """NaN is outside; infinities are reported as such, so they are not here."""
    numbers = column.cast(pa.float64())
    is_single = scalar is Scalar.F32
    wrong = pc.is_nan(numbers)
    if bounds.minimum is not None:
        low = _as_float(bounds.minimum, math.inf, is_single=is_single)
        wrong = pc.or_(wrong, pc.less(numbers, low))
    if bounds.maximum is not None:
        high = _as_float(bounds.maximum, -math.inf, is_single=is_single)
        wrong = pc.or_(wrong, pc.greater(numbers, high))
    return pc.and_(wrong, pc.invert(pc.is_inf(numbers)))


def _as_float(bound: float, inward: float, *, is_single: bool) -> float:
    """The bound as a float64 that splits the column's numbers as the bound itself does."""
    if isinstance(bound, int):
        nearest = float(bound)
        is_outward = nearest < bound if inward > 0 else nearest > bound
        return math.nextafter(nearest, inward) if is_outward else nearest
    if not is_single:
        return bound
    # 0.1 in 32 bits is more than 0.1 in 64; whoever writes `..0.1` means to allow 0.1.
    with np.errstate(over="ignore"):
        return float(np.float32(bound))


def _check_pattern(batch: Batch, check: Check, findings: Findings) -> None:
    name = str(check.property)
    column = batch.rows.column(name)
    wrong = pc.invert(pc.match_substring_regex(column, check.pattern))

    def describe(row: int) -> tuple[str, object]:
        value = shown(column[row])
        where = f"{batch.type.name}.{name}"
        return f"@check violation on {where}: {value!r} does not match {check.pattern!r}", value

    findings.report(Rule.CHECK, _true(wrong), describe, property=name)


def _nulls(column: pa.ChunkedArray) -> np.ndarray:
    return _true(pc.is_null(column)) if column.null_count else np.empty(0, dtype=np.int64)


def _true(mask: pa.ChunkedArray) -> np.ndarray:
    """Where a mask is true; unknown is not."""
    found: np.ndarray = pc.indices_nonzero(pc.fill_null(mask, fill_value=False)).to_numpy()
    return found


def _rows_of(lists: pa.ChunkedArray, wrong: pa.ChunkedArray) -> np.ndarray:
    """The rows with a wrong member, each once."""
    parents = pc.list_parent_indices(lists)
    return np.unique(parents.filter(pc.fill_null(wrong, fill_value=False)).to_numpy())
