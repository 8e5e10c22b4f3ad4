"""One batch, asked for until it is answered or there is no more point in asking.

In goes a client that never repeats itself; out come vectors or the one error a caller sees.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from omnigraph_core.constants import EMBED_MAX_RETRY_AFTER
from omnigraph_core.embedding.client import Failure
from omnigraph_core.embedding.limits import estimated_tokens
from omnigraph_core.errors import EmbeddingError

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from omnigraph_core.embedding.client import Ask, Client
    from omnigraph_core.embedding.config import EmbedConfig, Patience
    from omnigraph_core.embedding.limits import Limiter

_MAX_DOUBLINGS = 10

_SHORTEST_SECRET = 4
"""Characters; a shorter key protects nothing, and would be found inside other words."""


def ask_patiently(
    client: Client,
    texts: Sequence[str],
    ask: Ask,
    config: EmbedConfig,
    limiter: Limiter,
    stop: threading.Event,
) -> NDArray[np.float32]:
    """The vectors of the texts; `stop` ends the waits before each attempt.

    Raises:
        EmbeddingError: the last failure, retryable if trying later may help.
    """
    patience = config.patience
    tokens = estimated_tokens(texts)
    result = Failure("stopped before it was sent", is_retryable=True)
    begun: float | None = None
    attempt = 1
    while True:
        if not limiter.acquire(tokens, stop):
            raise _error(result, attempt, ask, config)
        if begun is None:  # waiting for the first turn is nobody's fault
            begun = time.monotonic()
        timeout = patience.timeout
        if patience.deadline is not None:
            timeout = min(timeout, max(begun + patience.deadline - time.monotonic(), 0.001))
        answer = client.vectors(texts, ask, timeout=timeout)
        if not isinstance(answer, Failure):
            return answer
        result = answer
        wait = retry_wait(result, attempt, patience)
        if result.is_throttled or result.retry_after is not None:
            limiter.pause(wait)
        is_over = (
            not result.is_retryable
            or attempt >= patience.attempts
            or _is_too_late(begun, wait, patience)
        )
        if is_over or stop.wait(wait):
            raise _error(result, attempt, ask, config)
        attempt += 1


def retry_wait(failure: Failure, attempt: int, patience: Patience) -> float:
    """Seconds before the next attempt: doubled each time, or what the provider asks for."""
    backoff = patience.backoff * float(2 ** min(attempt - 1, _MAX_DOUBLINGS))
    return max(backoff, min(failure.retry_after or 0.0, EMBED_MAX_RETRY_AFTER.value))


def _is_too_late(begun: float, wait: float, patience: Patience) -> bool:
    if patience.deadline is None:
        return False
    return time.monotonic() + wait >= begun + patience.deadline


def _error(failure: Failure, attempt: int, ask: Ask, config: EmbedConfig) -> EmbeddingError:
    message = masked(failure.message, config.key)
    tries = f" (attempt {attempt} of {config.patience.attempts})" if failure.is_retryable else ""
    return EmbeddingError(
        f"{config.provider} failed to embed with {ask.model}{tries}: {message}",
        hint=f"check {config.key_name}" if failure.is_denied and config.key_name else None,
        retryable=failure.is_retryable,
    )


def masked(message: str, key: str | None) -> str:
    """A message without the key."""
    if key is None or len(key) < _SHORTEST_SECRET:
        return message
    return message.replace(key, "***")
