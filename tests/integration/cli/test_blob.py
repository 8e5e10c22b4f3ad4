"""`omnigraph blob …`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.cli.commands import blob
from tests.integration.cli.process import omnigraph

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

KEPT = b'{"type":"Part","data":{"sku":"M12","drawing":"https://example.org/m12.pdf"}}'


def test_bytes_come_out_as_they_are(
    call: Call, folder: Path, full: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blob, "_PIECE", 2)
    assert call("blob", "get", "Part", "M10", "drawing", "stock") == (0, "hex", "")
    part = ("--offset", "1", "--length", "1")
    assert call("blob", "get", "Part", "M10", "drawing", "stock", *part)[1] == "e"
    assert call("blob", "get", "Part", "M10", "drawing", "stock", "--offset", "9")[1] == ""
    arguments = ("blob", "get", "node:Part", "M10", "drawing", "--uri", "stock")
    assert call(*arguments, "--output", "m10.bin") == (0, "", "")
    assert (folder / "m10.bin").read_bytes() == b"hex"
    assert not list(folder.glob("*.part"))
    (folder / "m10.bin").write_bytes(b"old")
    assert call(*arguments[:3], "none", *arguments[4:], "--output", "m10.bin")[0] == 1
    assert (folder / "m10.bin").read_bytes() == b"old"
    assert call(*arguments, "--output", "/dev/null") == (0, "", "")
    assert not Path("/dev/null").is_file()


def test_other_times(call: Call, full: Omnigraph) -> None:
    before = full.snapshot()
    full.tag_create("v1")
    full.load(b'{"type":"Part","data":{"sku":"M10","drawing":"base64:bmV3"}}', mode="merge")
    read = ("blob", "get", "Part", "M10", "drawing", "stock")
    assert call(*read)[1] == "new"
    for option in (
        ("--snapshot", before.commit.graph_commit_id),
        ("--tag", "v1"),
        ("--version", str(before.manifest_version)),
    ):
        assert call(*read, *option)[1] == "hex"


def test_how_long_and_where(call: Call, full: Omnigraph) -> None:
    full.load(KEPT, mode="merge")
    assert call("blob", "stat", "Part", "M10", "drawing", "stock")[1] == "size: 3\n"
    assert call("blob", "stat", "Part", "M8", "drawing", "stock")[1] == "null\n"
    kept = call("blob", "stat", "Part", "M12", "drawing", "stock")[1]
    assert kept == "kept_at: https://example.org/m12.pdf\n"
    document = json.loads(call("blob", "stat", "Part", "M10", "drawing", "stock", "--json")[1])
    assert list(document.items()) == [
        ("uri", "stock"),
        ("type", "Part"),
        ("id", "M10"),
        ("property", "drawing"),
        ("is_null", False),
        ("size", 3),
        ("kept_at", None),
    ]


def test_what_is_no_text(folder: Path, full: Omnigraph) -> None:
    full.load(b'{"type":"Part","data":{"sku":"M9","drawing":"base64:AP+A"}}', mode="merge")
    done = omnigraph(
        "blob", "get", "Part", "M9", "drawing", "stock", "--output", "b", folder=folder
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "b").read_bytes() == b"\x00\xff\x80"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["get", "Part", "M8", "drawing", "stock"], 1, "it is null"),
        (["get", "Part", "M99", "drawing", "stock"], 1, "no Part has the id 'M99'"),
        (["get", "Part", "M10", "name", "stock"], 1, "no Blob property `name`"),
        (["stat", "Prt", "M10", "drawing", "stock"], 1, "unknown type `Prt`"),
        (["get", "Part", "M12", "drawing", "stock"], 1, "the blob is kept at https://example.org"),
        (
            ["get", "Part", "M10", "drawing", "stock", "--output", "no/file"],
            1,
            "cannot write no/file",
        ),
        (["get", "Part", "M10", "drawing", "stock", "--offset", "-1"], 2, "--offset"),
    ],
)
def test_mistakes(
    call: Call, folder: Path, full: Omnigraph, arguments: list[str], code: int, text: str
) -> None:
    full.load(KEPT, mode="merge")
    ended, output, errors = call("blob", *arguments)
    assert (ended, output) == (code, "")
    assert text in errors
    assert not (folder / "file").exists()
