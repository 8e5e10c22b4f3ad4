"""Backfills for tests of Spark, as functions of a runner: whoever holds a session can be told to do
them. Arguments and results are JSON."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.settings import put
from omnigraph_core.spark.embed.backfill import backfill
from omnigraph_core.spark.runner import InProcessRunner, SparkRunner
from omnigraph_core.spark.session import is_connect
from omnigraph_core.write.commit import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.write.progress import Listener
    from tests.support.embedding_server import EmbeddingServer


def provider(server: EmbeddingServer, **settings: str) -> dict[str, str]:
    """The settings of executors that ask a local provider."""
    return {
        "OMNIGRAPH_EMBEDDINGS_MOCK": "",
        "OMNIGRAPH_EMBED_PROVIDER": "openai",
        "OMNIGRAPH_EMBED_BASE_URL": server.url,
        "OMNIGRAPH_EMBED_CACHE": "off",
        "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "1",
        "OPENAI_API_KEY": "sk-secret",
        "NO_PROXY": "127.0.0.1",
        **settings,
    }


def fill(
    runner: Runner,
    graph: str,
    part_rows: int,
    environment: Mapping[str, str],
    progress: Listener | None = None,
) -> Any:
    """A backfill in parts of so many rows; executors behind a server are told the settings, too."""
    if isinstance(runner, SparkRunner) and is_connect(runner.session):
        runner = SparkRunner(runner.session, environment={**os.environ, **environment})
    before = put(environment)
    try:
        opened = Omnigraph.open(graph)
        options = WriteOptions("main", actor="filler")
        done = backfill(opened._context, options, runner, part_rows=part_rows, progress=progress)
    finally:
        put(before)
    return done.to_json()


def fill_here(graph: str, part_rows: int, environment: Mapping[str, str]) -> Any:
    """The body of a process that fills without Spark."""
    return fill(InProcessRunner(), graph, part_rows, environment)
