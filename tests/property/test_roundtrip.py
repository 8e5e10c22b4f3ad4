"""Load and export undo each other: what was given comes out, and loads as the same bytes again."""

from __future__ import annotations

import base64
import datetime as dt
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.examples import examples

SCHEMA = """
node Thing {
  text: String?
  isOn: Bool?
  small: I32?
  large: I64?
  count: U32?
  total: U64?
  ratio: F32?
  value: F64?
  day: Date?
  moment: DateTime?
  data: Blob?
  place: Vector(3)?
  texts: [String]?
  flags: [Bool]?
  smalls: [I32]?
  larges: [I64]?
  counts: [U32]?
  totals: [U64]?
  ratios: [F32]?
  values: [F64]?
  days: [Date]?
  moments: [DateTime]?
}

node Pair {
  left: String
  right: I64
  at: DateTime
  @key(left, right, at)
}

edge Links: Thing -> Thing {
  weight: F64?
  note: String?
  data: Blob?
}
"""


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph without rows, to be copied: a graph may be moved, and copying is quicker."""
    path = tmp_path_factory.mktemp("empty") / "graph"
    Omnigraph.init(str(path), SCHEMA)
    return path


# Every Unicode text, control characters and what lies beyond 16 bits among it.
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["", " ", "\x00", "\x1f\x7f\x85", "a\nb\r\n", '"\\/', "\u2028\u2029", "😀\U0010ffff", "e\u0301"]
)
F32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
F64 = st.floats(allow_nan=False, allow_infinity=False)
DAYS = st.dates().map(dt.date.isoformat)
MOMENTS = st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds") + "Z")
BLOBS = st.binary(max_size=40).map(lambda data: f"base64:{base64.b64encode(data).decode()}")
ADDRESSES = st.sampled_from(["s3://bucket/a%20b", "https://example.org/?q=ü#top", "urn:isbn:1"])


def integers(bits: int, *, is_signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    return st.integers(low, high) | st.sampled_from([low, high])


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "texts": TEXTS,
    "flags": st.booleans(),
    "smalls": integers(32, is_signed=True),
    "larges": integers(64, is_signed=True),
    "counts": integers(32, is_signed=False),
    "totals": integers(64, is_signed=False),
    "ratios": F32,
    "values": F64,
    "days": DAYS,
    "moments": MOMENTS,
}
PROPERTIES: dict[str, st.SearchStrategy[Any]] = {
    "text": SCALARS["texts"],
    "isOn": SCALARS["flags"],
    "small": SCALARS["smalls"],
    "large": SCALARS["larges"],
    "count": SCALARS["counts"],
    "total": SCALARS["totals"],
    "ratio": SCALARS["ratios"],
    "value": SCALARS["values"],
    "day": SCALARS["days"],
    "moment": SCALARS["moments"],
    "data": BLOBS | ADDRESSES,
    "place": st.lists(F32, min_size=3, max_size=3),
    **{name: st.lists(member, max_size=3) for name, member in SCALARS.items()},
}
SINGLE_PRECISION = {"ratio", "place", "ratios"}


def optional(values: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of them, some null, some left out."""
    nullable = {name: st.none() | value for name, value in values.items()}
    return st.fixed_dictionaries({}, optional=nullable)


@st.composite
def records(draw: st.DrawFn) -> list[dict[str, Any]]:
    ids = draw(st.lists(TEXTS, min_size=1, max_size=5, unique=True))
    things = [{"type": "Thing", "data": {"id": id, **draw(optional(PROPERTIES))}} for id in ids]
    links = [
        {
            "edge": "Links",
            "from": draw(st.sampled_from(ids)),
            "to": draw(st.sampled_from(ids)),
            "data": {
                "id": id,
                **draw(optional({"weight": F64, "note": TEXTS, "data": BLOBS | ADDRESSES})),
            },
        }
        for id in draw(st.lists(TEXTS, max_size=3, unique=True))
    ]
    keys = st.tuples(TEXTS, SCALARS["larges"], MOMENTS)
    pairs = [
        {"type": "Pair", "data": {"left": left, "right": right, "at": at}}
        for left, right, at in draw(st.lists(keys, max_size=3, unique=True))
    ]
    return draw(st.permutations([*things, *links, *pairs]))


def copied(empty: Path, path: Path) -> Omnigraph:
    shutil.copytree(empty, path)
    return Omnigraph.open(str(path))


@settings(max_examples=examples(40))
@given(records(), st.booleans())
def test_export_undoes_load(empty: Path, given: list[dict[str, Any]], is_ascii: bool) -> None:
    text = "\n".join(json.dumps(record, ensure_ascii=is_ascii) for record in given)
    with tempfile.TemporaryDirectory() as directory:
        first, second, third = (copied(empty, Path(directory) / name) for name in "abc")
        first.load(text.encode())
        exported = b"".join(first.export_jsonl())
        assert_same(given, [json.loads(line) for line in exported.split(b"\n")[:-1]])

        second.load(exported, mode="overwrite")
        assert b"".join(second.export_jsonl()) == exported

        files = first.export_parquet(Path(directory) / "tables")
        third.load([file.path for file in files], mode="append")
        assert b"".join(third.export_jsonl()) == exported


def assert_same(given: list[dict[str, Any]], found: list[dict[str, Any]]) -> None:
    expected = {key(record): record for record in given}
    assert [key(record) for record in found] == sorted(expected)
    for record in found:
        wanted = expected[key(record)]
        assert (record.get("from"), record.get("to")) == (wanted.get("from"), wanted.get("to"))
        for name, value in record["data"].items():
            if name != "id" or record.get("type") != "Pair":
                is_single = name in SINGLE_PRECISION
                assert bits(value, is_single=is_single) == bits(
                    wanted["data"].get(name), is_single=is_single
                ), name


def key(record: dict[str, Any]) -> tuple[str, bytes]:
    """The order of an export: by table, then by id, as its bytes."""
    data = record["data"]
    if record.get("type") != "Pair":
        kind = "edge:Links" if "edge" in record else "node:Thing"
        return kind, data["id"].encode()
    moment = dt.datetime.fromisoformat(data["at"])
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    texts = [data["left"], str(data["right"]), str(since // dt.timedelta(milliseconds=1))]
    return "node:Pair", json.dumps(texts, separators=(",", ":"), ensure_ascii=False).encode()


def bits(value: Any, *, is_single: bool) -> object:
    """A value so that only the very same one is equal: no -0.0 is 0.0, no 1 is 1.0 or True."""
    if isinstance(value, list):
        return [bits(item, is_single=is_single) for item in value]
    if isinstance(value, float):
        return (np.float32(value) if is_single else np.float64(value)).tobytes()
    return type(value), value
