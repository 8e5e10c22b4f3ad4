"""Which vectors are stale, and what a backfill puts where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.embedding.config import EmbedConfig, Provider
from omnigraph_core.embedding.embedder import Embedder
from omnigraph_core.embedding.mock import mock_vectors
from omnigraph_core.embedding.origin import fingerprint
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.write.backfill import BackfillResult, EmbeddingStatus

import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = 'node Article {\n  slug: String @key\n  body: String?\n  topic: Vector(2)? @embed("body")\n}'
KEY = "node:Article"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Omnigraph:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    return Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
