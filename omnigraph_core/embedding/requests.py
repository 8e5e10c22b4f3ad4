"""Many texts over few requests: cached vectors first, the rest in batches, several at a time.

The first failure stops the rest; what was answered by then is in the cache.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Protocol, TypeVar

from omnigraph_core.constants import EMBED_BATCH_CHARACTERS
from omnigraph_core.embedding.cache import VectorCache, cache_key
from omnigraph_core.embedding.config import EmbedConfig, Provider
from omnigraph_core.embedding.gemini import GeminiClient
from omnigraph_core.embedding.limits import shared_limiter
from omnigraph_core.embedding.openai import OpenAIClient
from omnigraph_core.embedding.retry import ask_patiently
from omnigraph_core.errors import EmbeddingError
from omnigraph_core.settings import EMBED_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from omnigraph_core.embedding.client import Ask, Client
    from omnigraph_core.embedding.limits import Limiter

    Part = tuple[list[int], NDArray[np.float32]]

T = TypeVar("T")


class Cache(Protocol):
    """Keeps vectors that were paid for; safe to share between threads."""

    def iter_found(self, keys: Sequence[bytes], dimension: int) -> Iterator[Part]:
        """Positions of keys that are known, with their vectors, some at a time."""
        ...

    def put(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None: ...
    def close(self) -> None: ...


class CacheBehind:
    """Two caches: vectors are looked for in both, and kept by the second, if there is one."""

    def __init__(self, first: Cache, second: Cache | None) -> None:
        self._first = first
        self._second = second

    def iter_found(self, keys: Sequence[bytes], dimension: int) -> Iterator[Part]:
        missing = set(range(len(keys)))
        for part in self._first.iter_found(keys, dimension):
            missing.difference_update(part[0])
            yield part
        if self._second is None or not missing:
            return
        left = sorted(missing)
        for places, vectors in self._second.iter_found([keys[at] for at in left], dimension):
            yield [left[place] for place in places], vectors

    def put(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        if self._second is not None:
            self._second.put(keys, vectors)

    def close(self) -> None:
        self._first.close()
        if self._second is not None:
            self._second.close()


class Requests:
    """A provider with its cache and its threads; safe to share between threads.

    Args:
        cache: unset: the file that the settings name, if any.
        limiter: unset: the one of this process.
    """

    def __init__(
        self, config: EmbedConfig, cache: Cache | None = None, limiter: Limiter | None = None
    ) -> None:
        self._config = config
        self._cache = cache
        if cache is None and config.cache is not None:
            self._cache = VectorCache(config.cache)
        self._limiter = limiter or shared_limiter(config.base_url, config.limits)
        # One pool for all callers: the limit is on what the provider sees.
        self._threads = ThreadPoolExecutor(config.concurrency, thread_name_prefix="embed")
        self._lock = threading.Lock()
        self._client: Client | None = None

    def iter_vectors(self, texts: Sequence[str], ask: Ask) -> Generator[Part, None, None]:
        """Positions of texts and their vectors, as they become known.

        Raises:
            EmbeddingError: a request is needed, and the key is missing or no client can be made; or
                the provider failed.
        """
        missing = set(range(len(texts)))
        keys = self._keys(texts, ask)
        for part in self._iter_known(keys, ask):
            missing.difference_update(part[0])
            yield part
        if missing:
            yield from self._iter_asked(texts, keys, sorted(missing), ask)

    def iter_known(self, texts: Sequence[str], ask: Ask) -> Iterator[Part]:
        """The same of those alone that need no request."""
        return self._iter_known(self._keys(texts, ask), ask)

    def _iter_known(self, keys: Sequence[bytes], ask: Ask) -> Iterator[Part]:
        return iter(()) if self._cache is None else self._cache.iter_found(keys, ask.dimension)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            if self._client is not None:
                self._client.close()
            if self._cache is not None:
                self._cache.close()

    def _keys(self, texts: Sequence[str], ask: Ask) -> list[bytes]:
        return [] if self._cache is None else text_keys(texts, ask, self._config)

    def _iter_asked(
        self, texts: Sequence[str], keys: Sequence[bytes], missing: Sequence[int], ask: Ask
    ) -> Iterator[Part]:
        client = self._open()
        stop = threading.Event()

        def answer(positions: list[int]) -> Part:
            batch = [texts[position] for position in positions]
            vectors = ask_patiently(client, batch, ask, self._config, self._limiter, stop)
            if self._cache is not None:
                self._cache.put([keys[position] for position in positions], vectors)
            return positions, vectors

        batches = _batches(texts, missing, self._config.batch)
        futures = [self._threads.submit(answer, positions) for positions in batches]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            # On a failure, and when the caller has had enough.
            stop.set()
            for future in futures:
                future.cancel()

    def _open(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = open_provider(self._config, _client)
            return self._client


def text_keys(texts: Sequence[str], ask: Ask, config: EmbedConfig) -> list[bytes]:
    """What the vectors of texts are kept under."""
    task = ask.task if config.has_tasks else ""
    # The address stands for the provider: two services may call different models alike.
    scope = (config.base_url, ask.model, str(ask.dimension), task)
    return [cache_key(scope, text) for text in texts]


def _client(config: EmbedConfig) -> Client:
    return GeminiClient(config) if config.provider is Provider.GEMINI else OpenAIClient(config)


def open_provider(config: EmbedConfig, make: Callable[[EmbedConfig], T]) -> T:
    """A client of the provider, made by a function.

    Raises:
        EmbeddingError: the key is missing, or the environment allows no client.
    """
    import httpx2  # here because most commands embed nothing

    if config.key is None and config.key_name is not None:
        raise EmbeddingError(
            f"{config.key_name} is not set: {config.provider} makes no embeddings without it",
            hint=f"set it, or choose another provider with {EMBED_PROVIDER.name}",
        )
    try:
        return make(config)
    except (httpx2.InvalidURL, ImportError, OSError, ValueError) as problem:
        # What the client says may hold the password of a proxy.
        raise EmbeddingError(
            "the proxy, certificates or HTTP package that the environment names cannot be used",
            hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE and "
            "GOOGLE_GENAI_HTTP_CLIENT",
        ) from problem


def _batches(texts: Sequence[str], positions: Sequence[int], size: int) -> Iterator[list[int]]:
    """Runs of positions, none above `size` nor, if it can be helped, too long to send."""
    batch: list[int] = []
    characters = 0
    for position in positions:
        characters += len(texts[position])
        if batch and (len(batch) == size or characters > EMBED_BATCH_CHARACTERS.value):
            yield batch
            batch, characters = [], len(texts[position])
        batch.append(position)
    if batch:
        yield batch
