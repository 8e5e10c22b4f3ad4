"""How often and after which waits a batch is asked for."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest

from omnigraph_core.embedding.answers import status_failure
from omnigraph_core.embedding.client import Ask, Failure, Task
from omnigraph_core.embedding.config import EmbedConfig, Patience, Provider
from omnigraph_core.embedding.retry import ask_patiently
from omnigraph_core.errors import EmbeddingError
from tests.support.cases import each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ASK = Ask("some-model", 2, Task.DOCUMENT)
GOOD = np.array([[0.6, 0.8]], np.float32)
BUSY = Failure("busy", is_retryable=True)


class Free:
    """A limiter that lets everybody go, and remembers pauses."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def acquire(self, tokens: int, stop: threading.Event) -> bool:
        return True

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


FREE = Free()


class Scripted:
    """A client that gives the answers it was given."""

    def __init__(self, *answers: NDArray[np.float32] | Failure) -> None:
        self.answers = list(answers)
        self.timeouts: list[float] = []

    def vectors(
        self, texts: Sequence[str], ask: Ask, *, timeout: float
    ) -> NDArray[np.float32] | Failure:
        self.timeouts.append(timeout)
        return self.answers.pop(0)

    def close(self) -> None: ...


class Waits(threading.Event):
    """Remembers waits and takes no time over them."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return self.is_set()


def patient(**patience: float | int | None) -> EmbedConfig:
    return EmbedConfig(
        Provider.OPENAI, "usual", key="sk-1", key_name="KEY", patience=Patience(**patience)
    )


def test_waits_double_up_to_ten_times() -> None:
    client, waits = Scripted(*[BUSY] * 14, GOOD), Waits()
    found = ask_patiently(client, ["a"], ASK, patient(attempts=20, backoff=0.5), FREE, waits)
    assert found is GOOD
    assert waits.seconds == [0.5 * 2 ** min(k, 10) for k in range(14)]


def test_the_last_attempt_is_not_followed_by_a_wait() -> None:
    client, waits = Scripted(*[BUSY] * 4), Waits()
    with pytest.raises(EmbeddingError, match=r"openai failed to embed with some-model \(attempt 4"):
        ask_patiently(client, ["a"], ASK, patient(), FREE, waits)
    assert len(waits.seconds) == 3
    assert client.timeouts == [30.0] * 4


def test_the_provider_may_ask_to_wait_longer_within_bounds() -> None:
    answers = [Failure("busy", is_retryable=True, retry_after=s) for s in (0.01, 7, 3600)]
    client, waits = Scripted(*answers, GOOD), Waits()
    ask_patiently(client, ["a"], ASK, patient(backoff=0.5), FREE, waits)
    assert waits.seconds == [0.5, 7, 60]


def test_everybody_waits_when_the_provider_asks_one_to() -> None:
    answers = [
        Failure("busy", is_retryable=True),
        Failure("busy", is_retryable=True, is_throttled=True),
        Failure("busy", is_retryable=True, retry_after=7),
    ]
    limiter = Free()
    config = patient(backoff=0.5)
    assert ask_patiently(Scripted(*answers, GOOD), ["a"], ASK, config, limiter, Waits()) is GOOD
    assert limiter.pauses == [1.0, 7]
    assert status_failure(429, {}, b"").is_throttled


def test_a_refusal_ends_at_once() -> None:
    client, waits = Scripted(Failure("no sk-1", is_denied=True)), Waits()
    with pytest.raises(EmbeddingError) as caught:
        ask_patiently(client, ["a"], ASK, patient(), FREE, waits)
    assert caught.value.message == "openai failed to embed with some-model: no ***"
    assert caught.value.hint == "check KEY"
    assert waits.seconds == []


@pytest.mark.parametrize("key", ["k", "no"])
def test_a_tiny_key_does_not_garble_words(key: str) -> None:
    config = replace(patient(), key=key)
    with pytest.raises(EmbeddingError, match=r"not known$"):
        ask_patiently(Scripted(Failure("not known")), ["a"], ASK, config, FREE, Waits())


def test_no_wait_passes_the_deadline() -> None:
    client, waits = Scripted(BUSY, BUSY), Waits()
    with pytest.raises(EmbeddingError, match="attempt 2 of 4"):
        ask_patiently(
            client, ["a"], ASK, patient(backoff=400, deadline=600, timeout=900), FREE, waits
        )
    assert waits.seconds == [400]
    assert all(0 < timeout <= 600 for timeout in client.timeouts)


def test_being_stopped_ends_the_wait() -> None:
    client, waits = Scripted(BUSY, GOOD), Waits()
    waits.set()
    with pytest.raises(EmbeddingError, match="attempt 1 of 4"):
        ask_patiently(client, ["a"], ASK, patient(), FREE, waits)


@each(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT"}, None),
        ({"retry-after": f"{'9' * 20} Jan 2030 00:00:00 GMT"}, None),
        ({"retry-after": "9" * 5000}, float("inf")),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert (status_failure(429, headers, b"").retry_after or None) == seconds


def test_retry_after_a_date() -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    seconds = status_failure(429, {"retry-after": moment}, b"").retry_after
    assert seconds is not None
    assert abs(seconds - 3600) < 600


def test_retry_delay_of_gemini() -> None:
    body = b'{"error": {"message": "m", "details": [1, {"x": 1}, {"retryDelay": "34.5s"}]}}'
    assert status_failure(429, {}, body).retry_after == 34.5
    assert (
        status_failure(429, {}, b'{"error": {"details": [{"retryDelay": 3}]}}').retry_after is None
    )
