"""Columns of CSV text as columns of properties: the text of a value is that of JSON.

Numbers, booleans, lists and vectors are written as in JSON, dates and blobs as in its strings, a
String as it is. Regular columns are read at once, the others value by value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.types import PropType, Scalar
from omnigraph_core.values import ValueProblem
from omnigraph_core.write.arrow_columns import Converted, convert_each
from omnigraph_core.write.columns import Doubt, blob_texts, from_json, json_type, to_times
from omnigraph_core.write.json_text import JsonProblem, parse_json
from omnigraph_core.write.jsonl_blocks import Lines, parse_lines

if TYPE_CHECKING:
    from collections.abc import Callable

_INTEGER: Final = r"^-?(0|[1-9][0-9]*)$"
_NUMBER: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_ARRAY: Final = r"^\[[^\n\x00]*\]$"
_WHOLE: Final = re.compile(r"-?\d+", re.ASCII)


def convert_texts(values: pa.Array, type: PropType) -> Converted:
    """The column of a property from texts."""
    try:
        if type.is_blob:
            return Converted(*blob_texts(values))
        return Converted(_reader(type)(values, type))
    except Doubt:
        return convert_each(values, type, _as_json)


def _reader(type: PropType) -> Callable[[pa.Array, PropType], pa.Array]:
    if type.is_list or type.is_vector:
        return _arrays
    if type.scalar in (Scalar.DATE, Scalar.DATETIME):
        return lambda values, type: to_times(values, type.scalar)
    if type.scalar is Scalar.BOOL:
        return _bools
    return _numbers if type.scalar.is_numeric else lambda values, _: values


def _bools(values: pa.Array, type: PropType) -> pa.Array:
    if not _all(pc.is_in(values, pa.array(["true", "false"])), values):
        raise Doubt
    return pc.equal(values, "true")


def _numbers(values: pa.Array, type: PropType) -> pa.Array:
    # Arrow alone would also take hexadecimal digits and leading zeros.
    pattern = _INTEGER if type.scalar.is_integer else _NUMBER
    if not _all(pc.match_substring_regex(values, pattern), values):
        raise Doubt
    try:
        return from_json(values.cast(arrow_type(type)), type)
    except pa.ArrowInvalid as problem:
        raise Doubt from problem


def _arrays(values: pa.Array, type: PropType) -> pa.Array:
    if not _all(pc.match_substring_regex(values, _ARRAY), values):
        raise Doubt
    texts = pc.binary_join_element_wise('{"v":', pc.fill_null(values, "null"), "}\n", "")
    lines = Lines(texts.cast(pa.large_binary()), np.arange(len(values)))
    schema = pa.schema([("v", json_type(type, is_number=False))])
    found = parse_lines(lines, schema) if len(values) else None
    if found is None:
        raise Doubt
    return from_json(found.column("v").combine_chunks(), type)


def _all(claims: pa.Array, values: pa.Array) -> bool:
    return bool(pc.all(claims.filter(values.is_valid()), min_count=0).as_py())


def _as_json(value: object, type: PropType) -> object:
    text = str(value)
    is_single = not (type.is_list or type.is_vector)
    is_time = is_single and type.scalar in (Scalar.DATE, Scalar.DATETIME)
    if is_single and (type.is_string or type.is_blob or (is_time and not _WHOLE.fullmatch(text))):
        return text
    try:
        return parse_json(text)
    except JsonProblem as problem:
        kind = type.nullable(is_nullable=False)
        raise ValueProblem(f"expected {kind}, found {text[:60]!r}") from problem
