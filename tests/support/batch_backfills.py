"""Backfills by the batch API, as functions that a process of its own can be told to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.settings import put
from tests.support.spark_embeds import fill_here

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.embedding_server import EmbeddingServer

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
