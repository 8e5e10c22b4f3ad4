"""Both protocols against a local service: what is sent, what is believed, what is repeated."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import numpy as np
import pytest

from omnigraph_core.embedding.embedder import Embedder, Task
from omnigraph_core.embedding.mock import mock_vectors
from omnigraph_core.errors import EmbeddingError
from tests.support.embedding_server import EmbeddingServer, Reply
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    Connect = Callable[..., Embedder]

BOTH = pytest.mark.parametrize("provider", ["openai", "gemini"])


def embed(embedder: Embedder, *texts: str, task: Task = Task.DOCUMENT) -> np.ndarray:
    return embedder.embed(texts, dimension=4, task=task)


def answer(provider: str, *vectors: object) -> Reply:
    """An answer of that provider."""
    if provider == "openai":
        items = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        return Reply(body={"data": items})
    return Reply(body={"embeddings": [{"values": vector} for vector in vectors]})


@BOTH
def test_vectors_are_normalised_and_in_order(
    server: EmbeddingServer, connect: Connect, provider: str
) -> None:
    texts = ["alpha", "beta", "héllo"]
    found = embed(connect(server.url, provider), *texts)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, mock_vectors(texts, 4), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_what_openai_is_sent(server: EmbeddingServer, connect: Connect) -> None:
    embed(connect(server.url, "openai"), "alpha", "beta")
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert request.body == {
        "model": "text-embedding-3-small",
        "input": ["alpha", "beta"],
        "dimensions": 4,
    }


@pytest.mark.parametrize("texts", [["alpha"], ["alpha", "beta", "gamma"]], ids=len)
@pytest.mark.parametrize("model", ["gemini-embedding-001", "gemini-embedding-2-preview"])
def test_what_gemini_is_sent(
    server: EmbeddingServer, connect: Connect, model: str, texts: list[str]
) -> None:
    """Each text for itself: of several strings Google's client makes one vector with new models."""
    embedder = connect(f"{server.url}/", "gemini")
    for name in (model, f"models/{model}"):
        found = embedder.embed(texts, dimension=4, task=Task.QUERY, model=name)
        np.testing.assert_allclose(found, mock_vectors(texts, 4), atol=1e-6)
    for request in server.requests:
        assert request.path == f"/v1/models/{model}:batchEmbedContents"
        assert request.headers["x-goog-api-key"] == "gm-secret"
        assert "authorization" not in request.headers
        assert request.body == {
            "requests": [
                {
                    "model": f"models/{model}",
                    "content": {"parts": [{"text": text}]},
                    "taskType": "RETRIEVAL_QUERY",
                    "outputDimensionality": 4,
                }
                for text in texts
            ]
        }
    assert len(server.requests) == 2


