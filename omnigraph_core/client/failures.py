"""Requests without a usable answer: what came back, or broke, becomes one of our errors.

Beside the error stands what is known of the request itself: whether it can have been carried out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.client.retries import Failure, retry_after
from omnigraph_core.errors import ConfigError, ConflictError, OmnigraphError, StorageError
from omnigraph_core.errors.wire import error_from

if TYPE_CHECKING:
    import httpx2

    from omnigraph_core.client.requests import Call

_SHOWN: Final = 200
"""Characters of an answer that is not ours."""
_MOST: Final = 2**16
"""Bytes that are looked at of an answer that is not ours."""
_BY_STATUS: Final = {
    429: Failure.REFUSED,
    502: Failure.LOST,
    503: Failure.UNAVAILABLE,
    504: Failure.LOST,
}


class Failed(Exception):
    """A try that failed; `error` is what the caller is told if there is no other try."""

    def __init__(
        self, error: OmnigraphError, failure: Failure | None = None, asked: float | None = None
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.failure = failure
        self.asked = asked
        """Seconds the server asks to wait."""

    @classmethod
    def of_foreign(cls, response: httpx2.Response) -> Failed:
        """For an answer that no server of ours gives: a login page, another service."""
        kind = response.headers.get("content-type", "no content type").partition(";")[0]
        text = _shown(response.content)
        status = response.status_code
        error = StorageError(
            f"{_place(response)} answered {status} with {kind}, not with JSON: {text}",
            hint="is this the address of an OmniGraph server?",
            retryable=status in _BY_STATUS,
        )
        return cls(error, _BY_STATUS.get(status), _asked(response))


def failure_of(call: Call, response: httpx2.Response) -> Failed:
    """What an answer that is no success says."""
    if response.is_redirect:
        return Failed(_moved(response))
    response.read()
    document = _document(response)
    if document is None:
        return Failed.of_foreign(response)
    if call.mend is not None:
        document = call.mend(document)
    error = error_from(document, response.status_code)
    if request_id := document.get("request_id"):
        error.add_note(f"request {request_id}")
    failure = _BY_STATUS.get(response.status_code)
    if type(error) is ConflictError and error.retryable and not call.is_read:
        failure = Failure.UNDER_WAY
    return Failed(error, failure, _asked(response))


def unusable(call: Call, url: str, problem: Exception) -> Failed:
    """What a request that broke off becomes."""
    import httpx2

    where, reason = f"{call.method} {url}{call.path}", str(problem) or type(problem).__name__
    if isinstance(problem, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        error = StorageError(
            f"cannot reach {url}: {reason}", hint="is the server running?", retryable=True
        )
        return Failed(error, Failure.NOT_SENT)
    if isinstance(problem, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
        return Failed(ConfigError(f"cannot ask {url}: {reason}"))
    if isinstance(problem, httpx2.TimeoutException):
        error = StorageError(
            f"{where}: no answer in time", hint=_advice(call, "allow more time"), retryable=True
        )
        return Failed(error)
    error = StorageError(
        f"{where}: the connection broke off: {reason}", hint=_advice(call), retryable=True
    )
    return Failed(error, Failure.LOST)


def _advice(call: Call, first: str = "") -> str | None:
    """What to do about an answer that did not arrive."""
    if call.key is None:
        return f"{first} with `timeout=` or OMNIGRAPH_CLIENT_TIMEOUT" if first else None
    advice = "it may have been carried out all the same: look before you repeat it"
    # Other methods take no key of the caller's.
    takes_key = call.path.startswith(("/load", "/mutate"))
    return f"{advice}, or repeat it with idempotency_key={call.key}" if takes_key else advice


def _document(response: httpx2.Response) -> dict[str, Any] | None:
    try:
        document = json.loads(response.content)
    except ValueError:
        return None
    is_ours = isinstance(document, dict) and isinstance(document.get("error"), str)
    return document if is_ours else None


def _moved(response: httpx2.Response) -> ConfigError:
    target = response.headers.get("location", "").partition("?")[0]
    return ConfigError(
        f"{_place(response)} answered {response.status_code}: it has moved to {target or '?'}",
        hint="give the address it has moved to",
    )


def _place(response: httpx2.Response) -> str:
    url = response.request.url.copy_with(query=None)
    return f"{response.request.method} {url}"


def _asked(response: httpx2.Response) -> float | None:
    return retry_after(response.headers.get("retry-after"))


def _shown(body: bytes) -> str:
    text = " ".join(body[:_MOST].decode(errors="replace").split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
