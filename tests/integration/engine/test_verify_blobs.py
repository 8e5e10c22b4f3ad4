"""Verify in depth finds files of blobs that any kept version has lost, and no others."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.verifying.model import Code, Severity
from omnigraph_core.storage.audit import BlobFiles
from omnigraph_core.storage.sweep import list_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.engine.verifying.model import Finding

SCHEMA = "node Part { sku: String @key  drawing: Blob?  photo: Blob? }"
PART = "node:Part"
SHARED, OWN = 100_000, 5_000_000


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """Blobs in the data file, in a file that two columns share, and in one of its own."""
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    put(og, "small", drawing=10)
    put(og, "nothing")
    put(og, "shared", drawing=SHARED, photo=2 * SHARED)
    put(og, "own", drawing=OWN)
    return og


def put(og: Omnigraph, sku: str, **sizes: int) -> None:
    blobs = {
        name: "base64:" + base64.b64encode(sku[:1].encode() * size).decode()
        for name, size in sizes.items()
    }
    row = {"type": "Part", "data": {"sku": sku, "drawing": None, "photo": None, **blobs}}
    og.load(json.dumps(row).encode(), mode="merge")


def errors(og: Omnigraph, *, is_deep: bool = True) -> list[Finding]:
    """What a handle finds that has seen nothing before."""
    found = Omnigraph.open(og.uri).verify(is_deep=is_deep).findings
    return [item for item in found if item.severity is Severity.ERROR]


def blob_files(og: Omnigraph) -> dict[int, Path]:
    """By length."""
    found = Path(og.uri).rglob("*.blob")
    return {path.stat().st_size: path for path in found}


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_what_versions_need_is_what_is_there(og: Omnigraph) -> None:
    """Also after rows were deleted and compacted, and columns renamed, dropped and added."""
    files = BlobFiles()

    def check() -> None:
        table = og.table(og.snapshot(), PART)
        sizes = {file.path: file.size for file in list_files(table.store, table.location)}
        needed = files.of(table)
        assert needed == BlobFiles().of(table), "what is known of other versions holds for this"
        assert len(needed) == 2
        for file in needed:
            assert sizes[file.unit] == file.size
        assert errors(og) == []

    check()
    put(og, "more", photo=OWN + 1)
    og.mutate('query q() { delete Part where sku = "more" }')
    check()
    og.schema_apply(
        'node Part { sku: String @key  plan: Blob? @rename_from("drawing") photo: Blob? x: Blob? }'
    )
    check()
    og.optimize()
    check()


@pytest.mark.parametrize("length", [3 * SHARED, OWN])
@pytest.mark.parametrize(
    ("damage", "code"), [(Path.unlink, Code.FILE_MISSING), (shorten, Code.FILE_SIZE)]
)
def test_a_lost_or_short_file_of_blobs(
    og: Omnigraph, length: int, damage: Callable[[Path], None], code: Code
) -> None:
    path = blob_files(og)[length]
    damage(path)
    assert errors(og, is_deep=False) == [], "only rows know of it"
    (found,) = errors(og)
    assert (found.code, found.place) == (code, f"main@{og.snapshot().manifest_version} {PART}")
    assert str(path.relative_to(og.uri)) in found.message


def test_blobs_that_only_an_old_version_needs(og: Omnigraph) -> None:
    old = og.snapshot().manifest_version
    put(og, "own")
    put(og, "later", drawing=SHARED)
    blob_files(og)[OWN].unlink()
    (found,) = errors(og)
    assert (found.code, found.place) == (Code.FILE_MISSING, f"main@{old} {PART}")