def test_google_is_told_by_our_settings_alone(
    server: EmbeddingServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    embed(connect(server.url, "gemini"), "alpha")
    for name, value in {
        "GOOGLE_API_KEY": "another-secret",
        "GOOGLE_API_USE_CLIENT_CERTIFICATE": "true",
        "GOOGLE_API_USE_MTLS_ENDPOINT": "always",
        "GOOGLE_APPLICATION_CREDENTIALS": "/none/such.json",
        "GOOGLE_CLOUD_LOCATION": "nowhere",
        "GOOGLE_CLOUD_PROJECT": "none",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1",
        "GOOGLE_GENAI_API_VERSION": "v9",
        "GOOGLE_GENAI_CLIENT_MODE": "replay",
        "GOOGLE_GENAI_HTTP_CLIENT": "another",
        "GOOGLE_GENAI_USE_ENTERPRISE": "true",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
    }.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level("DEBUG"):
        embed(connect(server.url, "gemini"), "alpha")
    assert server.requests[0] == server.requests[1]
    assert "GOOGLE" not in caplog.text, "the client warns of keys that it does not use"
    assert "secret" not in caplog.text, "keys are never logged"


def test_a_package_google_cannot_use(server: EmbeddingServer, connect: Connect) -> None:
    embedder = connect(server.url, "gemini", GOOGLE_GENAI_HTTP_CLIENT="httpx")
    with pytest.raises(EmbeddingError, match="cannot be used") as caught:
        embed(embedder, "alpha")
    assert "GOOGLE_GENAI_HTTP_CLIENT" in str(caught.value.hint)


def test_a_service_without_a_key_gets_no_header(
    server: EmbeddingServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = connect(server.url, "openai-compatible")
    monkeypatch.delenv("OPENAI_API_KEY")
    embed(embedder, "alpha")
    assert "authorization" not in server.requests[0].headers


def test_a_declared_model_is_asked_for(server: EmbeddingServer, connect: Connect) -> None:
    embedder = connect(server.url, "openai", OMNIGRAPH_EMBED_MODEL="usual")
    embedder.embed(["alpha"], dimension=4, task=Task.DOCUMENT, model="declared")
    embed(embedder, "alpha")
    assert [request.body["model"] for request in server.requests] == ["declared", "usual"]
    assert embedder.model_for("declared") == "declared"
    assert embedder.model_for(None) == "usual"


@BOTH
def test_texts_are_sent_once_in_batches(
    server: EmbeddingServer, connect: Connect, provider: str
) -> None:
    texts = ["a", "b", "a", "c", "b", "d", "a"]
    found = embed(connect(server.url, provider, OMNIGRAPH_EMBED_BATCH="3"), *texts)
    assert sorted(len(request.texts) for request in server.requests) == [1, 3]
    assert sorted(server.texts) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(found, mock_vectors(texts, 4), atol=1e-6)


def test_long_texts_make_small_batches(server: EmbeddingServer, connect: Connect) -> None:
    texts = ["x" * 150_000, "y" * 150_000, "z", "w" * 300_000]
    embed(connect(server.url, "openai"), *texts)
    sizes = [[text[0] for text in request.texts] for request in server.requests]
    assert sorted(sizes) == [["w"], ["x"], ["y", "z"]]


@BOTH
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_repeated(
    server: EmbeddingServer, connect: Connect, provider: str, status: int
) -> None:
    server.queue(Reply(status, {"error": {"message": "busy"}}, {"retry-after": "0"}))
    embed(connect(server.url, provider), "alpha")
    assert [request.texts for request in server.requests] == [["alpha"], ["alpha"]]
    assert server.requests[0].body == server.requests[1].body


@BOTH
def test_attempts_are_counted(server: EmbeddingServer, connect: Connect, provider: str) -> None:
    server.queue(*[Reply(500, {"error": {"message": "out of order"}})] * 9)
    embedder = connect(server.url, provider, OMNIGRAPH_EMBED_RETRY_ATTEMPTS="3")
    with pytest.raises(EmbeddingError, match="HTTP 500: out of order") as caught:
        embed(embedder, "alpha")
    assert len(server.requests) == 3
    assert caught.value.retryable
    assert provider in caught.value.message
    assert embedder.model_for(None) in caught.value.message
    assert "attempt 3 of 3" in caught.value.message


@BOTH
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_repeated(
    server: EmbeddingServer, connect: Connect, provider: str, status: int
) -> None:
    server.queue(Reply(status, {"error": {"message": f"no: {'sk-secret gm-secret'}"}}))
    with pytest.raises(EmbeddingError, match=f"HTTP {status}: no: ") as caught:
        embed(connect(server.url, provider), "alpha")
    assert len(server.requests) == 1
    assert not caught.value.retryable
    key_name, key = {"openai": ("OPENAI_API_KEY", "sk-"), "gemini": ("GEMINI_API_KEY", "gm-")}[
        provider
    ]
    assert f"{key}secret" not in str(caught.value), "keys are never shown"
    assert (caught.value.hint == f"check {key_name}") == (status in (401, 403))


@BOTH
def test_a_silent_service_is_given_up(
    server: EmbeddingServer, connect: Connect, provider: str
) -> None:
    server.queue(*[Reply(is_withheld=True)] * 9)
    embedder = connect(
        server.url,
        provider,
        OMNIGRAPH_EMBED_TIMEOUT_MS="500",
        OMNIGRAPH_EMBED_RETRY_ATTEMPTS="2",
    )
    with pytest.raises(EmbeddingError, match=r"no answer within 0\.5 s") as caught:
        embed(embedder, "alpha")
    # A busy server may read the last request after the client has given it up.
    wait_until(lambda: len(server.requests) == 2, "both requests to arrive")
    assert caught.value.retryable


@BOTH
def test_no_one_listens(connect: Connect, provider: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    embedder = connect(f"http://127.0.0.1:{port}/v1", provider)
    with pytest.raises(EmbeddingError, match=r"attempt 4 of 4.*no connection: ") as caught:
        embed(embedder, "alpha")
    assert caught.value.retryable


@BOTH
def test_a_deadline_ends_the_repetitions(
    server: EmbeddingServer, connect: Connect, provider: str
) -> None:
    server.queue(*[Reply(429, {"error": {"message": "busy"}}, {"retry-after": "30"})] * 9)
    embedder = connect(server.url, provider, OMNIGRAPH_EMBED_DEADLINE_MS="2000")
    with pytest.raises(EmbeddingError, match="attempt 1 of 4"):
        embed(embedder, "alpha")
    assert len(server.requests) == 1


WRONG = {
    "a vector too few": ([[1, 2, 3, 4]], "expected 2 vectors, found 1"),
    "a vector too many": ([[1, 2, 3, 4]] * 3, "expected 2 vectors, found 3"),
    "short": ([[1, 2, 3, 4], [1, 2, 3]], "vector 1: expected 4 numbers, found 3"),
    "long": ([[1, 2, 3, 4, 5], [1, 2, 3, 4]], "vector 0: expected 4 numbers, found 5"),
    "not a number": ([[1, 2, 3, 4], [1, float("nan"), 3, 4]], "vector 1: expected finite numbers"),
    "infinite": ([[float("inf"), 2, 3, 4], [1, 2, 3, 4]], "vector 0: expected finite numbers"),
    "zero": ([[1, 2, 3, 4], [0, 0, 0, 0]], "vector 1: expected a direction, found only zeros"),
    "text": ([[1, 2, 3, 4], ["1", "2", "3", "4"]], "vector 1: expected a list of numbers"),
    "truth": ([[1, 2, 3, 4], [True, 2, 3, 4]], "vector 1: expected a list of numbers"),
    "null": ([[1, 2, 3, 4], None], "vector 1: expected a list of numbers"),
}


@BOTH
@pytest.mark.parametrize(("vectors", "message"), WRONG.values(), ids=WRONG)
def test_wrong_vectors_are_refused(
    server: EmbeddingServer,
    connect: Connect,
    provider: str,
    vectors: list[object],
    message: str,
) -> None:
    server.queue(answer(provider, *vectors))
    with pytest.raises(EmbeddingError) as caught:
        embed(connect(server.url, provider), "alpha", "beta")
    assert caught.value.message.endswith(message)
    assert not caught.value.retryable
    assert len(server.requests) == 1


@BOTH
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<html>", "expected a JSON answer, found '<html>'"),
        ("", "expected a JSON answer, found an empty answer"),
        (b"\xff\xfe", "expected a JSON answer"),
        ([], "expected an answer with"),
        ({}, "expected an answer with"),
        ({"data": 1, "embeddings": 1}, "expected an answer with"),
    ],
)
def test_wrong_documents_are_refused(
    server: EmbeddingServer, connect: Connect, provider: str, body: object, message: str
) -> None:
    server.queue(Reply(body=body))
    with pytest.raises(EmbeddingError) as caught:
        embed(connect(server.url, provider), "alpha")
    assert message in caught.value.message
    assert not caught.value.retryable
    assert len(server.requests) == 1


def test_openai_vectors_are_put_in_order(server: EmbeddingServer, connect: Connect) -> None:
    items = [
        {"index": 1, "embedding": [0, 2, 0, 0]},
        {"index": 0, "embedding": [2, 0, 0, 0]},
    ]
    server.queue(Reply(body={"data": items}))
    found = embed(connect(server.url, "openai"), "alpha", "beta")
    assert found.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]


