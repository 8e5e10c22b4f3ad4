"""Backfills by the batch API, as functions that a process of its own can be told to do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from omnigraph_core.embedding.mock import mock_vectors
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.settings import put
from tests.support.processes import spawn
from tests.support.spark_embeds import fill_here

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.embedding_server import EmbeddingServer
    from tests.support.processes import Worker

SCHEMA = 'node Note { slug: String @key  text: String?  topic: Vector(8)? @embed("text") }'
KEYS = {"openai": "OPENAI_API_KEY", "openai-compatible": "OPENAI_API_KEY"}


def batch_settings(server: EmbeddingServer, provider: str, **settings: str) -> dict[str, str]:
    """The settings of a backfill that uses the batch API of a local provider."""
    return {
        "OMNIGRAPH_EMBEDDINGS_MOCK": "",
        "OMNIGRAPH_EMBED_PROVIDER": provider,
        "OMNIGRAPH_EMBED_BASE_URL": server.url,
        "OMNIGRAPH_EMBED_CACHE": "off",
        "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "1",
        "OMNIGRAPH_EMBED_BATCH_FROM": "10",
        "OMNIGRAPH_EMBED_BATCH_POLL_MS": "16",
        "NO_PROXY": "127.0.0.1",
        KEYS.get(provider, "GEMINI_API_KEY"): "sk-secret",
        **settings,
    }


@dataclass
class Notes:
    """A graph of notes without vectors, and backfills of it."""

    path: Path
    server: EmbeddingServer
    provider: str = "openai"
    engine: str = "local"
    settings: dict[str, str] = field(default_factory=dict)

    def load(self, *texts: str | None) -> Notes:
        graph = Omnigraph.init(str(self.path), SCHEMA)
        rows = [
            {"type": "Note", "data": {"slug": f"n{number}", "text": text}}
            for number, text in enumerate(texts)
        ]
        graph.load("\n".join(map(json.dumps, rows)).encode(), embed="off")
        return self

    @property
    def environment(self) -> dict[str, str]:
        return batch_settings(self.server, self.provider, **self.settings)

    def backfill(self) -> Any:
        return run_backfill(self.engine, str(self.path), self.environment)

    def spawn(self) -> Worker:
        """A backfill in a process of its own, which is killed when it is left."""
        target = "tests.support.batch_backfills:run_backfill"
        return spawn(target, self.engine, str(self.path), self.environment)

    def vectors(self) -> dict[str, list[float] | None]:
        exported = b"".join(Omnigraph.open(str(self.path)).export_jsonl()).splitlines()
        rows = [json.loads(line)["data"] for line in exported]
        return {row["text"]: row.get("topic") for row in rows}

    def check_complete(self) -> None:
        found = self.vectors()
        texts = [text for text in found if text and text.strip()]
        np.testing.assert_allclose(
            np.array([found[text] for text in texts]), mock_vectors(texts, 8), atol=1e-6
        )
        assert self.records() == [], "what is in a commit need not be kept"

    def records(self) -> list[str]:
        """What backfills have left beside the graph, without ids."""
        found = (self.path / "_scratch").rglob("*")
        return sorted(path.name.split("-")[0] for path in found if path.is_file())


def run_backfill(engine: str, graph: str, environment: Mapping[str, str]) -> Any:
    """A backfill in this process; `tasks` does it as on Spark, one task after the other."""
    if engine == "tasks":
        return fill_here(graph, 20, environment)
    before = put(environment)
    try:
        with Omnigraph.open(graph) as opened:
            return opened.embed_backfill().to_json()
    finally:
        put(before)
