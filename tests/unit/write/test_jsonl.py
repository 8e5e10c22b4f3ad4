"""Lines, comments, documents and places of JSONL."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.violations import Violations
from omnigraph_core.write.jsonl_blocks import iter_blocks, lines_of
from omnigraph_core.write.jsonl_document import iter_documents
from omnigraph_core.write.records import raw_records, read_batches
from omnigraph_core.write.sources import open_sources, places_of
from tests.support.cases import each
from tests.support.reading import CATALOG, read

if TYPE_CHECKING:
    from pathlib import Path


def bin_(label: str) -> bytes:
    return b'{"type":"Bin","data":{"label":"%s"}}' % label.encode()


def labels(outcome: object) -> list[tuple[int, str]]:
    return [(row["#line"], row["label"]) for row in outcome.rows()]  # type: ignore[attr-defined]


@each("newline", [b"\n", b"\r\n"])
@each("repeats", [1, 50])
def test_lines_are_counted_as_an_editor_does(newline: bytes, repeats: int) -> None:
    lines = [b"// note", b"", bin_("a"), b"  ", b"\t// note", b" " + bin_("b"), bin_("c") + b" "]
    outcome = read(b"\xef\xbb\xbf" + newline.join(lines * repeats))
    expected = [(7 * n + at, x) for n in range(repeats) for at, x in ((3, "a"), (6, "b"), (7, "c"))]
    assert labels(outcome) == expected
    assert outcome.problems == []


def test_empty_input() -> None:
    for data in (b"", b"\n\n", b"// note", b"\xef\xbb\xbf"):
        assert read(data).batches == ()


def test_a_bad_line_does_not_hide_the_others() -> None:
    data = b"\n".join([bin_("a"), b'{"type":"Bin"', bin_("b"), b"\xff", bin_("c"), b"]"])
    outcome = read(data)
    assert labels(outcome) == [(1, "a"), (3, "b"), (5, "c")]
    assert outcome.problems == [(2, "json"), (4, "json"), (6, "json")]
    assert "not UTF-8 at byte 1" in outcome.messages[1]


def test_a_mark_in_the_middle_is_an_error() -> None:
    assert read(bin_("a") + b"\n\xef\xbb\xbf" + bin_("b")).problems == [(2, "json")]


def test_very_long_lines() -> None:
    long = "x" * (40 << 20)
    data = b"\n".join([bin_("a"), bin_(long), bin_("c")])
    assert [row["label"] for row in read(data).rows()] == ["a", long, "c"]


@each("size", [1, 7, 64, 1 << 20])
def test_blocks_hold_whole_lines(size: int) -> None:
    data = b"".join(b"x" * (n % 9) + b"\n" for n in range(100)) + b"end"
    blocks = list(iter_blocks(io.BytesIO(data), size))
    assert b"".join(block.data for block in blocks) == data + b"\n"
    assert [n for block in blocks for n in lines_of(block).numbers] == list(range(1, 102))
    texts = [text for block in blocks for _, text in lines_of(block).each()]
    assert b"".join(texts) == data + b"\n"


def test_files_are_named(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_bytes(bin_("a") + b"\n{")
    packed.write_bytes(gzip.compress(bin_("b") + b"\n["))
    outcome = read([plain, packed])
    assert [row["#source"] for row in outcome.rows()] == [0, 1]
    assert [found.place() for found in outcome.listed] == [f"{plain}:2", f"{packed}:2"]


def test_damaged_gzip_is_reported() -> None:
    packed = gzip.compress(bin_("a") * 1000)
    outcome = read(packed[: len(packed) // 2])
    assert outcome.problems[-1] == (None, "record")
    assert "cannot be decompressed" in outcome.messages[-1]


def test_rows_of_a_type_keep_their_order() -> None:
    lines = []
    for n in range(300):
        lines.append(b'{"type":"Part","data":{"stock":%d%s}}' % (n, b".0" if n % 50 == 7 else b""))
        lines.append(bin_(str(n)))
    outcome = read(b"\n".join(lines))
    for batch in outcome.batches:
        at = batch.rows.column("#line").to_pylist()
        assert at == sorted(at)
    assert {batch.type.name for batch in outcome.batches} == {"Bin", "Part"}
    assert [row["stock"] for row in outcome.rows() if "stock" in row] == list(range(300))


def test_progress_counts_every_record() -> None:
    told: list[int] = []
    sources = open_sources(b"\n".join([bin_("a"), b"// note", b"{", *[bin_("b")] * 200]))
    batches = read_batches(sources, CATALOG, places_of(sources), Violations(), on_read=told.append)
    assert sum(batch.rows.num_rows for batch in batches) == 201
    assert sum(told) == 202


def pretty(*labels: str) -> str:
    records = [{"type": "Bin", "data": {"label": label}} for label in labels]
    return "\n".join(json.dumps(record, indent=2) for record in records)


def test_pretty_printed_records() -> None:
    outcome = read(("// note\n" + pretty("a", "b") + "\n// note\n" + pretty("c")).encode())
    assert labels(outcome) == [(2, "a"), (8, "b"), (15, "c")]
    assert outcome.problems == []


def array(*labels: str, indent: int | None = None) -> str:
    return json.dumps([{"type": "Bin", "data": {"label": x}} for x in labels], indent=indent)


def test_an_array_of_records() -> None:
    assert labels(read(array("a", "b", indent=2).encode())) == [(2, "a"), (8, "b")]
    outcome = read(array("a", "b", indent=None).encode())
    assert labels(outcome) == [(1, "a"), (2, "b")]
    assert outcome.problems == []


def test_records_of_a_line_are_told_apart() -> None:
    data = array("a", "b", "c", "d").replace('"b"', "5").replace('"d"', "6").encode()
    outcome = read(data)
    assert labels(outcome) == [(1, "a"), (3, "c")]
    assert outcome.problems == [(2, "value"), (4, "value")]
    assert {found.unit for found in outcome.listed} == {"record"}
    (source,) = open_sources(io.BytesIO(data))
    found = [(number, json.loads(text)["data"]) for number, text in raw_records(source, {2, 4})]
    assert found == [(2, {"label": 5}), (4, {"label": 6})]


@each(
    ("text", "loaded", "problem"),
    [
        ("[%s, %s", 2, "at line 1: it does not end"),
        ("[%s,\n%s,", 2, "at line 2: it does not end"),
        ("[%s %s]", 2, "expected `,` before the record"),
        ("[%s,, %s]", 2, "expected a record before `,`"),
        ("[,%s, %s]", 2, "expected a record before `,`"),
        ("[%s, %s,]", 2, "expected a record before `]`"),
    ],
)
def test_a_malformed_array_is_wrong_as_a_whole(text: str, loaded: int, problem: str) -> None:
    outcome = read((text % (bin_("a").decode(), bin_("b").decode())).encode())
    assert len(outcome.rows()) == loaded
    assert outcome.problems == [(None, "json")]
    assert problem in outcome.messages[0]


def test_arrays_and_objects_may_follow_each_other() -> None:
    outcome = read(b"[%s]\n[]\n[%s]\n%s" % (bin_("a"), bin_("b"), bin_("c")))
    assert labels(outcome) == [(1, "a"), (3, "b"), (4, "c")]
    assert outcome.problems == []


@pytest.mark.parametrize("indent", ["", "  ", "\t"])
def test_a_broken_record_of_an_array_does_not_hide_the_others(indent: str) -> None:
    records = [bin_(str(n)).decode() for n in range(1000)]
    records[1] = records[1].replace('"1"', '"1')
    data = "[\n" + ",\n".join(indent + record for record in records) + "\n]"
    outcome = read(data.encode())
    assert len(outcome.rows()) == 999
    assert outcome.problems == [(3, "json")]
    (source,) = open_sources(data.encode())
    assert list(raw_records(source, {3})) == [(3, records[1])]


@pytest.mark.parametrize("count", [1, 3])
def test_a_broken_last_record_is_no_more_than_that(count: int) -> None:
    data = array(*"abc"[:count], indent=2).replace(f'"{"abc"[count - 1]}"', "oops")
    outcome = read(data.encode())
    assert len(outcome.rows()) == count - 1
    assert outcome.problems == [(6 * count - 4, "json")]
    assert f"at line {6 * count - 1}, column 16" in outcome.messages[0]


def test_records_that_cannot_be_made_out_are_wrong_as_a_whole() -> None:
    data = array("a", "b", "c", "d").replace('"b"', '"b')
    outcome = read(data.encode())
    assert outcome.problems == [(None, "json"), (2, "json")]
    assert "no record can be made out behind the broken one at line 1" in outcome.messages[0]


def test_an_array_that_is_cut_off_in_a_record() -> None:
    outcome = read(array("a", "b", indent=2)[:-20].encode())
    assert labels(outcome) == [(2, "a")]
    assert outcome.problems == [(None, "json"), (8, "json")]


def test_documents_of_any_length() -> None:
    """Records, texts and numbers reach over the pieces that are read."""
    names = ["x" * (37 * n % 5000) for n in range(300)] + ["é" * 200_000, "y"]
    for indent in (None, 1):
        outcome = read(array(*names, indent=indent).encode())
        assert outcome.problems == []
        assert [row["label"] for row in outcome.rows()] == names
    outcome = read(b"[" + b"1234567," * 9000 + b"0]")
    assert {str(found.value) for found in outcome.listed} == {"1234567"}
    assert outcome.violations.counts == {"record": 9001}


def test_documents_are_read_as_they_are_asked_for() -> None:
    stream = io.BytesIO(array(*map(str, range(50_000)), indent=1).encode())
    documents = iter_documents(stream)
    assert next(documents).line == 2
    assert stream.tell() < 100_000


def test_very_many_broken_documents() -> None:
    """Takes minutes if each is looked for from the start."""
    broken = b'{"type":"Bin","data":{"label":"abcdefghijklmnopqrstuvwxyz}}\n'
    outcome = read(pretty("a").encode() + b"\n" + broken * 60_000, limit=1)
    assert labels(outcome) == [(1, "a")]
    assert outcome.violations.counts == {"json": 60_000}


def test_a_broken_first_record_does_not_hide_the_others() -> None:
    outcome = read("\n".join([pretty("a").replace(":", "", 1), pretty("b")]).encode())
    assert labels(outcome) == [(7, "b")]
    assert outcome.problems == [(1, "json")]


def test_a_broken_pretty_record_does_not_hide_the_others() -> None:
    broken = pretty("b").replace('"Bin"', "Bin")
    outcome = read("\n".join([pretty("a"), broken, pretty("c")]).encode())
    assert labels(outcome) == [(1, "a"), (13, "c")]
    assert outcome.problems == [(7, "json")]


def test_bytes_that_are_no_text_in_a_pretty_record() -> None:
    outcome = read(pretty("a", "b").encode().replace(b'"b"', b'"\xff"'))
    assert labels(outcome) == [(1, "a")]
    assert outcome.problems == [(7, "value")]


def test_two_records_on_the_first_line_are_no_document() -> None:
    outcome = read(bin_("a") + bin_("b") + b"\n" + bin_("c"))
    assert labels(outcome) == [(2, "c")]
    assert outcome.problems == [(1, "json")]


def test_raw_records() -> None:
    (source,) = open_sources(b"// note\r\n" + bin_("a") + b"\r\n{\xff\n" + bin_("c"))
    assert list(raw_records(source, {2, 3})) == [(2, bin_("a").decode()), (3, "{\ufffd")]


def test_raw_records_of_a_document() -> None:
    (source,) = open_sources(pretty("a", "b").encode())
    (found,) = raw_records(source, [7])
    assert found[0] == 7
    assert json.loads(found[1])["data"] == {"label": "b"}