@pytest.mark.parametrize("indices", [(0, 0), (1, 2), (0, None), (0, "1")])
def test_openai_indices_must_count(
    server: EmbeddingServer, connect: Connect, indices: tuple[object, ...]
) -> None:
    items = [{"index": index, "embedding": [1, 2, 3, 4]} for index in indices]
    server.queue(Reply(body={"data": items}))
    with pytest.raises(EmbeddingError, match="expected the indices 0 to 1, found "):
        embed(connect(server.url, "openai"), "alpha", "beta")


@BOTH
def test_great_numbers_are_normalised(
    server: EmbeddingServer, connect: Connect, provider: str
) -> None:
    server.queue(answer(provider, [3e300, 0, 0, 4e300]))
    found = embed(connect(server.url, provider), "alpha")
    np.testing.assert_allclose(found, [[0.6, 0, 0, 0.8]], atol=1e-6)


@pytest.mark.parametrize(
    "body",
    [{"error": "plain words"}, {"message": "plain words"}, "plain words"],
)
def test_reasons_in_other_places_are_shown(
    server: EmbeddingServer, connect: Connect, body: object
) -> None:
    server.queue(Reply(404, body))
    with pytest.raises(EmbeddingError, match=r"HTTP 404: '?plain words"):
        embed(connect(server.url, "openai-compatible"), "alpha")


