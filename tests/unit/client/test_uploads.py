"""How data is put into requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.client.uploads import plan_upload
from omnigraph_core.write.sources import open_sources

if TYPE_CHECKING:
    from pathlib import Path

TABLE = pa.table({"sku": ["a", "b"]})


def test_nameless_records_go_as_they_are() -> None:
    planned = plan_upload(open_sources(b'{"type": "Part"}'))
    assert (planned.path, planned.parameters, planned.is_long) == ("/load/ndjson", {}, False)
    assert b"".join(planned.content()) == b"".join(planned.content()) == b'{"type": "Part"}'


def test_files_go_under_names_that_tell_what_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "edges"
    folder.mkdir()
    (folder / "Holds.csv").write_text("from,to\na,b\n")
    (tmp_path / 'some "records".jsonl').write_text("{}\n")
    given = [folder / "Holds.csv", tmp_path / 'some "records".jsonl', b"{}"]
    planned = plan_upload(open_sources(given))
    assert (planned.path, planned.parameters, planned.is_long) == ("/load/files", {}, True)
    body = b"".join(planned.content()).decode()
    names = [line.partition("filename=")[2] for line in body.splitlines() if "filename" in line]
    assert names == ['"edges/Holds.csv"', '"some %22records%22.jsonl"', '"input-3.jsonl"']
    assert body.endswith("--\r\n")
    boundary = planned.headers["Content-Type"].partition("boundary=")[2]
    assert body.count(f"--{boundary}\r\n") == 3
    local = str(folder / "Holds.csv")
    assert planned.renamed({"error": "Holds.csv:3: no", "x": ["in MyHolds.csv"]}) == {
        "error": f"{local}:3: no", "x": ["in MyHolds.csv"],
    }  # fmt: skip


def test_sources_of_one_kind_share_their_parameters(tmp_path: Path) -> None:
    path = tmp_path / "bolts.txt"
    path.write_text("sku\na\n")
    planned = plan_upload(open_sources([path], format="csv", type_name="node:Part"))
    assert planned.parameters == {"format": "csv", "type": "node:Part"}
    assert b'filename="bolts.txt"' in b"".join(planned.content())
    assert planned.size == 6


def test_one_table_needs_no_name() -> None:
    planned = plan_upload(open_sources(TABLE, type_name="Part"))
    assert planned.renamed({"file": "input 1", "error": "input 1, row 2: no\ninput 1: no"}) == {
        "error": "row 2: no\nno"
    }
    body = b"".join(planned.content())
    start = body.index(b"\r\n\r\n") + 4
    with pa.ipc.open_stream(body[start:]) as stream:
        assert stream.read_all() == TABLE


def test_files_of_one_name_in_several_directories(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.jsonl").write_text("{}\n")
    planned = plan_upload(open_sources(tmp_path))
    assert planned.names == {
        "x.jsonl": f"{tmp_path}/a/x.jsonl",
        "2-x.jsonl": f"{tmp_path}/b/x.jsonl",
    }
    for folder in ("a", "b"):
        (tmp_path / folder / "Part.csv").write_text("sku\n")
    mixed = plan_upload(open_sources(tmp_path))
    assert mixed.names == {
        "x.jsonl": f"{tmp_path}/a/x.jsonl",
        "4-x.jsonl": f"{tmp_path}/b/x.jsonl",
    }, "a name that two tables have is not taken for that of one of them"
