"""Gemini over its REST interface: one text by `embedContent`, several by `batchEmbedContents`.

Google's own client offers no way to send the former, so requests are made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omnigraph_core.embedding.answers import read_json, status_failure, unit_vectors
from omnigraph_core.embedding.client import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from omnigraph_core.embedding.client import Ask
    from omnigraph_core.embedding.config import EmbedConfig


class GeminiClient:
    def __init__(self, config: EmbedConfig) -> None:
        import httpx2  # here because most commands embed nothing

        self._http = httpx2
        headers = {} if config.key is None else {"x-goog-api-key": config.key}
        self._client = httpx2.Client(headers=headers)
        self._base_url = config.base_url

    def vectors(
        self, texts: Sequence[str], ask: Ask, *, timeout: float
    ) -> NDArray[np.float32] | Failure:
        model = ask.model.removeprefix("models/")
        contents = [_content(model, text, ask) for text in texts]
        if len(contents) == 1:
            document = self._post(f"{model}:embedContent", contents[0], timeout)
        else:
            document = self._post(f"{model}:batchEmbedContents", {"requests": contents}, timeout)
        given = document if isinstance(document, Failure) else _values(document)
        return (
            given if isinstance(given, Failure) else unit_vectors(given, len(texts), ask.dimension)
        )

    def close(self) -> None:
        self._client.close()

    def _post(self, path: str, body: object, timeout: float) -> object | Failure:
        url = f"{self._base_url}/models/{path}"
        try:
            answer = self._client.post(url, json=body, timeout=timeout)
        except self._http.TimeoutException:
            return Failure(f"no answer within {timeout:g} s", is_retryable=True)
        except self._http.RequestError as problem:
            return Failure(f"no connection: {problem}", is_retryable=True)
        except (self._http.InvalidURL, UnicodeError) as problem:
            return Failure(f"the request cannot be written: {problem}")
        if not answer.is_success:
            return status_failure(answer.status_code, answer.headers, answer.content)
        return read_json(answer.content)


def _content(model: str, text: str, ask: Ask) -> dict[str, object]:
    return {
        "model": f"models/{model}",
        "content": {"parts": [{"text": text}]},
        "taskType": str(ask.task),
        "outputDimensionality": ask.dimension,
    }


def _values(document: object) -> list[object] | Failure:
    """The vectors of either kind of answer; several come in the order they were asked for."""
    members = document if isinstance(document, Mapping) else {}
    items = members.get("embeddings", [members.get("embedding")])
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        return Failure("expected an answer with `embedding` or `embeddings`")
    return [item.get("values") for item in items]
