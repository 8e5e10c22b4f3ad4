"""Laws of the readers: the fast ways give what reading value by value gives."""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.errors import RecordError
from omnigraph_core.types import PropType, Scalar
from omnigraph_core.values import ValueProblem, epoch_milliseconds, parse_datetime
from omnigraph_core.violations import Violations
from omnigraph_core.write.columns import Doubt, datetime_texts
from omnigraph_core.write.csv_blocks import fields_of, iter_row_blocks
from omnigraph_core.write.intake import Intake
from omnigraph_core.write.json_text import parse_json
from omnigraph_core.write.json_values import read_value
from omnigraph_core.write.jsonl_blocks import is_record, iter_blocks, lines_of
from omnigraph_core.write.jsonl_document import iter_documents
from omnigraph_core.write.jsonl_exact import ExactReader
from omnigraph_core.write.jsonl_fast import FastReader
from omnigraph_core.write.sources import open_sources, places_of
from tests.support.examples import examples
from tests.support.reading import CATALOG, PART, Outcome, read

if TYPE_CHECKING:
    from omnigraph_core.violations import Violation
    from omnigraph_core.write.batches import Batch

TIMES = [
    '"2020-01-31"', '"2020-01-31T10:11:12Z"', '"2020-01-31T10:11:12.5Z"', '"2020-01-31 10:11Z"',
    '"2020-01-31T10:11:12.123456789+02:00"', '"2020-01-31T10:11:12"', '"2020-01-31T10:11:12+0200"',
    '"0001-01-01T00:00:00Z"', '"0000-01-01"', '"2020-02-30"', '"2020-01-31T10Z"',
    '"9999-12-31T23:59:59-01:00"', '"2020-01-31t10:11:12z"', "0", "-5", "99999999999999", "1.0",
]  # fmt: skip
NUMBERS = [
    "0", "-0", "1", "-1", "7.0", "1e3", "2147483648", "9007199254740993", "9223372036854775807",
    "18446744073709551615", "18446744073709551616", "0.1", "-0.0", "1e-400", "1e39", "1e400",
    "3.4028235677973365e38", "3.4028235677973366e38", "1e-99999999999999999999",
    "1.00000005960464477540", "NaN", "Infinity", "01", "1.",
]  # fmt: skip
TEXTS = [
    '""', '"a"', '"é"', r'"\u00e9"', r'"\ud83d\ude00"', r'"\ud800"', r'"\u0000"', r'"\"name\":"',
    r'"\"colour\": null"', '"}"', '"{"', '"//"', '"\t"', '"nut"', '"a\\\\"', '"\x7f"', r'"\x"',
]  # fmt: skip
OTHERS = ["null", "true", "false", "{}", "[]", '{"a":1}', "[[1]]", "nul", ""]
BLOBS = ['"base64:AQI="', '"base64:AQI"', '"s3://a/b"', '"x"']
LISTS = ["[]", "[1,2,3]", "[1,2]", "[1,null,3]", "[0.1,1e39,0]", '["a"]', "[true]", "[1.0,2,3]",
         '["2020-01-31","2020-02-01"]', '["2020-01-31",5]', "[NaN,1,2]", "[1,2,3"]  # fmt: skip


def usual(type: PropType) -> list[str]:
    """Literals most of which fit a type."""
    if type.is_list or type.is_vector:
        return LISTS
    if type.scalar in (Scalar.DATE, Scalar.DATETIME):
        return TIMES
    if type.is_blob:
        return BLOBS
    if type.scalar is Scalar.BOOL:
        return ["true", "false"]
    return NUMBERS if type.scalar.is_numeric else TEXTS


def member(name: str) -> st.SearchStrategy[str]:
    fitting = st.sampled_from(usual(PART.properties[name].type))
    any_literal = st.sampled_from([*TIMES, *NUMBERS, *TEXTS, *OTHERS, *BLOBS, *LISTS])
    literal = st.one_of(fitting, fitting, fitting, st.just("null"), any_literal)
    key = st.sampled_from(
        [f'"{name}"', f'"{name}"', f'"{name}" ', f'"\\u{ord(name[0]):04x}{name[1:]}"']
    )
    return st.tuples(key, literal).map(lambda pair: f"{pair[0]}:{pair[1]}")


