"""The fast path takes regular lines, all of them, and leaves the others."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph_core.violations import Violations
from omnigraph_core.write.intake import Intake
from omnigraph_core.write.jsonl_blocks import iter_blocks, lines_of
from omnigraph_core.write.jsonl_fast import FastReader
from omnigraph_core.write.sources import open_sources, places_of
from tests.support.cases import each
from tests.support.reading import CATALOG, PART

if TYPE_CHECKING:
    from omnigraph_core.write.batches import Batch

FULL: dict[str, Any] = {
    "id": "1",
    "name": "a",
    "kind": "nut",
    "is_open": True,
    "small": 1,
    "stock": 2**53 + 1,
    "few": 3,
    "big": 2**64 - 1,
    "weight": 0.1,
    "price": 0.1,
    "made": "2020-01-01",
    "seen": "2020-01-01T00:00:00.5Z",
    "shape": [1, 2, 3],
    "drawing": "base64:AQI=",
    "tags": ["a", "b"],
    "counts": [1],
    "sizes": [0.5],
    "days": ["2020-01-01"],
    "times": ["2020-01-01T00:00:00Z"],
    "flags": [True],
    "colour": "red",
    "rank": 1,
    "type": "x",
}


def split(lines: list[bytes]) -> tuple[list[Batch], list[int]]:
    """Batches of the fast path, and the lines it left."""
    sources = open_sources(b"\n".join(lines))
    reader = FastReader(Intake(0, sources[0], CATALOG, places_of(sources), Violations()))
    (block,) = iter_blocks(io.BytesIO(b"\n".join(lines)))
    batches = list(reader.read(lines_of(block)))
    return batches, [number for number, _ in reader.take_doubtful()]


def node(data: dict[str, Any], **options: Any) -> bytes:
    return json.dumps({"type": "Part", "data": data}, **options).encode()


def rows(batches: list[Batch]) -> int:
    return sum(batch.rows.num_rows for batch in batches)


@each(
    "line",
    [
        node(FULL),
        node(FULL, separators=(",", ":")),
        node(FULL, sort_keys=True),
        node({**FULL, "name": 'é"\\\n\u2028'}, ensure_ascii=False),
        node(dict.fromkeys(FULL)),
        node({}),
        b'{"type":"Part"}',
        b'{"type":"Part","data":null}\r',
        node({**FULL, "made": 5, "seen": 5, "days": [5], "times": [5]}),
        node({**FULL, "small": 1.0, "stock": 7.0}),
        node({**FULL, "seen": "2020-01-01 00:00:00.123456+02:00"}),
        node({**FULL, "seen": "2020-01-01"}),
        b'{"edge":"holds","from":"a","to":"b","data":{"since":"2020-01-01"}}',
        b'{"data":{},"edge":"Holds","from":"a","to":"b"}',
    ],
)
def test_regular_lines_are_all_taken(line: bytes) -> None:
    batches, left = split([line] * 200)
    assert (rows(batches), left) == (200, [])


def test_a_few_lines_are_left_to_the_exact_path() -> None:
    assert split([node(FULL)] * 5) == ([], [1, 2, 3, 4, 5])


@each(
    "line",
    [
        node({"name": "a"}) + node({"name": "b"}),
        b'{"type":"Part","data":{"price":NaN}}',
        b'{"type":"Part","data":{"weight":1e39}}',
        b'{"type":"Part","data":{"shape":[1,2]}}',
        b'{"type":"Part","data":{"shape":[1,2,null]}}',
        b'{"type":"Part","data":{"shape":[1,2,Infinity]}}',
        b'{"type":"Part","data":{"tags":[null]}}',
        b'{"type":"Part","data":{"name":"\xff"}}',
        b'{"type":"Part","data":{"name":"\\ud800"}}',
        b'{"type":"Part","data":{"made":"0000-01-01"}}',
        b'{"type":"Part","data":{"seen":"2020-01-01T10Z"}}',
        b'{"type":"Part","data":{"seen":"2020-01-01T10:00:00+02"}}',
        b'{"type":"Part","data":{"drawing":"x"}}',
        b'{"type":"Part","data":{"small":1.5}}',
        b'{"type":"Part","data":{"small":1e-400}}',
        b'{"type":"Part","data":{"counts":[1.0]}}',
        b'{"type":"Part","data":{"nmae":1}}',
        b'{"type":"Part","type":"Part"}',
        b'{"type":"Part"}\0}',
        b'{"type":"Prt"}',
        b'{"type":"Part","data":',
        b'{"edge":"Holds","from":"a"}',
        b'{"edge":"Holds","from":"a","to":null}',
        b'{"data":{},"type":null}',
        b"",
        b"// note",
    ],
)
def test_odd_lines_are_left_and_the_others_taken(line: bytes) -> None:
    lines = [node(FULL)] * 1000
    lines[500] = line
    batches, left = split(lines)
    assert 501 in left
    assert len(left) <= 100
    assert rows(batches) == 1000 - len(left)


def test_an_object_over_two_lines_is_not_taken() -> None:
    """Three rows on three lines, and yet not a row on each."""
    spread = [b'{"type":"Part","data":', b'{"type":"Part"}}', b'{"type":"Part"}{"type":"Part"}']
    batches, left = split(spread * 40)
    assert (batches, len(left)) == ([], 120)


def test_types_are_told_apart() -> None:
    lines = [node({"stock": 1}), b'{"type":"Bin","data":{"label":"a"}}', node({"stock": 2})] * 40
    lines += [b'{"data":{"label":"z"},"type":"Bin"}'] * 50
    batches, left = split(lines)
    assert left == []
    counts: dict[str, int] = {}
    for batch in batches:
        counts[batch.type.name] = counts.get(batch.type.name, 0) + batch.rows.num_rows
    assert counts == {"Part": 80, "Bin": 90}


def test_more_types_than_are_looked_for_one_by_one() -> None:
    lines = [b'{"type":"Unknown%d"}' % n for n in range(200)]
    lines += [b'{"type":"Bin","data":{"label":"a"}}'] * 100
    batches, left = split(lines)
    assert (rows(batches), left) == (100, list(range(1, 201)))


def test_defaults_tell_absent_from_null() -> None:
    lines = [
        b'{"type":"Part","data":{}}',
        b'{"type":"Part","data":{"colour":null,"rank": null,"type":null}}',
        b'{"type":"Part","data":{"name":"\\"colour\\":"}}',
        b'{"type":"Part","data":{"col\\u006fur":null}}',
        b'{"type":"Part","data":{"name":"colour","rank":5}}',
    ]
    batches, left = split(lines * 40)
    assert left == []
    table = pa.concat_tables([batch.rows for batch in batches]).slice(0, 5)
    assert table.column("colour").to_pylist() == ["grey", None, "grey", None, "grey"]
    assert table.column("rank").to_pylist() == [3, None, 3, 3, 5]
    assert table.column("type").to_pylist() == ["plain", None, "plain", "plain", "plain"]


def test_the_input_is_not_changed() -> None:
    data = b'{"type":"Part","data":{"name":"\\u00e9\\n\\"x"}}\n' * 100
    before = bytes(bytearray(data))
    sources = open_sources(data)
    reader = FastReader(Intake(0, sources[0], CATALOG, places_of(sources), Violations()))
    (block,) = iter_blocks(io.BytesIO(data))
    list(reader.read(lines_of(block)))
    assert block.data == before == data


def test_the_sample_names_every_property() -> None:
    assert set(FULL) - {"id"} == set(PART.properties)
