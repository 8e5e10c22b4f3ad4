"""The one way to get vectors: texts in, unit vectors out, whichever provider is configured.

Each distinct text is asked for once and remembered; a failed call has at most cached something.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from omnigraph_core.embedding.cache import VectorCache
from omnigraph_core.embedding.client import Ask, Task
from omnigraph_core.embedding.config import MOCK_MODEL, EmbedConfig, Provider, read_config
from omnigraph_core.embedding.mock import mock_vectors
from omnigraph_core.embedding.requests import CacheBehind, Requests, text_keys
from omnigraph_core.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from omnigraph_core.embedding.limits import Limiter
    from omnigraph_core.embedding.requests import Cache

__all__ = ["Embedder", "Task"]


class Embedder:
    """Makes vectors; safe to share between threads. Reads its settings on first need.

    Args:
        cache: unset: the file that the settings name, if any.
        limiter: holds the limits of the provider. Unset: the one of this process.
    """

    def __init__(
        self,
        configure: Callable[[], EmbedConfig],
        *,
        cache: Cache | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        self._configure = configure
        self._cache = cache
        self._limiter = limiter
        self._lock = threading.Lock()
        self._config: EmbedConfig | None = None
        self._requests: Requests | None = None

    @classmethod
    def from_settings(cls) -> Embedder:
        """What the environment says; it may stay incomplete until a vector is needed."""
        return cls(read_config)

    @property
    def config(self) -> EmbedConfig:
        """What the embedder works by.

        Raises:
            ConfigError: the settings name no usable provider.
        """
        return self._read()

    def with_kept(self, kept: Cache) -> Embedder:
        """An embedder that looks for vectors in `kept` first, and otherwise does as this one."""
        config = self._read()
        usual = self._cache
        if usual is None and config.cache is not None:
            usual = VectorCache(config.cache)
        cache = CacheBehind(kept, usual)
        return Embedder(lambda: config, cache=cache, limiter=self._limiter)

    def model_for(self, declared: str | None) -> str:
        """The name to record for a property: what it declares, else the configured model.

        Raises:
            ConfigError: the settings name no usable provider.
        """
        config = self._read()
        if config.provider is Provider.MOCK:
            return MOCK_MODEL
        return declared or config.model

    def embed(
        self,
        texts: Sequence[str],
        *,
        dimension: int,
        task: Task,
        model: str | None = None,
        on_done: Callable[[int], None] | None = None,
    ) -> NDArray[np.float32]:
        """One row per text, each of length 1.

        Args:
            on_done: told how many more texts are finished, from the calling thread.

        Raises:
            ConfigError: the settings name no usable provider.
            EmbeddingError: its key is missing, it failed, or its answer is not what was asked for.
        """
        if dimension < 1:
            raise EmbeddingError(f"expected a dimension above zero, found {dimension}")
        report = on_done or _ignore
        if not texts:
            return np.empty((0, dimension), np.float32)
        if self._read().provider is Provider.MOCK:
            vectors = mock_vectors(texts, dimension)
            report(len(texts))
            return vectors
        return self._ask(texts, Ask(self.model_for(model), dimension, task), report)

    def keys(
        self, texts: Sequence[str], *, dimension: int, task: Task, model: str | None = None
    ) -> list[bytes]:
        """What vectors are kept under; two that are the same are asked for once.

        Raises:
            ConfigError: the settings name no usable provider.
        """
        return text_keys(texts, Ask(self.model_for(model), dimension, task), self._read())

    def find_known(
        self, texts: Sequence[str], *, dimension: int, task: Task, model: str | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """The vectors that need no request, by text.

        Raises:
            ConfigError: the settings name no usable provider.
        """
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        if self._read().provider is Provider.MOCK:
            return dict(zip(distinct, mock_vectors(distinct, dimension), strict=True))
        ask = Ask(self.model_for(model), dimension, task)
        return {
            distinct[position]: vector
            for positions, vectors in self._open().iter_known(distinct, ask)
            for position, vector in zip(positions, vectors, strict=True)
        }

    def close(self) -> None:
        """Give back connections once no call is under way; the next need opens them again."""
        with self._lock:
            requests, self._requests = self._requests, None
        if requests is not None:
            requests.close()

    def _read(self) -> EmbedConfig:
        with self._lock:
            if self._config is None:
                self._config = self._configure()
            return self._config

    def _ask(
        self, texts: Sequence[str], ask: Ask, report: Callable[[int], None]
    ) -> NDArray[np.float32]:
        occurrences = Counter(texts)
        distinct = list(occurrences)
        found = np.empty((len(distinct), ask.dimension), np.float32)
        with closing(self._open().iter_vectors(distinct, ask)) as parts:
            for positions, vectors in parts:
                found[positions] = vectors
                report(sum(occurrences[distinct[position]] for position in positions))
        if len(distinct) == len(texts):
            return found
        row = {text: position for position, text in enumerate(distinct)}
        return found[[row[text] for text in texts]]

    def _open(self) -> Requests:
        config = self._read()
        with self._lock:
            if self._requests is None:
                self._requests = Requests(config, self._cache, self._limiter)
            return self._requests


def _ignore(count: int) -> None:
    """Nobody wants to know."""