MEMBERS = st.lists(st.sampled_from(list(PART.properties)).flatmap(member), max_size=3)
EXTRA = st.sampled_from(['"id":"x"', '"id":1', '"nmae":1', '"id":null'])
DATA = st.one_of(
    MEMBERS.map(lambda items: "{" + ",".join(items) + "}"),
    st.tuples(MEMBERS, EXTRA).map(lambda pair: "{" + ",".join([*pair[0], pair[1]]) + "}"),
    st.sampled_from(["null", "{}", "[]", "1"]),
)
NODES = st.tuples(
    st.sampled_from(
        ['"type":"Part"', '"type": "Part"', '"type":"P\\u0061rt"', '"type":"Prt"', '"type":1']
    ),
    DATA,
    st.booleans(),
).map(lambda r: f'{{{r[0]},"data":{r[1]}}}' if r[2] else f'{{"data":{r[1]},{r[0]}}}')
EDGES = st.permutations(
    ['"edge":"holds"', '"from":"a"', '"to":"b"', '"data":{"since":"2020-01-31"}']
).flatmap(lambda parts: st.integers(1, 4).map(lambda n: "{" + ",".join(parts[:n]) + "}"))
ODD = st.sampled_from(
    [
        "", "  ", "// note", " {}", "[]", "7", "{", '{"type":"Part"} ', '{"type":"Part"}\r',
        '{"type":"Part"}{"type":"Part"}', '{"type":"Part","data":', '{"type":"Part"}}',
        '{"type":"Part"}\0}', '{"type":"Bin","data":{"label":"x"}}',
        '{"type":"Part","edge":"Holds"}', '{"type":"Part","type":"Part"}',
    ]
)  # fmt: skip
LINES = st.one_of(NODES, NODES, NODES, EDGES, ODD).map(str.encode) | st.just(b'{"type":"Part"\xff}')
GOOD = st.just(b'{"type":"Part","data":{"name":"good","stock":1}}')


def intake_of(data: bytes) -> Intake:
    sources = open_sources(data)
    return Intake(0, sources[0], CATALOG, places_of(sources), Violations(10_000))


def exact(data: bytes) -> Outcome:
    intake = intake_of(data)
    reader = ExactReader(intake)
    for block in iter_blocks(io.BytesIO(data)):
        for number, text in lines_of(block).each():
            if is_record(text):
                reader.add_line(number, text)
    return Outcome(tuple(reader.take()), intake.violations)


def fast(data: bytes, few_lines: int) -> Outcome:
    intake = intake_of(data)
    reader, slow = FastReader(intake, few_lines=few_lines), ExactReader(intake)
    batches: list[Batch] = []
    for block in iter_blocks(io.BytesIO(data)):
        batches += reader.read(lines_of(block))
        for number, text in reader.take_doubtful():
            if is_record(text):
                slow.add_line(number, text)
    return Outcome((*batches, *slow.take()), intake.violations)


def shown(outcome: Outcome) -> tuple[str, list[Violation]]:
    """Rows and problems in a form that tells -0.0 from 0.0, too."""
    return repr(outcome.rows()), list(outcome.listed)


@settings(max_examples=examples(400))
@given(st.lists(st.one_of(LINES, LINES, GOOD), max_size=12), st.sampled_from([0, 0, 1, 4]))
def test_fast_reading_equals_exact_reading(lines: list[bytes], few_lines: int) -> None:
    data = b"\n".join(lines)
    assert shown(fast(data, few_lines)) == shown(exact(data))


@settings(max_examples=examples(60))
@given(st.lists(LINES, min_size=1, max_size=4), st.integers(40, 120))
def test_odd_lines_among_many(odd: list[bytes], count: int) -> None:
    lines = [b'{"type":"Part","data":{"name":"good","stock":1}}'] * count
    for place, line in enumerate(odd):
        lines.insert((place * 31) % count, line)
    data = b"\n".join(lines)
    assert shown(fast(data, 8)) == shown(exact(data))


DIGITS = st.integers(0, 99).map(lambda n: f"{n:02d}")
DATETIME_TEXTS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["2020-01-31", "1969-12-31", "0001-01-01", "9999-12-31", "2020-02-30"]),
        st.sampled_from(["T", " ", "t", ""]),
        st.one_of(
            st.just(""),
            st.just("10:11:12"),
            st.builds(lambda a, b, c: f"{a}:{b}:{c}", DIGITS, DIGITS, DIGITS),
            st.builds(lambda a, b: f"{a}:{b}", DIGITS, DIGITS),
            DIGITS,
        ),
        st.sampled_from(["", ".5", ".123", ".1239", ".123456789", ".1234567890", "."]),
        st.sampled_from(
            ["", "Z", "z", "+02:00", "-0230", "+02", "+23:59", "+24:00", "-00:60", " Z"]
        ),
    ),
)


@settings(max_examples=examples(400))
@given(st.lists(DATETIME_TEXTS | st.none(), max_size=4))
def test_columns_of_datetimes_equal_single_ones(texts: list[str | None]) -> None:
    try:
        expected = [None if t is None else epoch_milliseconds(parse_datetime(t)) for t in texts]
    except ValueProblem:
        expected = []
    try:
        found = datetime_texts(pa.array(texts, pa.utf8())).view(pa.int64()).to_pylist()
    except Doubt:
        found = []
    assert found == expected


F32 = st.floats(-(2.0**127), 2.0**127, width=32)


