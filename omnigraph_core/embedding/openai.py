"""OpenAI, and every service that speaks its protocol, through OpenAI's own client.

In go the texts of one request; exactly `model`, `input` and `dimensions` are sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from omnigraph_core.embedding.answers import read_json, status_failure, unit_vectors
from omnigraph_core.embedding.client import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import httpx2
    import numpy as np
    import openai
    from numpy.typing import NDArray

    from omnigraph_core.embedding.client import Ask
    from omnigraph_core.embedding.config import EmbedConfig

T = TypeVar("T")


class OpenAIClient:
    def __init__(self, config: EmbedConfig) -> None:
        self._client, self._headers = open_client(config)

    def vectors(
        self, texts: Sequence[str], ask: Ask, *, timeout: float
    ) -> NDArray[np.float32] | Failure:
        body = {"model": ask.model, "input": list(texts), "dimensions": ask.dimension}
        response = self._post(body, timeout)
        document = response if isinstance(response, Failure) else read_json(response.content)
        if isinstance(document, Failure):
            return document
        return read_vectors(document, len(texts), ask.dimension)

    def close(self) -> None:
        self._client.close()

    def _post(self, body: object, timeout: float) -> httpx2.Response | Failure:
        import httpx2

        def post() -> httpx2.Response:
            # `embeddings.create` would ask for an encoding that not every service knows.
            return self._client.post(
                "/embeddings",
                cast_to=httpx2.Response,
                body=body,
                options={"timeout": timeout, "headers": self._headers},
            )

        return try_call(post, timeout)


def open_client(config: EmbedConfig) -> tuple[openai.OpenAI, dict[str, str | openai.Omit]]:
    """OpenAI's client, which repeats nothing by itself, and the headers of every request."""
    import openai  # here because it loads slowly and most commands embed nothing

    client = openai.OpenAI(api_key=config.key or "none", base_url=config.base_url, max_retries=0)
    # Without a key, none is sent rather than whatever else the environment holds.
    return client, {"Authorization": openai.Omit()} if config.key is None else {}


def try_call(call: Callable[[], T], timeout: float) -> T | Failure:
    """The result of one call of OpenAI's client, or why there is none."""
    import httpx2
    import openai

    try:
        return call()
    except (openai.APITimeoutError, httpx2.TimeoutException):
        return Failure(f"no answer within {timeout:g} s", is_retryable=True)
    except openai.APIConnectionError as problem:
        return Failure(f"no connection: {problem.__cause__ or problem}", is_retryable=True)
    except openai.APIStatusError as problem:
        answer = problem.response
        return status_failure(answer.status_code, answer.headers, answer.content)
    except httpx2.RequestError as problem:  # while an answer is read part by part
        return Failure(f"the connection broke: {problem}", is_retryable=True)
    except (httpx2.InvalidURL, UnicodeError) as problem:  # also where a redirection leads
        return Failure(f"the request cannot be written: {problem}")


def read_vectors(document: object, count: int, dimension: int) -> NDArray[np.float32] | Failure:
    """The vectors of the body of an answer, checked."""
    given = _in_order(document)
    return given if isinstance(given, Failure) else unit_vectors(given, count, dimension)


def _in_order(document: object) -> list[object] | Failure:
    """The vectors by their `index`, which must count from 0."""
    items = document.get("data") if isinstance(document, Mapping) else None
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        return Failure("expected an answer with a list `data`")
    found = {item["index"]: item.get("embedding") for item in items if _has_index(item)}
    if sorted(found) != list(range(len(items))):
        indices = ", ".join(str(item.get("index")) for item in items)
        return Failure(f"expected the indices 0 to {len(items) - 1}, found {indices}")
    return [found[index] for index in range(len(items))]


def _has_index(item: Mapping[str, object]) -> bool:
    return type(item.get("index")) is int
