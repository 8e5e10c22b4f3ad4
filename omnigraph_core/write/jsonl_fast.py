"""The fast path of JSONL: regular lines of one type are read as columns by Arrow.

Lines come in; batches go out, and the lines this path is not sure of are kept for the exact one. A
row from here equals what the exact path would give. Whatever Arrow takes that the exact path would
not (two objects on a line, NaN, invalid UTF-8, null in a list) is looked for before it counts.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.exec.scalars import arrow_array
from omnigraph_core.schema.arrow import uri_column
from omnigraph_core.schema.catalog import EDGE_ENDS, EdgeType
from omnigraph_core.types import Scalar
from omnigraph_core.write.batches import LINE, SOURCE, Batch, batch_schema
from omnigraph_core.write.columns import Doubt, blob_texts, from_json, json_type
from omnigraph_core.write.json_text import JsonProblem, parse_json
from omnigraph_core.write.jsonl_blocks import parse_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.schema.catalog import PropertyDef
    from omnigraph_core.write.batches import GraphType
    from omnigraph_core.write.intake import Intake
    from omnigraph_core.write.jsonl_blocks import Lines

_PREFIX: Final = re.compile(rb'\{[ \t\r]*"(type|edge)"[ \t\r]*:[ \t\r]*"([^"\\]*)"')
_PREFIX_PATTERN: Final = "^" + _PREFIX.pattern.decode()
_MAX_PREFIXES: Final = 64
"""More ways to begin a line than that are not looked for one by one."""
_RECORD_MEMBERS: Final = frozenset({"type", "edge", "from", "to", "data"})
_PIECES: Final = 16
"""Into so many parts lines are cut when some of them are not regular."""
_FEW_LINES: Final = 32
"""So many are read one by one just as fast."""
_PEEKED_LINES: Final = 16
_OPEN, _CLOSE, _RETURN = b"{}\r"


class FastReader:
    """Reads lines block by block; remembers how each type writes its values."""

    def __init__(self, intake: Intake, *, few_lines: int = _FEW_LINES) -> None:
        self._intake = intake
        self._few_lines = few_lines
        self._shapes: dict[str, frozenset[str]] = {}
        self._doubtful: list[Lines] = []

    def read(self, lines: Lines) -> Iterator[Batch]:
        """Batches of the regular lines, in no particular order."""
        if len(lines) <= self._few_lines:
            self._doubt(lines)
            return
        is_regular = regular_lines(lines)
        self._doubt(lines.where(~is_regular))
        for type, same in self._by_type(lines.where(is_regular)):
            if type is None:
                self._doubt(same)
            elif self._intake.is_wanted(type):
                yield from self._read_type(type, same)

    def take_doubtful(self) -> Iterator[tuple[int, bytes]]:
        """The lines since the last time that the exact path must read, in order."""
        taken, self._doubtful = self._doubtful, []
        found = [line for lines in taken for line in lines.each()]
        yield from sorted(found) if len(taken) > 1 else found

    def _doubt(self, lines: Lines) -> None:
        if len(lines):
            self._doubtful.append(lines)

    def _by_type(self, lines: Lines) -> Iterator[tuple[GraphType | None, Lines]]:
        for _ in range(_MAX_PREFIXES):
            if not len(lines):
                return
            found = _PREFIX.match(lines.texts[0].as_py())
            if found is None:
                is_usual = _mask(pc.match_substring_regex(lines.texts, _PREFIX_PATTERN))
                is_usual[0] = False
                yield from self._by_parsed_type(lines.where(~is_usual))
                lines = lines.where(is_usual)
                continue
            is_same = _mask(pc.starts_with(lines.texts, found.group()))
            kind, name = found.groups()
            yield self._type(kind.decode(), name.decode()), lines.where(is_same)
            lines = lines.where(~is_same)
        if len(lines):
            yield from self._by_parsed_type(lines)

    def _by_parsed_type(self, lines: Lines) -> Iterator[tuple[GraphType | None, Lines]]:
        """The same for lines that do not begin with their type: parsed for the type alone."""
        for part, named in self._in_pieces(lines, _parse_types):
            if named is None:
                yield None, part
                continue
            names = named.column("name").combine_chunks().dictionary_encode()
            types = [self._type(*name.split(":", 1)) for name in names.dictionary.to_pylist()]
            keys = [None if type is None else type.table_key for type in types]
            of_line = names.indices.to_numpy()
            for first in sorted({keys.index(key) for key in keys}):
                is_same = np.array([key == keys[first] for key in keys])[of_line]
                yield types[first], part.where(is_same)

    def _type(self, kind: str, name: str) -> GraphType | None:
        catalog = self._intake.catalog
        return catalog.try_edge(name) if kind == "edge" else catalog.nodes.get(name)

    def _read_type(self, type: GraphType, lines: Lines) -> Iterator[Batch]:
        for part, rows in self._in_pieces(lines, lambda part: self._try_rows(type, part)):
            if rows is None:
                self._doubt(part)
            else:
                yield Batch(type, rows)

    def _in_pieces(
        self, lines: Lines, attempt: Callable[[Lines], pa.Table | None]
    ) -> Iterator[tuple[Lines, pa.Table | None]]:
        """What an attempt makes of lines; where it fails, of fewer and fewer of them."""
        made = attempt(lines) if len(lines) > self._few_lines else None
        if made is not None or len(lines) <= max(self._few_lines, 1):
            yield lines, made
            return
        step = -(-len(lines) // _PIECES)
        for start in range(0, len(lines), step):
            yield from self._in_pieces(lines.slice(start, step), attempt)

    def _try_rows(self, type: GraphType, lines: Lines) -> pa.Table | None:
        shape = self._shapes.get(type.table_key)
        if shape is not None:
            rows = _try_shape(type, lines, shape, self._intake)
            if rows is not None:
                return rows
        seen = peek_shape(type, lines)
        if seen == shape:
            return None
        rows = _try_shape(type, lines, seen, self._intake)
        if rows is not None:
            self._shapes[type.table_key] = seen
        return rows


def regular_lines(lines: Lines) -> np.ndarray:
    """Which lines are UTF-8, begin with a brace and end with one.

    A line that does so and parses holds whole objects only: nothing of it can belong to an object
    of its neighbours. So as many rows as lines means one object on each.
    """
    count = len(lines)
    _, offsets, data = lines.texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[lines.texts.offset :][: count + 1]
    bytes_ = np.frombuffer(data, dtype=np.uint8)
    starts, ends = bounds[:-1], bounds[1:]
    last = bytes_[np.maximum(ends - 2, starts)]
    last = np.where(last == _RETURN, bytes_[np.maximum(ends - 3, starts)], last)
    is_regular: np.ndarray = (bytes_[starts] == _OPEN) & (last == _CLOSE)
    texts = pa.Array.from_buffers(
        pa.large_utf8(), count, [None, offsets, data], offset=lines.texts.offset
    )
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        is_regular &= np.array([_is_utf8(text) for text in lines.texts.to_pylist()], dtype=bool)
    if bytes_.min(initial=1) == 0:  # to Arrow the end of a text
        is_regular &= np.array([b"\0" not in text for text in lines.texts.to_pylist()], dtype=bool)
    return is_regular


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def peek_shape(type: GraphType, lines: Lines) -> frozenset[str]:
    """Properties whose values the first lines write as numbers where text is usual, or as floats
    where integers are."""
    found = set()
    for _, text in lines.slice(0, _PEEKED_LINES).each():
        for name, value in _data_of(text).items():
            property = type.properties.get(name)
            if property is None:
                continue
            is_time = property.type.scalar in (Scalar.DATE, Scalar.DATETIME)
            member = value[0] if is_time and isinstance(value, list) and value else value
            if isinstance(member, int if is_time else Decimal):
                found.add(name)
    return frozenset(found)


def _data_of(text: bytes) -> dict[str, object]:
    try:
        record = parse_json(text.decode())
    except JsonProblem:
        return {}
    data = record.get("data") if isinstance(record, dict) else None
    return data if isinstance(data, dict) else {}


def _parse_types(lines: Lines) -> pa.Table | None:
    """The names of the types of lines, as `type:Part` and `edge:Holds`."""
    schema = pa.schema([("type", pa.utf8()), ("edge", pa.utf8())])
    found = parse_lines(lines, schema, unexpected="ignore")
    if found is None:
        return None
    nodes = pc.binary_join_element_wise("type", found.column("type"), ":")
    edges = pc.binary_join_element_wise("edge", found.column("edge"), ":")
    names = pc.coalesce(nodes, edges)
    return pa.table({"name": pc.fill_null(names, "type:")})


def _try_shape(
    type: GraphType, lines: Lines, shape: frozenset[str], intake: Intake
) -> pa.Table | None:
    found = parse_lines(lines, _record_schema(type, shape), unexpected="error")
    if found is None:
        return None
    try:
        columns = dict(_columns(type, found, lines))
    except Doubt:
        return None
    columns[SOURCE], columns[LINE] = intake.place_columns(lines.numbers)
    schema = batch_schema(type)
    missing = {field.name: field.type for field in schema if field.name not in columns}
    columns |= {name: pa.nulls(len(lines), kind) for name, kind in missing.items()}
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _record_schema(type: GraphType, shape: frozenset[str]) -> pa.Schema:
    data = [pa.field("id", pa.utf8())]
    data += [
        pa.field(name, json_type(property.type, is_number=name in shape))
        for name, property in type.properties.items()
    ]
    members = ("edge", *EDGE_ENDS) if isinstance(type, EdgeType) else ("type",)
    fields = [pa.field(name, pa.utf8()) for name in members]
    return pa.schema([*fields, pa.field("data", pa.struct(data))])


def _columns(type: GraphType, found: pa.Table, lines: Lines) -> Iterator[tuple[str, pa.Array]]:
    if isinstance(type, EdgeType):
        for member, column in EDGE_ENDS.items():
            ends = found.column(member).combine_chunks()
            if ends.null_count:
                raise Doubt
            yield column, ends
    data = found.column("data").combine_chunks()
    fields = dict(zip(data.type.names, data.flatten(), strict=True))
    yield "id", fields["id"]
    for name, property in type.properties.items():
        if property.type.is_blob:
            yield from zip((name, uri_column(name)), blob_texts(fields[name]), strict=True)
        else:
            values = fields[name]
            if property.type.scalar.is_integer and pa.types.is_floating(values.type):
                _expect_whole_texts(name, values, lines)
            yield name, _with_default(from_json(values, property.type), property, lines)


def _with_default(values: pa.Array, property: PropertyDef, lines: Lines) -> pa.Array:
    """The values, with the default where the property was left out and not given as null."""
    if not property.has_default or not values.null_count:
        return values
    is_null = _mask(values.is_null())
    absent = is_null.copy()
    absent[is_null] = ~_mentions(lines.where(is_null), property.name)
    return pc.if_else(pa.array(absent), arrow_array([property.default], property.type)[0], values)


def _mentions(lines: Lines, name: str) -> np.ndarray:
    """Which lines have a member of that name in their data."""
    found = _contain(lines, f'"{name}"')
    if found.any():
        closer = pc.match_substring_regex(lines.where(found).texts, _member_pattern(name))
        found[found] = _mask(closer)
    is_unclear = ~found & _contain(lines, "\\u")
    if name in _RECORD_MEMBERS:
        is_unclear[:] = True
    for place in np.flatnonzero(is_unclear):
        found[place] = name in _data_of(lines.texts[int(place)].as_py())
    return found


def _contain(lines: Lines, text: str) -> np.ndarray:
    """Which lines contain a text; fastest if none does."""
    if text.encode() not in lines.joined().to_pybytes():
        return np.zeros(len(lines), dtype=bool)
    return _mask(pc.match_substring(lines.texts, text))


def _member_pattern(name: str) -> str:
    """Finds a member by its name, unless that is written with escapes.

    A quote that no backslash precedes begins or ends a text; one before a name begins it.
    """
    return rf'(?:^|[^\\])"{re.escape(name)}"[ \t\r]*:'


def _expect_whole_texts(name: str, values: pa.Array, lines: Lines) -> None:
    """Make sure that floats are written as integers with nothing but zeros behind the point.

    The numbers alone do not tell: 1e-400 reads as 0.
    """
    given = lines.where(_mask(values.is_valid()))
    pattern = _member_pattern(name) + r"[ \t\r]*-?\d{1,15}(?:\.0+)?[ \t\r]*[,}]"
    if name in _RECORD_MEMBERS or not _mask(pc.match_substring_regex(given.texts, pattern)).all():
        raise Doubt


def _mask(claims: pa.Array) -> np.ndarray:
    return np.array(claims.to_numpy(zero_copy_only=False), dtype=bool)
