"""Lines, comments, documents and places of JSONL."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.violations import Violations
from omnigraph_core.write.jsonl_blocks import iter_blocks, lines_of
from omnigraph_core.write.records import raw_records, read_batches
from omnigraph_core.write.sources import open_sources, places_of
from tests.support.reading import CATALOG, read

if TYPE_CHECKING:
    from pathlib import Path


def bin_(label: str) -> bytes:
    return b'{"type":"Bin","data":{"label":"%s"}}' % label.encode()


def labels(outcome: object) -> list[tuple[int, str]]:
    return [(row["#line"], row["label"]) for row in outcome.rows()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("repeats", [1, 50])
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


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
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


def test_left_out_lines_are_passed_over_in_silence() -> None:
    data = b"\n".join([bin_("a"), b"{", *[bin_("b")] * 100, bin_("z")])
    outcome = read(data, left_out={0: frozenset({2, *range(4, 103)})})
    assert labels(outcome) == [(1, "a"), (3, "b"), (103, "z")]
    assert outcome.problems == []


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


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_records(indent: int | None) -> None:
    records = [{"type": "Bin", "data": {"label": label}} for label in "ab"]
    outcome = read(json.dumps(records, indent=indent).encode())
    assert [label for _, label in labels(outcome)] == ["a", "b"]
    assert labels(outcome)[1][0] == (1 if indent is None else 8)


def test_an_array_that_does_not_end_is_reported() -> None:
    outcome = read(b"[" + bin_("a") + b",\n" + bin_("b"))
    assert labels(outcome) == [(1, "a"), (2, "b")]
    assert outcome.problems == [(2, "json")]
    assert "does not end" in outcome.messages[0]


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
