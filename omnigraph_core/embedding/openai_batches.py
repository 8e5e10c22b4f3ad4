"""The batch API of OpenAI: each line of a file is one request for one text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from omnigraph_core.embedding.answers import read_json, status_failure
from omnigraph_core.embedding.batch_client import (
    TRANSFER_SECONDS,
    Batch,
    BatchAnswer,
    BatchState,
)
from omnigraph_core.embedding.client import Failure
from omnigraph_core.embedding.openai import open_client, read_vectors, try_call

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from openai.types import Batch as OpenAIBatch

    from omnigraph_core.embedding.client import Ask
    from omnigraph_core.embedding.config import EmbedConfig

_LABEL: Final = "omnigraph_batch"
"""The key of our label in the metadata of a batch."""
_PAGE: Final = 100
_ENDED: Final = {
    "completed": BatchState.COMPLETED,
    "failed": BatchState.FAILED,
    "expired": BatchState.EXPIRED,
    "cancelled": BatchState.CANCELLED,
}
_QUEUE_FULL: Final = "token_limit_exceeded"
_EXPIRED: Final = "batch_expired"
_CANCELLED: Final = "batch_cancelled"


class OpenAIBatches:
    def __init__(self, config: EmbedConfig) -> None:
        self._client, self._headers = open_client(config)
        self._timeout = config.patience.timeout

    def request_line(self, id: str, text: str, ask: Ask) -> bytes:
        body = {"model": ask.model, "input": [text], "dimensions": ask.dimension}
        request = {"custom_id": id, "method": "POST", "url": "/v1/embeddings", "body": body}
        return json.dumps(request).encode() + b"\n"

    def upload(self, path: Path) -> str | Failure:
        def send() -> str:
            # An open file is sent part by part; of a path the client would read the whole.
            with path.open("rb") as content:
                created = self._client.files.create(
                    file=(path.name, content),
                    purpose="batch",
                    extra_headers=self._headers,
                    timeout=TRANSFER_SECONDS,
                )
            return created.id

        return try_call(send, TRANSFER_SECONDS)

    def create(self, file: str, label: str, ask: Ask) -> Batch | Failure:
        return try_call(
            lambda: _batch(
                self._client.batches.create(
                    input_file_id=file,
                    endpoint="/v1/embeddings",
                    completion_window="24h",
                    metadata={_LABEL: label},
                    extra_headers=self._headers,
                    timeout=self._timeout,
                )
            ),
            self._timeout,
        )

    def find(self, label: str) -> Batch | Failure | None:
        def search() -> Batch | None:
            pages = self._client.batches.list(
                limit=_PAGE, extra_headers=self._headers, timeout=self._timeout
            )
            found = (item for item in pages if (item.metadata or {}).get(_LABEL) == label)
            batch = next(found, None)
            return None if batch is None else _batch(batch)

        return try_call(search, self._timeout)

    def get(self, id: str) -> Batch | Failure:
        return try_call(
            lambda: _batch(
                self._client.batches.retrieve(
                    id, extra_headers=self._headers, timeout=self._timeout
                )
            ),
            self._timeout,
        )

    def download(self, file: str, path: Path) -> Failure | None:
        def receive() -> None:
            streaming = self._client.files.with_streaming_response
            with streaming.content(
                file, extra_headers=self._headers, timeout=TRANSFER_SECONDS
            ) as answer:
                answer.stream_to_file(path)

        return try_call(receive, TRANSFER_SECONDS)

    def delete_file(self, file: str) -> Failure | None:
        def delete() -> None:
            self._client.files.delete(file, extra_headers=self._headers, timeout=self._timeout)

        return try_call(delete, self._timeout)

    def read_answer(self, line: bytes, dimension: int) -> BatchAnswer | Failure:
        document = read_json(line)
        if isinstance(document, Failure):
            return document
        id = document.get("custom_id") if isinstance(document, Mapping) else None
        if not isinstance(document, Mapping) or not isinstance(id, str):
            return Failure("expected an answer with a `custom_id`")
        return BatchAnswer(id, _vector(document, dimension))

    def close(self) -> None:
        self._client.close()


def _batch(given: OpenAIBatch) -> Batch:
    errors = given.errors.data or [] if given.errors is not None else []
    return Batch(
        given.id,
        _ENDED.get(given.status, BatchState.RUNNING),
        "; ".join(error.message for error in errors if error.message),
        tuple(file for file in (given.output_file_id, given.error_file_id) if file),
        is_queue_full=any(error.code == _QUEUE_FULL for error in errors),
    )


def _vector(document: Mapping[str, object], dimension: int) -> NDArray[np.float32] | Failure:
    error, response = document.get("error"), document.get("response")
    if isinstance(error, Mapping):
        is_unfinished = error.get("code") in (_EXPIRED, _CANCELLED)
        return Failure(str(error.get("message") or error), is_retryable=is_unfinished)
    status = response.get("status_code") if isinstance(response, Mapping) else None
    if not isinstance(response, Mapping) or type(status) is not int:
        return Failure("expected an answer with a `response` and its `status_code`")
    body = response.get("body")
    if status // 100 != 2:
        return status_failure(status, {}, json.dumps(body).encode())
    vectors = read_vectors(body, 1, dimension)
    return vectors if isinstance(vectors, Failure) else vectors[0]
