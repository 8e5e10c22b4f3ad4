"""Rows as JSON: Arrow columns come in, one compact JSON text per row goes out.

The only place that says how a stored row looks as JSON. Every text is valid, and the loader reads
the same values back from it: integers keep all digits, floats are the shortest text that gives the
same bits. Columns are written by Arrow kernels; only blobs are written value by value.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import DataError, InvariantBroken
from omnigraph_core.schema.arrow import is_companion, uri_column
from omnigraph_core.schema.catalog import EDGE_ENDS, EdgeType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from omnigraph_core.schema.catalog import NodeType

# Offsets of 64 bits: one row with a large blob may be longer than 32 bits can say.
_TEXT: Final = pa.large_utf8()

_MUST_ESCAPE: Final = np.array([byte < 0x20 or chr(byte) in '"\\' for byte in range(256)])

_DAYS: Final = pa.scalar(-719_162, pa.int32()), pa.scalar(2_932_896, pa.int32())
"""0001-01-01 and 9999-12-31: what four digits of a year can say."""
_SAFE: Final = 2**53 - 1
"""Up to here, either way, JavaScript tells integers apart."""
_MILLISECONDS: Final = pa.scalar(-62_135_596_800_000), pa.scalar(253_402_300_799_999)


def row_objects(type: NodeType | EdgeType, rows: pa.Table) -> pa.LargeStringArray:
    """Every row as the record that loads it, with its properties in declaration order.

    Only the columns of the type are looked at. A float that is not finite becomes the text `NaN`,
    `Infinity` or `-Infinity`.

    Raises:
        DataError: a date is not within the years 1 to 9999.
    """
    return _objects(rows, lambda batch: _record_parts(type, batch, end=""))


def row_lines(type: NodeType | EdgeType, rows: pa.Table) -> bytes:
    """The same as lines in UTF-8, each with its end.

    Raises:
        DataError: a date is not within the years 1 to 9999.
    """
    lines = _objects(rows, lambda batch: _record_parts(type, batch, end="\n"))
    return bytes(_content(lines))


def plain_objects(
    rows: pa.Table, *, is_js_safe: bool = False, end: str = ""
) -> pa.LargeStringArray:
    """Every row as one flat object of its columns; companion columns are not shown.

    Args:
        is_js_safe: integers that JavaScript cannot hold become texts.
        end: what each text ends with.

    Raises:
        DataError: a date is not within the years 1 to 9999.
    """
    names = [name for name in rows.column_names if not is_companion(name)]

    def parts_of(batch: pa.RecordBatch) -> list[str | pa.Array]:
        return ["{", *_members(batch, names, is_js_safe=is_js_safe), "}" + end]

    return _objects(rows, parts_of)


def content(texts: pa.LargeStringArray) -> bytes:
    """All texts one after another, in UTF-8."""
    return bytes(_content(texts))


def is_printable(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether JSON has a form for every value: no NaN, no infinity, years of four digits.

    >>> is_printable(pa.array([1.5, None])), is_printable(pa.array([[float("nan")]]))
    (True, False)
    """
    kind = column.type
    if _is_list(kind):
        return is_printable(pc.list_flatten(column))
    if pa.types.is_floating(kind):
        return bool(pc.all(pc.is_finite(column), min_count=0).as_py())
    if pa.types.is_date32(kind):
        return _is_between(column.cast(pa.int32()), _DAYS)
    if pa.types.is_date64(kind):
        return _is_between(column.cast(pa.int64()), _MILLISECONDS)
    return True


def _objects(
    rows: pa.Table, parts_of: Callable[[pa.RecordBatch], list[str | pa.Array]]
) -> pa.LargeStringArray:
    texts = [_joined(parts_of(batch)) for batch in rows.to_batches()]
    return pa.concat_arrays(texts) if texts else pa.array([], _TEXT)