@BOTH
def test_a_missing_key_is_named_when_a_vector_is_needed(
    server: EmbeddingServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
) -> None:
    embedder = connect(server.url, provider)
    name = {"openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}[provider]
    monkeypatch.delenv(name)
    assert embed(embedder).shape == (0, 4)
    assert embedder.model_for(None)
    with pytest.raises(EmbeddingError, match=f"{name} is not set"):
        embed(embedder, "alpha")
    assert server.requests == []


@BOTH
def test_a_wait_of_ages_is_none(server: EmbeddingServer, connect: Connect, provider: str) -> None:
    server.queue(Reply(429, {}, {"retry-after": f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT"}))
    embed(connect(server.url, provider), "alpha")
    assert len(server.requests) == 2


@BOTH
def test_requests_that_cannot_be_written(
    server: EmbeddingServer, connect: Connect, provider: str
) -> None:
    embedder = connect(server.url, provider)
    with pytest.raises(EmbeddingError, match="the request cannot be written") as caught:
        embedder.embed(["alpha"], dimension=4, task=Task.QUERY, model="\ud800")
    assert not caught.value.retryable
    with pytest.raises(EmbeddingError, match="the request cannot be written"):
        embed(embedder, "alpha\ud800")
    assert server.requests == []


@pytest.mark.parametrize("model", ["a\nb", "a?b"])
def test_a_model_no_address_can_hold(server: EmbeddingServer, connect: Connect, model: str) -> None:
    embedder = connect(server.url, "gemini")
    with pytest.raises(EmbeddingError, match="the request cannot be written"):
        embedder.embed(["alpha"], dimension=4, task=Task.QUERY, model=model)
    assert server.requests == []


def test_a_redirection_to_nowhere(server: EmbeddingServer, connect: Connect) -> None:
    server.queue(Reply(307, {}, {"location": f"http://{'a' * 70}.example/v1"}))
    with pytest.raises(EmbeddingError, match="the request cannot be written"):
        embed(connect(server.url, "openai"), "alpha")


def test_the_key_of_gemini_follows_no_redirection(
    server: EmbeddingServer, connect: Connect
) -> None:
    server.queue(Reply(307, {}, {"location": f"{server.url}/elsewhere"}))
    with pytest.raises(EmbeddingError, match="HTTP 307"):
        embed(connect(server.url, "gemini"), "alpha")
    assert len(server.requests) == 1


@BOTH
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "bad://me:secret@host"),
        ("ALL_PROXY", "http://me:secret@[::1"),
        ("SSL_CERT_FILE", "/none/such.pem"),
    ],
)
def test_surroundings_no_client_can_use(
    server: EmbeddingServer, connect: Connect, provider: str, name: str, value: str
) -> None:
    embedder = connect(server.url, provider, **{name: value})
    with pytest.raises(EmbeddingError, match="cannot be used") as caught:
        embed(embedder, "alpha")
    assert name in str(caught.value.hint)
    assert "secret" not in str(caught.value)
    assert server.requests == []


def test_dimension_zero_is_refused(server: EmbeddingServer, connect: Connect) -> None:
    embedder = connect(server.url, "openai")
    with pytest.raises(EmbeddingError, match="expected a dimension above zero, found 0"):
        embedder.embed(["alpha"], dimension=0, task=Task.QUERY)
    assert server.requests == []