@settings(max_examples=examples(500))
@given(F32, st.booleans(), st.integers(0, 30))
def test_single_floats_round_as_columns_do(number: float, is_above: bool, zeros: int) -> None:
    """Near the middle between two 32-bit numbers rounding twice would go wrong."""
    next_up = float(np.nextafter(np.float32(number), np.float32(math.inf)))
    middle = f"{(number + next_up) / 2:.60f}"
    text = middle + "0" * zeros + "1" if is_above else middle
    arrow = pa.array([text]).cast(pa.float32())[0].as_py()
    assert read_value(parse_json(text), PropType(Scalar.F32)) == arrow


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "name": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    "is_open": st.booleans(),
    "small": st.integers(-(2**31), 2**31 - 1),
    "stock": st.integers(-(2**63), 2**63 - 1),
    "big": st.integers(0, 2**64 - 1),
    "price": st.floats(allow_nan=False, allow_infinity=False),
    "weight": F32,
    "made": st.dates().map(str),
    "seen": st.datetimes().map(lambda at: at.isoformat(timespec="milliseconds") + "Z"),
    "shape": st.lists(F32, min_size=3, max_size=3),
    "tags": st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=3),
    "counts": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
    "colour": st.none() | st.just("red"),
}  # fmt: skip
RECORDS = st.lists(st.fixed_dictionaries({}, optional=VALUES), min_size=1, max_size=50)


@settings(max_examples=examples(60))
@given(RECORDS)
def test_rows_read_as_a_table_are_the_same(records: list[dict[str, Any]]) -> None:
    """What JSONL gave, given as Arrow data, gives the same rows."""
    lines = [json.dumps({"type": "Part", "data": data}) for data in records]
    first = read("\n".join(lines).encode())
    assert first.problems == []
    (batch,) = first.batches
    table = batch.rows.drop_columns(["#source", "#line"])
    again = read(table, type_name="Part")
    assert again.problems == []
    assert repr(again.rows()) == repr(first.rows())


ROW_TEXTS = st.text(st.sampled_from('a,"\n\r'), max_size=25) | st.text('a,"\n', max_size=25)
Row = tuple[int, tuple[str, ...], bool]


def rows_by_letter(text: str) -> tuple[list[Row], int | None]:
    """The rows of CSV, a letter at a time, and the line of a field that does not end."""
    rows: list[Row] = []
    fields, field, state, is_odd = list[str](), "", "start", False
    line = row_line = field_line = 1
    text += "" if not text or text[-1] in "\r\n" else "\n"
    for place, letter in enumerate(text):
        is_break = letter == "\n" or (letter == "\r" and text[place + 1 : place + 2] != "\n")
        line += is_break
        if state == "quoted":
            field, state = (field, "after") if letter == '"' else (field + letter, state)
        elif letter == '"' and state == "start":
            state, field_line = "quoted", line
        elif letter == '"' and state == "after":
            field, state = field + letter, "quoted"
        elif letter == "," or is_break:
            fields.append(field)
            field, state = "", "start"
            if is_break:
                rows.append((row_line, tuple(fields), is_odd))
                fields, is_odd, row_line = [], False, line
        elif letter != "\r" or text[place + 1] != "\n":
            is_odd = is_odd or state in ("after", "odd")
            field, state = field + letter, "odd" if state in ("after", "odd") else "open"
    return rows, field_line if state == "quoted" else None


@settings(max_examples=examples(600))
@given(ROW_TEXTS, st.sampled_from([1, 2, 7, 100]))
def test_blocks_of_csv_hold_the_rows_that_reading_by_letter_finds(text: str, size: int) -> None:
    found: list[Row] = []
    endless = None
    try:
        for block in iter_row_blocks(io.BytesIO(text.encode()), size):
            for row, line in enumerate(block.lines.tolist()):
                fields = tuple(field.decode() for field in fields_of(block.text(row)))
                found.append((line, fields, bool(block.odd[row])))
    except RecordError as problem:
        endless = int(problem.message.split("line ")[1].split()[0])
    assert (found, endless) == rows_by_letter(text)


BLANK = st.text(" \n\t", max_size=3)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(JSON_VALUES, BLANK, BLANK, st.sampled_from([None, 1]))), st.data())
def test_documents_are_the_values_of_an_array(parts: list[Any], data: st.DataObject) -> None:
    texts = [
        before + json.dumps(value, indent=indent) + after for value, before, after, indent in parts
    ]
    text = "[" + ",".join(texts) + data.draw(BLANK) + "]"
    found = list(iter_documents(io.BytesIO(text.encode())))
    assert [item.value for item in found] == json.loads(text)
    assert all(item.problem is None for item in found)
    assert [item.number for item in found] == list(range(1, len(texts) + 1))
    lines, place = [], 1
    for part in texts:
        start = place + len(part) - len(part.lstrip())
        lines.append(text.count("\n", 0, start) + 1)
        place += len(part) + 1
    assert [item.line for item in found] == lines