def _joined(parts: list[str | pa.Array]) -> pa.Array:
    """Per row, all parts one after the other; a null is the word for it."""
    values = [pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(
        *values, pa.scalar("", _TEXT), null_handling="replace", null_replacement="null"
    )


def _record_parts(
    type: NodeType | EdgeType, batch: pa.RecordBatch, *, end: str
) -> list[str | pa.Array]:
    kind = "edge" if isinstance(type, EdgeType) else "type"
    parts: list[str | pa.Array] = [f'{{"{kind}":{json.dumps(type.name)}']
    if isinstance(type, EdgeType):
        for written, column in EDGE_ENDS.items():
            parts += [f',"{written}":', _column(batch, column)]
    names = ["id", *type.properties]
    return [*parts, ',"data":{', *_members(batch, names), "}}" + end]


def _members(
    batch: pa.RecordBatch, names: Iterable[str], *, is_js_safe: bool = False
) -> list[str | pa.Array]:
    parts: list[str | pa.Array] = []
    for name in names:
        comma = "," if parts else ""
        texts = _column(batch, name, is_js_safe=is_js_safe)
        parts += [f"{comma}{json.dumps(name)}:", texts]
    return parts


def _column(batch: pa.RecordBatch, name: str, *, is_js_safe: bool = False) -> pa.Array:
    column = batch.column(name)
    if _is_temporal(column.type) and not is_printable(column):
        raise DataError(f"`{name}` holds a date outside the years 1 to 9999", property=name)
    texts = _texts(column, is_js_safe=is_js_safe)
    addresses = uri_column(name)
    if pa.types.is_large_binary(column.type) and addresses in batch.schema.names:
        return pc.coalesce(texts, _quoted(batch.column(addresses)))
    return texts


def _is_temporal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind.value_type if _is_list(kind) else kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_between(numbers: pa.Array, bounds: tuple[pa.Scalar, pa.Scalar]) -> bool:
    low, high = bounds
    fits = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return bool(pc.all(fits, min_count=0).as_py())


def _texts(column: pa.Array, *, is_js_safe: bool = False) -> pa.Array:
    """Every value as JSON text; nulls stay null."""
    kind = column.type
    if pa.types.is_string(kind):
        return _quoted(column)
    if pa.types.is_integer(kind) and is_js_safe:
        return _safe_integers(column)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return column.cast(_TEXT)
    if pa.types.is_floating(kind):
        return _floats(column)
    if _is_list(kind):
        return _lists(column, is_js_safe=is_js_safe)
    if pa.types.is_struct(kind):
        return _structs(column, is_js_safe=is_js_safe)
    if pa.types.is_date32(kind):
        return _in_quotes(column.cast(_TEXT))
    if pa.types.is_date64(kind):
        return _moments(column)
    if pa.types.is_large_binary(kind):
        return _blobs(column)
    raise InvariantBroken(f"every type of column has a JSON form, {kind} has none")


def _safe_integers(column: pa.Array) -> pa.Array:
    text = column.cast(_TEXT)
    if column.type.bit_width < 64:
        return text
    is_far = pc.greater(column, pa.scalar(_SAFE, column.type))
    if pa.types.is_signed_integer(column.type):
        is_far = pc.or_(is_far, pc.less(column, pa.scalar(-_SAFE, column.type)))
    return pc.if_else(is_far, _in_quotes(text), text)


def _structs(column: pa.StructArray, *, is_js_safe: bool) -> pa.Array:
    fields = pa.RecordBatch.from_arrays(column.flatten(), schema=pa.schema(list(column.type)))
    parts = _members(fields, column.type.names, is_js_safe=is_js_safe)
    texts = _joined(["{", *parts, "}"])
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, _TEXT))


def _quoted(column: pa.Array) -> pa.Array:
    text = column.cast(_TEXT)
    content = np.frombuffer(_content(text), np.uint8)
    found = np.flatnonzero(np.bincount(content[_MUST_ESCAPE[content]]))
    # The backslash first: what stands for the others has one.
    for character in sorted(map(chr, found.tolist()), key=lambda item: item != "\\"):
        text = pc.replace_substring(text, character, json.dumps(character)[1:-1])
    return _in_quotes(text)


def _content(text: pa.Array) -> memoryview:
    """The bytes of all values, one after the other."""
    _, offsets, data = text.buffers()
    if data is None or not len(text):
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int64)
    return memoryview(data)[int(ends[text.offset]) : int(ends[text.offset + len(text)])]


def _in_quotes(text: pa.Array) -> pa.Array:
    return _around('"', text, '"')


def _around(before: str, text: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(
        pa.scalar(before, _TEXT), text, pa.scalar(after, _TEXT), pa.scalar("", _TEXT)
    )


def _floats(column: pa.Array) -> pa.Array:
    text = column.cast(_TEXT)
    if pa.types.is_float32(column.type):
        text = _exact(column, text)
    if not is_printable(column):
        text = pc.if_else(pc.is_finite(column), text, _not_finite(column))
    whole = pc.equal(column, pc.trunc(column))
    if not pc.any(whole).as_py():
        return text
    # A whole number without a point would read back as an integer, and minus zero as zero.
    bare = pc.and_(whole, pc.invert(pc.match_substring_regex(text, '[.e"]')))
    return pc.if_else(bare, _around("", text, ".0"), text)


def _not_finite(column: pa.Array) -> pa.Array:
    infinite = pc.if_else(pc.greater(column, 0), '"Infinity"', '"-Infinity"')
    return pc.if_else(pc.is_nan(column), '"NaN"', infinite).cast(_TEXT)


def _exact(column: pa.Array, text: pa.Array) -> pa.Array:
    """The same texts, longer where a reader that goes by way of 64 bits would be one off."""
    again = text.cast(pa.float64()).cast(pa.float32(), safe=False)
    same = pc.equal(again, column)
    if pc.all(same, min_count=0).as_py():
        return text
    return pc.if_else(same, text, column.cast(pa.float64()).cast(_TEXT))


def _lists(column: pa.Array, *, is_js_safe: bool) -> pa.Array:
    members = _texts(column.flatten(), is_js_safe=is_js_safe).fill_null("null")
    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), members)
    inner = pc.binary_join(lists, pa.scalar(",", _TEXT))
    return pc.if_else(column.is_valid(), _around("[", inner, "]"), pa.scalar(None, _TEXT))


def _moments(column: pa.Array) -> pa.Array:
    text = column.view(pa.timestamp("ms")).cast(_TEXT)
    return _around('"', pc.binary_replace_slice(text, 10, 11, "T"), 'Z"')


def _blobs(column: pa.Array) -> pa.Array:
    texts = [_blob(value) for value in column]
    return pa.array(texts, _TEXT)


def _blob(value: pa.Scalar) -> str | None:
    if not value.is_valid:
        return None
    return f'"base64:{base64.b64encode(value.as_buffer()).decode()}"'
