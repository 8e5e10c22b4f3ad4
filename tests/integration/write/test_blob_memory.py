"""Large blobs pass through a few at a time: memory does not grow with how many there are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.storage.fragments import combine, write_append
from omnigraph_core.storage.staged import stage_append
from tests.support.processes import spawn

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table

SCHEMA = """
node Article {
  slug: String @key
  body: String?
  scan: Blob?
  topic: Vector(4)? @embed("body")
}
"""
KEY = "node:Article"
BLOBS: Final = 32
BLOB_BYTES: Final = 8 << 20
PROMPT: Final = {
    "OMNIGRAPH_EMBEDDINGS_MOCK": "1",
    # What is freed goes back at once, so that the peak is what was in use and not what was kept.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 20),
}


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    graph = Omnigraph.init(str(tmp_path_factory.mktemp("graph") / "graph"), SCHEMA)
    snapshot = graph.snapshot()
    table = graph.table(snapshot, KEY)
    written = combine(table, (write_append(table, row(table, number)) for number in range(BLOBS)))
    staged = stage_append(table, written)
    assert staged is not None
    change = UpdateTable.of(KEY, staged, TableOperation.APPEND)
    graph.commit([change], requirements_of(snapshot, touched=[KEY]), operation="test")
    return graph.uri


def row(table: Table, number: int) -> pa.Table:
    slug = f"{number:02d}"
    values = {"id": slug, "slug": slug, "body": slug, "scan": bytes([number]) * BLOB_BYTES}
    return pa.Table.from_pylist([values], schema=table.schema)


@pytest.mark.parametrize("operation", ["lines", "files", "vectors"])
def test_memory_is_that_of_a_few_blobs(uri: str, operation: str) -> None:
    target = f"tests.integration.write.test_blob_memory:measure_{operation}"
    with spawn(target, uri, env=PROMPT, is_cold=True) as worker:
        growth = worker.wait().result()
    assert growth < BLOBS * BLOB_BYTES / 2


def measure_lines(uri: str) -> int:
    graph = Omnigraph.open(uri)
    before = peak()
    total = sum(len(chunk) for chunk in graph.export_jsonl())
    assert total > BLOBS * BLOB_BYTES
    return peak() - before


def measure_files(uri: str) -> int:
    graph = Omnigraph.open(uri)
    before = peak()
    with tempfile.TemporaryDirectory() as directory:
        (file,) = graph.export_parquet(Path(directory))
        assert pq.ParquetFile(file.path).metadata.num_rows == BLOBS
    return peak() - before


def measure_vectors(uri: str) -> int:
    graph = Omnigraph.open(uri)
    before = peak()
    graph.branch_create(f"at-{os.getpid()}")
    result = graph.embed_backfill(branch=f"at-{os.getpid()}")
    assert result.vectors_made == BLOBS
    return peak() - before


def peak() -> int:
    """The most memory this process has had, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10
