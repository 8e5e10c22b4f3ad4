"""The rows of a read in the five formats of the command line."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.cli import formats
from omnigraph_core.cli.formats import Answer, Layout, display_width, iter_output
from omnigraph_core.exec.result import QueryResult
from omnigraph_core.query.descriptor import ResultColumn, ValueKind
from tests.support.cases import each
from tests.unit.manifest.samples import image, snapshot

if TYPE_CHECKING:
    from omnigraph_core.config.model import Form

SNAPSHOT = snapshot(image())
COMMIT = SNAPSHOT.commit.graph_commit_id


def shown(
    rows: dict[str, list[Any]],
    form: Form = "table",
    *,
    is_head: bool = True,
    max_width: int = 80,
    is_wrapping: bool = False,
) -> str:
    columns = tuple(ResultColumn(name, ValueKind.STRING, is_nullable=True) for name in rows)
    result = QueryResult("stock", columns, pa.table(rows), SNAPSHOT)
    layout = Layout(max_width, is_wrapping=is_wrapping)
    return b"".join(iter_output(Answer(result, is_head=is_head), form, layout)).decode()


ROWS: dict[str, list[Any]] = {
    "p.sku": ["M8", "M10"],
    "note": ['a, "b"\nc', None],
    "n": [7, 2**63 - 1],
    "price": [0.5, None],
    "is_new": [True, False],
    "tags": [["x", "ü"], []],
}


def test_table() -> None:
    assert shown(ROWS) == (
        "2 rows from branch main via stock\n"
        "p.sku | note      | n                   | price | is_new | tags     \n"
        "------+-----------+---------------------+-------+--------+----------\n"
        'M8    | a, "b"\\nc | 7                   | 0.5   | true   | ["x","ü"]\n'
        "M10   | null      | 9223372036854775807 | null  | false  | []       \n"
    )


def test_key_values() -> None:
    assert shown(ROWS, "kv", is_head=False) == (
        f"2 rows from snapshot {COMMIT} via stock\n"
        'row 1\np.sku: M8\nnote: a, "b"\\nc\nn: 7\nprice: 0.5\nis_new: true\ntags: ["x","ü"]\n'
        "\n"
        "row 2\np.sku: M10\nnote: null\nn: 9223372036854775807\nprice: null\nis_new: false\n"
        "tags: []\n"
    )


def test_csv() -> None:
    text = shown(ROWS, "csv")
    assert text == (
        "p.sku,note,n,price,is_new,tags\n"
        'M8,"a, ""b""\nc",7,0.5,true,"[""x"",""ü""]"\n'
        "M10,null,9223372036854775807,null,false,[]\n"
    )
    assert list(csv.reader(io.StringIO(text)))[1][1] == ROWS["note"][0]


def test_json() -> None:
    text = shown(ROWS, "json")
    assert json.loads(text) == {
        "query_name": "stock",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
        "columns": list(ROWS),
        "rows": [dict(zip(ROWS, cells, strict=True)) for cells in zip(*ROWS.values(), strict=True)],
    }
    assert text.startswith('{\n  "query_name": "stock",\n')
    assert text.endswith("}\n")
    assert '"ü"' in text


def test_jsonl() -> None:
    first, *lines = shown(ROWS, "jsonl", is_head=False).splitlines()
    assert json.loads(first) == {
        "kind": "metadata",
        "query_name": "stock",
        "target": {"branch": None, "snapshot": COMMIT},
        "row_count": 2,
    }
    assert lines[1] == (
        '{"p.sku":"M10","note":null,"n":9223372036854775807,"price":null,"is_new":false,"tags":[]}'
    )


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("table", "0 rows from branch main via stock\nsku | n\n----+--\n"),
        ("kv", "0 rows from branch main via stock\n(no rows)\n"),
        ("csv", "sku,n\n"),
    ],
)
def test_no_rows(form: Form, expected: str) -> None:
    assert shown({"sku": [], "n": []}, form) == expected


def test_long_cells_are_cut() -> None:
    text = shown({"a": ["x" * 9, "x" * 10, "x" * 11]}, max_width=10)
    assert text.splitlines()[3:] == ["xxxxxxxxx ", "x" * 10, "x" * 9 + "…"]


def test_long_cells_are_wrapped() -> None:
    text = shown({"a": ["abcdefghij", "k"], "b": ["1", "2"]}, max_width=4, is_wrapping=True)
    assert text.splitlines()[3:] == ["abcd | 1", "efgh |  ", "ij   |  ", "k    | 2"]


@each(
    ("max_width", "header"),
    [(3, "a_long_…"), (9, "a_long_h…"), (14, "a_long_heading"), (20, "a_long_heading" + " " * 6)],
)
def test_a_header_may_be_wider_than_cells_but_not_without_bounds(
    max_width: int, header: str
) -> None:
    text = shown({"a_long_heading": ["x" * 30]}, max_width=max_width)
    assert text.splitlines()[1] == header
    assert {len(line) for line in text.splitlines()[1:]} == {len(header)}


def test_wide_and_combining_characters_keep_columns_straight() -> None:
    text = shown({"a": ["螺栓", "e\u0301", "螺栓螺栓螺栓"], "b": ["|", "|", "|"]}, max_width=8)
    rows = text.splitlines()[3:]
    assert {display_width(row) for row in rows} == {len("-" * 8 + "-+-" + "-")}
    assert rows[2] == "螺栓螺…  | |"


def test_nothing_moves_the_cursor() -> None:
    cell = "a\x1b[2Jb\rc\td\x85e\u2028f\x00"
    for form in ("table", "kv"):
        text = shown({"a": [cell]}, form)  # type: ignore[arg-type]
        assert r"a\x1b[2Jb\rc\td\x85e\u2028f\x00" in text
        assert all(character.isprintable() or character == "\n" for character in text)


def test_many_rows_come_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_CHUNK_LINES", 3)
    numbers = list(range(10))
    assert shown({"n": numbers}, "csv").splitlines() == ["n", *map(str, numbers)]
