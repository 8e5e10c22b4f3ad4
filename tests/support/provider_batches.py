"""The batch APIs of OpenAI and Gemini, as a local service speaks them: files, batches, answers.

Batches run until they were looked at twice, or as long as a test holds them. What they answer can
be changed before it is sent; what was submitted is remembered.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter, deque
from dataclasses import dataclass, field
from email.parser import BytesParser
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from omnigraph_core.embedding.mock import mock_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SCALE = 3.0
"""Vectors are sent longer than 1, as providers may."""
_GEMINI_STATES = {
    "in_progress": "BATCH_STATE_RUNNING",
    "completed": "BATCH_STATE_SUCCEEDED",
    "failed": "BATCH_STATE_FAILED",
    "expired": "BATCH_STATE_EXPIRED",
    "cancelled": "BATCH_STATE_CANCELLED",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer other than the right one. A body that is no text or bytes is sent as JSON."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_withheld: bool = False
    """Nothing is sent until the client has gone or the server closes."""


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def name(self) -> str:
        """What is called, without ids: `POST batches`, `GET files/content`."""
        path = urlsplit(self.path).path.replace("upload/", "")
        if ":asyncBatchEmbedContent" in path:
            return "POST batches"
        kind, *rest = path.removeprefix("/v1/").split("/")
        is_content = rest[-1:] == ["content"] or any(part.endswith(":download") for part in rest)
        suffix = "/content" if is_content else "/one" if rest else ""
        return f"{self.method} {kind}{suffix}"


@dataclass(slots=True)
class Job:
    id: str
    label: str
    file: str
    model: str
    is_gemini: bool
    looks: int = 0
    state: str = "in_progress"
    output: str | None = None
    errors: str | None = None
    reasons: list[dict[str, str]] = field(default_factory=list)


def is_batch_path(path: str) -> bool:
    return re.search(r"/v1/(files|batches)|:asyncBatchEmbedContent", path) is not None


class ProviderBatches:
    """Files and batches of one account. `url` tells the address of the service."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._released = threading.Event()
        self._replies: dict[str, deque[Reply]] = {}
        self._uploads: dict[str, bytes] = {}
        self.calls: list[str] = []
        self.files: dict[str, bytes] = {}
        self.jobs: dict[str, Job] = {}
        self.texts: list[list[str]] = []
        """Of each batch that was submitted."""
        self.is_held = False
        """Batches go on running."""
        self.refusals: dict[str, tuple[int, str]] = {}
        """Texts that get a status and a message instead of a vector."""
        self.ends: deque[tuple[str, int]] = deque()
        """How the next batches end other than completed, and how many texts are answered then."""
        self.reasons: list[dict[str, str]] = []
        """Why batches fail."""
        self.change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list
        """What becomes of the answers of a batch before they are sent."""

    def queue(self, name: str, *replies: Reply) -> None:
        """Answer the next calls of that name like this; a withheld reply does what is asked."""
        self._replies.setdefault(name, deque()).extend(replies)

    def release(self) -> None:
        """Answer whatever is withheld."""
        self._released.set()

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.calls)

    def answer(self, call: Call) -> Reply:
        with self._lock:
            self.calls.append(call.name)
            queued = self._replies.get(call.name)
            reply = queued.popleft() if queued else None
            if reply is None or reply.is_withheld:
                right = self._right(call)
        if reply is None:
            return right
        if reply.is_withheld:
            self._released.wait(120)
            return right
        return reply

    def _right(self, call: Call) -> Reply:
        is_gemini = "x-goog-api-key" in call.headers or "x-goog-upload-command" in call.headers
        made = self._gemini(call) if is_gemini else self._openai(call)
        return made or Reply(status=404, body={"error": {"message": f"no such thing: {call.path}"}})

    # OpenAI

    def _openai(self, call: Call) -> Reply | None:
        path = urlsplit(call.path).path.removeprefix("/v1/")
        kind, *rest = path.split("/")
        match call.method, kind, rest:
            case "POST", "files", []:
                return self._openai_upload(call)
            case "GET", "files", [file, "content"] if file in self.files:
                return Reply(body=self.files[file])
            case "DELETE", "files", [file] if file in self.files:
                del self.files[file]
                return Reply(body={"id": file, "object": "file", "deleted": True})
            case "POST", "batches", []:
                given = json.loads(call.content)
                assert (given["endpoint"], given["completion_window"]) == ("/v1/embeddings", "24h")
                label = given["metadata"]["omnigraph_batch"]
                return Reply(body=self._shown(self._create(label, given["input_file_id"], "")))
            case "GET", "batches", []:
                jobs = [self._shown(job) for job in reversed(self.jobs.values())]
                return Reply(body={"object": "list", "data": jobs, "has_more": False})
            case "GET", "batches", [id] if id in self.jobs:
                return Reply(body=self._shown(self._look(id)))
        return None

    def _openai_upload(self, call: Call) -> Reply:
        header = f"content-type: {call.headers['content-type']}\r\n\r\n".encode()
        parts = BytesParser().parsebytes(header + call.content).get_payload()
        fields: dict[Any, Any] = {
            part.get_param("name", header="content-disposition"): part  # type: ignore[union-attr]
            for part in parts
        }
        assert fields["purpose"].get_payload() == "batch"
        file = self._keep(fields["file"].get_payload(decode=True))
        size = len(self.files[file])
        facts = {"id": file, "object": "file", "bytes": size, "created_at": 0, "purpose": "batch"}
        return Reply(body={**facts, "filename": "texts.jsonl", "status": "processed"})

    def _shown(self, job: Job) -> dict[str, object]:
        if job.is_gemini:
            metadata: dict[str, object] = {
                "state": _GEMINI_STATES[job.state],
                "displayName": job.label,
                "model": job.model,
            }
            if job.output is not None:
                metadata["output"] = {"responsesFile": job.output}
            return {"name": job.id, "metadata": metadata}
        return {
            "id": job.id,
            "object": "batch",
            "endpoint": "/v1/embeddings",
            "input_file_id": job.file,
            "completion_window": "24h",
            "created_at": 0,
            "status": job.state,
            "metadata": {"omnigraph_batch": job.label},
            "output_file_id": job.output,
            "error_file_id": job.errors,
            "errors": {"object": "list", "data": job.reasons} if job.reasons else None,
        }

    # Gemini

    def _gemini(self, call: Call) -> Reply | None:
        address = urlsplit(call.path)
        if address.path == "/upload/v1/files":
            return self._gemini_upload(call, parse_qs(address.query).get("upload", []))
        path = address.path.removeprefix("/v1/")
        if path.endswith(":asyncBatchEmbedContent"):
            given = json.loads(call.content)["batch"]
            model = path.partition(":")[0]
            job = self._create(given["displayName"], given["inputConfig"]["file_name"], model)
            return Reply(body=self._shown(job))
        if call.method == "GET" and path == "batches":
            return Reply(body={"operations": [self._shown(job) for job in self.jobs.values()]})
        if call.method == "GET" and path in self.jobs:
            return Reply(body=self._shown(self._look(path)))
        if call.method == "GET" and path.removesuffix(":download") in self.files:
            return Reply(body=self.files[path.removesuffix(":download")])
        if call.method == "DELETE" and path in self.files:
            del self.files[path]
            return Reply(body={})
        return None

    def _gemini_upload(self, call: Call, begun: Sequence[str]) -> Reply:
        if not begun:
            upload = f"u{next(self._numbers)}"
            self._uploads[upload] = b""
            address = f"{self._url().removesuffix('/v1')}/upload/v1/files?upload={upload}"
            return Reply(body={}, headers={"x-goog-upload-url": address})
        self._uploads[begun[0]] += call.content
        if "finalize" not in call.headers["x-goog-upload-command"]:
            return Reply(headers={"x-goog-upload-status": "active"})
        file = self._keep(self._uploads.pop(begun[0]), prefix="files/")
        return Reply(body={"file": {"name": file}}, headers={"x-goog-upload-status": "final"})

    # Both

    def _keep(self, content: bytes, prefix: str = "file-") -> str:
        file = f"{prefix}{next(self._numbers)}"
        self.files[file] = content
        return file

    def _create(self, label: str, file: str, model: str) -> Job:
        is_gemini = file.startswith("files/")
        id = f"{'batches/b' if is_gemini else 'batch_'}{next(self._numbers)}"
        lines = self._requests(file)
        ids = [id for id, _, _ in lines]
        assert len(set(ids)) == len(ids), "ids of requests differ"
        self.texts.append([text for _, text, _ in lines])
        self.jobs[id] = Job(id, label, file, model, is_gemini)
        return self.jobs[id]

    def _requests(self, file: str) -> list[tuple[str, str, int]]:
        """Ids, texts and dimensions."""
        found = []
        for given in map(json.loads, self.files[file].splitlines()):
            if "custom_id" in given:
                assert (given["method"], given["url"]) == ("POST", "/v1/embeddings")
                (text,) = given["body"]["input"]
                found.append((given["custom_id"], text, given["body"]["dimensions"]))
            else:
                request = given["request"]
                assert request["taskType"] == "RETRIEVAL_DOCUMENT"
                text = request["content"]["parts"][0]["text"]
                found.append((given["key"], text, request["outputDimensionality"]))
        return found

    def _look(self, id: str) -> Job:
        job = self.jobs[id]
        job.looks += 1
        if job.state == "in_progress" and job.looks >= 2 and not self.is_held:
            self._end(job)
        return job

    def _end(self, job: Job) -> None:
        lines = self._requests(job.file)
        job.state, answered = self.ends.popleft() if self.ends else ("completed", len(lines))
        job.reasons = self.reasons if job.state == "failed" else []
        good, bad = [], []
        for id, text, dimension in lines[:answered]:
            refusal = self.refusals.get(text)
            if refusal is None:
                good.append(_answer(id, long_vectors([text], dimension)[0], job))
            else:
                bad.append(_refusal(id, *refusal, job))
        if not answered:
            return
        good = self.change(good)
        prefix = "files/" if job.is_gemini else "file-"
        if job.is_gemini:
            good, bad = good + bad, []
        job.output = self._keep(_lines(good), prefix)
        job.errors = self._keep(_lines(bad), prefix) if bad else None


def _answer(id: str, vector: list[float], job: Job) -> dict[str, Any]:
    if job.is_gemini:
        return {"key": id, "response": {"embedding": {"values": vector}}}
    body = {"object": "list", "data": [{"index": 0, "embedding": vector}]}
    return {"custom_id": id, "response": {"status_code": 200, "body": body}, "error": None}


def _refusal(id: str, status: int, message: str, job: Job) -> dict[str, Any]:
    error = {"code": status, "message": message}
    if job.is_gemini:
        return {"key": id, "error": error}
    response = {"status_code": status, "body": {"error": error}}
    return {"custom_id": id, "response": response, "error": None}


def _lines(items: Sequence[object]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


def long_vectors(texts: Sequence[str], dimension: int) -> list[list[float]]:
    vectors: list[list[float]] = (SCALE * mock_vectors(texts, dimension)).tolist()
    return vectors
