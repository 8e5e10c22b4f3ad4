"""The batch API of Gemini: each line of a file is one request for one text, under a key."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.embedding.answers import read_json, status_failure, unit_vectors
from omnigraph_core.embedding.batch_client import (
    TRANSFER_SECONDS,
    Batch,
    BatchAnswer,
    BatchState,
)
from omnigraph_core.embedding.client import Failure
from omnigraph_core.embedding.gemini import open_client

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from google.genai.types import BatchJob, HttpOptions
    from numpy.typing import NDArray

    from omnigraph_core.embedding.client import Ask
    from omnigraph_core.embedding.config import EmbedConfig

T = TypeVar("T")

_PAGE: Final = 100
_ENDED: Final = {
    "JOB_STATE_SUCCEEDED": BatchState.COMPLETED,
    "JOB_STATE_PARTIALLY_SUCCEEDED": BatchState.COMPLETED,
    "JOB_STATE_FAILED": BatchState.FAILED,
    "JOB_STATE_CANCELLED": BatchState.CANCELLED,
    "JOB_STATE_EXPIRED": BatchState.EXPIRED,
}
_VERSIONED: Final = re.compile(r"(.*)/(v[0-9][0-9a-z]*)")
_STATUS: Final = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}
"""HTTP's numbers for those of gRPC, which the errors of single requests may have."""


class GeminiBatches:
    def __init__(self, config: EmbedConfig) -> None:
        import httpx2  # here because they load slowly and most commands embed nothing
        from google.genai import errors, types

        self._http, self._errors, self._types = httpx2, errors, types
        self._timeout = config.patience.timeout
        # Follows no redirection: the key would go along.
        self._connections = httpx2.Client()
        self._client = open_client(config, self._options(config.base_url))

    def request_line(self, id: str, text: str, ask: Ask) -> bytes:
        request = {
            "content": {"parts": [{"text": text}]},
            "taskType": ask.task,
            "outputDimensionality": ask.dimension,
        }
        return json.dumps({"key": id, "request": request}).encode() + b"\n"

    def upload(self, path: Path) -> str | Failure:
        def send() -> str | Failure:
            config = self._types.UploadFileConfig(
                mime_type="application/jsonl",
                display_name=path.name,
                http_options=self._within(TRANSFER_SECONDS),
            )
            file = self._client.files.upload(file=path, config=config)
            return file.name or Failure("expected the name of the uploaded file")

        return self._try(send, TRANSFER_SECONDS)

    def create(self, file: str, label: str, ask: Ask) -> Batch | Failure:
        def send() -> Batch | Failure:
            with warnings.catch_warnings():
                # Google calls the method experimental; the locked version is what tests run.
                warnings.filterwarnings("ignore", r"batches\.create_embeddings")
                return _batch(
                    self._client.batches.create_embeddings(
                        model=ask.model,
                        src=self._types.EmbeddingsBatchJobSource(file_name=file),
                        config=self._types.CreateEmbeddingsBatchJobConfig(
                            display_name=label, http_options=self._within(self._timeout)
                        ),
                    )
                )

        return self._try(send, self._timeout)

    def find(self, label: str) -> Batch | Failure | None:
        def search() -> Batch | Failure | None:
            config = self._types.ListBatchJobsConfig(
                page_size=_PAGE, http_options=self._within(self._timeout)
            )
            pages = self._client.batches.list(config=config)
            job = next((item for item in pages if item.display_name == label), None)
            return None if job is None else _batch(job)

        return self._try(search, self._timeout)

    def get(self, id: str) -> Batch | Failure:
        config = self._types.GetBatchJobConfig(http_options=self._within(self._timeout))
        return self._try(
            lambda: _batch(self._client.batches.get(name=id, config=config)), self._timeout
        )

    def download(self, file: str, path: Path) -> Failure | None:
        config = self._types.DownloadFileConfig(http_options=self._within(TRANSFER_SECONDS))

        def receive() -> None:
            self._client.files.download(file=file, destination=path, config=config)

        return self._try(receive, TRANSFER_SECONDS)

    def delete_file(self, file: str) -> Failure | None:
        config = self._types.DeleteFileConfig(http_options=self._within(self._timeout))

        def delete() -> None:
            self._client.files.delete(name=file, config=config)

        return self._try(delete, self._timeout)

    def read_answer(self, line: bytes, dimension: int) -> BatchAnswer | Failure:
        document = read_json(line)
        if isinstance(document, Failure):
            return document
        id = document.get("key") if isinstance(document, Mapping) else None
        if not isinstance(document, Mapping) or not isinstance(id, str):
            return Failure("expected an answer with a `key`")
        return BatchAnswer(id, _vector(document, dimension))

    def close(self) -> None:
        self._client.close()
        self._connections.close()

    def _options(self, base_url: str) -> HttpOptions:
        """Files are uploaded to an address with the version in its midst, so it is told apart."""
        types = self._types
        options: HttpOptions = types.HttpOptions(
            base_url=base_url,
            retry_options=types.HttpRetryOptions(attempts=1),
            httpx_client=self._connections,
        )
        if versioned := _VERSIONED.fullmatch(base_url):
            options.base_url, options.api_version = versioned.groups()
        else:
            options.base_url_resource_scope = types.ResourceScope.COLLECTION
        return options

    def _within(self, seconds: float) -> HttpOptions:
        options: HttpOptions = self._types.HttpOptions(timeout=math.ceil(seconds * 1000))
        return options

    def _try(self, call: Callable[[], T | Failure], timeout: float) -> T | Failure:
        try:
            return call()
        except self._errors.APIError as problem:
            said = {"error": {"message": problem.message or problem.status or str(problem)}}
            headers = getattr(problem.response, "headers", None) or {}
            return status_failure(problem.code, headers, json.dumps(said).encode())
        except self._http.TimeoutException:
            return Failure(f"no answer within {timeout:g} s", is_retryable=True)
        except self._http.RequestError as problem:
            return Failure(f"no connection: {problem}", is_retryable=True)
        except (self._http.InvalidURL, KeyError, ValueError) as problem:
            # What Google's client says of answers it cannot read.
            return Failure(f"the client and the service do not understand each other: {problem}")


def _batch(job: BatchJob) -> Batch | Failure:
    if not job.name:
        return Failure("expected the name of a batch")
    state = BatchState.RUNNING if job.state is None else _ENDED.get(job.state, BatchState.RUNNING)
    file = None if job.dest is None else job.dest.file_name
    reason = "" if job.error is None else job.error.message or ""
    return Batch(job.name, state, reason, (file,) if file else ())


def _vector(document: Mapping[str, object], dimension: int) -> NDArray[np.float32] | Failure:
    error, response = document.get("error"), document.get("response")
    if isinstance(error, Mapping):
        code = error.get("code")
        status = _STATUS.get(code, code) if type(code) is int else 400
        return status_failure(status, {}, json.dumps({"error": error}).encode())
    embedding = response.get("embedding") if isinstance(response, Mapping) else None
    if not isinstance(embedding, Mapping):
        return Failure("expected an answer with a `response` and its `embedding`")
    vectors = unit_vectors([embedding.get("values")], 1, dimension)
    return vectors if isinstance(vectors, Failure) else vectors[0]
