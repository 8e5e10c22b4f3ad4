"""OpenAI, and every service that speaks its protocol, through OpenAI's own client.

In go the texts of one request; exactly `model`, `input` and `dimensions` are sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omnigraph_core.embedding.answers import read_json, status_failure, unit_vectors
from omnigraph_core.embedding.client import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx2
    import numpy as np
    from numpy.typing import NDArray

    from omnigraph_core.embedding.client import Ask
    from omnigraph_core.embedding.config import EmbedConfig


class OpenAIClient:
    def __init__(self, config: EmbedConfig) -> None:
        import openai  # here because it loads slowly and most commands embed nothing

        self._openai = openai
        self._client = openai.OpenAI(
            api_key=config.key or "none", base_url=config.base_url, max_retries=0
        )
        # Without a key, none is sent rather than whatever else the environment holds.
        self._headers = {"Authorization": openai.Omit()} if config.key is None else {}

    def vectors(
        self, texts: Sequence[str], ask: Ask, *, timeout: float
    ) -> NDArray[np.float32] | Failure:
        body = {"model": ask.model, "input": list(texts), "dimensions": ask.dimension}
        response = self._post(body, timeout)
        document = response if isinstance(response, Failure) else read_json(response.content)
        given = document if isinstance(document, Failure) else _in_order(document)
        return (
            given if isinstance(given, Failure) else unit_vectors(given, len(texts), ask.dimension)
        )

    def close(self) -> None:
        self._client.close()

    def _post(self, body: object, timeout: float) -> httpx2.Response | Failure:
        import httpx2

        # `embeddings.create` would ask for an encoding that not every service knows.
        try:
            return self._client.post(
                "/embeddings",
                cast_to=httpx2.Response,
                body=body,
                options={"timeout": timeout, "headers": self._headers},
            )
        except self._openai.APITimeoutError:
            return Failure(f"no answer within {timeout:g} s", is_retryable=True)
        except self._openai.APIConnectionError as problem:
            return Failure(f"no connection: {problem.__cause__ or problem}", is_retryable=True)
        except self._openai.APIStatusError as problem:
            answer = problem.response
            return status_failure(answer.status_code, answer.headers, answer.content)
        except (httpx2.InvalidURL, UnicodeError) as problem:  # also where a redirection leads
            return Failure(f"the request cannot be written: {problem}")


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
