"""A local provider and an embedder that uses it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.embedding.embedder import Embedder
from tests.support.embedding_server import EmbeddingServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEYS = {
    "gemini": ("GEMINI_API_KEY", "gm-secret"),
    "openai": ("OPENAI_API_KEY", "sk-secret"),
    "openai-compatible": ("OPENAI_API_KEY", "sk-secret"),
}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may reach a real account, a proxy or the user's cache."""
    prefixes = ("OMNIGRAPH_EMBED", "OMNIGRAPH_GEMINI", "NANOGRAPH_", "OPENAI_", "GEMINI_")
    for name in os.environ:
        if name.startswith((*prefixes, "GOOGLE_", "OPENROUTER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_CACHE", "off")
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "1")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Embedder]]:
    """An embedder of a provider at an address, with settings as given; closed at the end."""
    opened: list[Embedder] = []

    def connect(url: str, provider: str, **settings: str) -> Embedder:
        name, key = KEYS[provider]
        monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", provider)
        monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", url)
        monkeypatch.setenv(name, key)
        for setting, value in settings.items():
            monkeypatch.setenv(setting, value)
        opened.append(Embedder.from_settings())
        return opened[-1]

    yield connect
    for embedder in opened:
        embedder.close()
