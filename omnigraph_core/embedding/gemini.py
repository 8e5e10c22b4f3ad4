"""Gemini through Google's own client, which writes the requests and sends them.

Answers are taken as they arrive: read by the client, `"1"` and `true` would count as numbers.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnigraph_core.embedding.answers import read_json, status_failure, unit_vectors
from omnigraph_core.embedding.client import Failure
from omnigraph_core.errors import InvariantBroken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import httpx2
    import numpy as np
    from google.genai import Client
    from google.genai.types import HttpOptions
    from numpy.typing import NDArray

    from omnigraph_core.embedding.client import Ask
    from omnigraph_core.embedding.config import EmbedConfig


class GeminiClient:
    def __init__(self, config: EmbedConfig) -> None:
        import httpx2  # here because they load slowly and most commands embed nothing
        from google.genai import types

        self._http = httpx2
        self._types = types
        # Follows no redirection: the key would go along.
        self._connections = httpx2.Client(event_hooks={"response": [_hand_over]})
        options = types.HttpOptions(
            base_url=config.base_url,
            base_url_resource_scope=types.ResourceScope.COLLECTION,  # the address has the version
            retry_options=types.HttpRetryOptions(attempts=1),
            httpx_client=self._connections,
        )
        self._client = open_client(config, options)

    def vectors(
        self, texts: Sequence[str], ask: Ask, *, timeout: float
    ) -> NDArray[np.float32] | Failure:
        answer = self._answer(texts, ask, timeout)
        if isinstance(answer, Failure):
            return answer
        if not answer.is_success:
            return status_failure(answer.status_code, answer.headers, answer.content)
        document = read_json(answer.content)
        given = document if isinstance(document, Failure) else _values(document)
        return (
            given if isinstance(given, Failure) else unit_vectors(given, len(texts), ask.dimension)
        )

    def close(self) -> None:
        self._client.close()
        self._connections.close()

    def _answer(self, texts: Sequence[str], ask: Ask, timeout: float) -> httpx2.Response | Failure:
        types = self._types
        try:
            # The client, too, would refuse what no request can hold, but with the whole text.
            "".join((ask.model, *texts)).encode()
            self._client.models.embed_content(
                model=ask.model,
                # Of several strings some models would make one vector.
                contents=[types.Content(parts=[types.Part(text=text)]) for text in texts],
                config=types.EmbedContentConfig(
                    task_type=ask.task,
                    output_dimensionality=ask.dimension,
                    http_options=types.HttpOptions(timeout=math.ceil(timeout * 1000)),
                ),
            )
        except _Arrived as arrived:
            return arrived.answer
        except self._http.TimeoutException:
            return Failure(f"no answer within {timeout:g} s", is_retryable=True)
        except self._http.RequestError as problem:
            return Failure(f"no connection: {problem}", is_retryable=True)
        except (self._http.InvalidURL, ValueError) as problem:
            return Failure(f"the request cannot be written: {problem}")
        raise InvariantBroken("every answer is handed over before Google's client reads it")


def open_client(config: EmbedConfig, options: HttpOptions) -> Client:
    """Google's client, told everything that it would read from variables otherwise."""
    from google.genai import Client
    from google.genai.client import DebugConfig

    with _silence("google_genai._api_client"):
        return Client(
            vertexai=False,
            api_key=config.key or "none",
            debug_config=DebugConfig(client_mode=None, replays_directory=None, replay_id=None),
            http_options=options,
        )


class _Arrived(Exception):
    """Ends the call of Google's client with what was sent back, whatever it is."""

    def __init__(self, answer: httpx2.Response) -> None:
        super().__init__()
        self.answer = answer


def _hand_over(answer: httpx2.Response) -> None:
    answer.read()
    raise _Arrived(answer)


@contextmanager
def _silence(name: str) -> Iterator[None]:
    """Without what this thread logs there: the client names variables that it does not use."""
    thread = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger = logging.getLogger(name)
    logger.addFilter(is_of_others)
    try:
        yield
    finally:
        logger.removeFilter(is_of_others)


def _values(document: object) -> list[object] | Failure:
    """The vectors, which come in the order they were asked for."""
    items = document.get("embeddings") if isinstance(document, Mapping) else None
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        return Failure("expected an answer with a list `embeddings`")
    return [item.get("values") for item in items]
