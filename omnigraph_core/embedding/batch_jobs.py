"""The batch API with repetitions: what a client cannot do for now is tried again, then an error.

No call waits for a batch to end, and none takes a turn of the limiter: providers count batches
apart from other requests.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core import interruption
from omnigraph_core.embedding.client import Failure
from omnigraph_core.embedding.config import Provider
from omnigraph_core.embedding.gemini_batches import GeminiBatches
from omnigraph_core.embedding.openai_batches import OpenAIBatches
from omnigraph_core.embedding.requests import open_provider
from omnigraph_core.embedding.retry import masked, retry_wait
from omnigraph_core.errors import EmbeddingError
from omnigraph_core.settings import EMBED_BATCH_FROM

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.embedding.batch_client import Batch, BatchAnswer, BatchClient
    from omnigraph_core.embedding.client import Ask
    from omnigraph_core.embedding.config import EmbedConfig

T = TypeVar("T")

_NAP_SECONDS: Final = 1.0
"""Between two looks, while waiting, whether the work is to stop."""


class BatchJobs:
    """The batches of an account. Opens its client on first need."""

    def __init__(self, config: EmbedConfig) -> None:
        self._config = config
        self._opened: BatchClient | None = None

    def request_line(self, id: str, text: str, ask: Ask) -> bytes:
        return self._client.request_line(id, text, ask)

    def upload(self, path: Path) -> str:
        """Upload a file of requests; the provider's name of it.

        Raises:
            EmbeddingError: the provider refuses the file, or has no batch API.
        """
        return self._result("upload a batch file", lambda: self._client.upload(path))

    def create(self, file: str, label: str, ask: Ask) -> Batch:
        """Submit an uploaded file, once: a try without an answer may have succeeded, so the next
        one looks for its batch first.

        Raises:
            EmbeddingError: the provider refuses the batch, or has no batch API.
        """
        is_repeated = False

        def create() -> Batch | Failure:
            nonlocal is_repeated
            found = self._client.find(label) if is_repeated else None
            is_repeated = True
            return self._client.create(file, label, ask) if found is None else found

        return self._result("submit a batch", create)

    def find(self, label: str) -> Batch | None:
        """
        Raises:
            EmbeddingError: the provider does not list its batches.
        """
        return self._result("list batches", lambda: self._client.find(label))

    def try_get(self, id: str) -> Batch | None:
        """A batch; None if the provider does not have it.

        Raises:
            EmbeddingError: the provider does not tell.
        """
        return self._found(f"look at batch {id}", lambda: self._client.get(id))

    def try_download(self, file: str, path: Path) -> bool:
        """Write a file of answers to a path; False if the provider does not have it.

        Raises:
            EmbeddingError: the provider does not send it.
        """

        def download() -> bool | Failure:
            return self._client.download(file, path) or True

        return self._found(f"download {file}", download) or False

    def delete_file(self, file: str) -> Failure | None:
        """Delete a file that nobody needs any more, if the provider lets us."""
        return self._client.delete_file(file)

    def read_answer(self, line: bytes, dimension: int) -> BatchAnswer | Failure:
        return self._client.read_answer(line, dimension)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _client(self) -> BatchClient:
        if self._opened is None:
            self._opened = open_provider(self._config, _client)
        return self._opened

    def _result(self, doing: str, call: Callable[[], T | Failure]) -> T:
        result = self._repeated(call)
        if isinstance(result, Failure):
            raise self._error(doing, result)
        return result

    def _found(self, doing: str, call: Callable[[], T | Failure]) -> T | None:
        result = self._repeated(call)
        if not isinstance(result, Failure):
            return result
        if result.is_missing:
            return None
        raise self._error(doing, result)

    def _repeated(self, call: Callable[[], T | Failure]) -> T | Failure:
        patience = self._config.patience
        attempt = 1
        while True:
            result = call()
            if not isinstance(result, Failure):
                return result
            if not result.is_retryable or attempt >= patience.attempts:
                return result
            wait(retry_wait(result, attempt, patience))
            attempt += 1

    def _error(self, doing: str, failure: Failure) -> EmbeddingError:
        config = self._config
        hint = f"check {config.key_name}" if failure.is_denied and config.key_name else None
        if failure.is_missing:
            hint = (
                f"{config.base_url} may have no batch API: unset {EMBED_BATCH_FROM.name} to embed "
                "without it"
            )
        return EmbeddingError(
            f"{config.provider} failed to {doing}: {masked(failure.message, config.key)}",
            hint=hint,
            retryable=failure.is_retryable,
        )


def _client(config: EmbedConfig) -> BatchClient:
    return GeminiBatches(config) if config.provider is Provider.GEMINI else OpenAIBatches(config)


def wait(seconds: float) -> None:
    """Let time pass; Ctrl-C, and whoever the work is done for, may end it."""
    until = time.monotonic() + seconds
    never = threading.Event()
    while (left := until - time.monotonic()) > 0:
        never.wait(min(left, _NAP_SECONDS))
        interruption.pause()
