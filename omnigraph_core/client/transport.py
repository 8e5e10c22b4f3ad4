"""Requests to a server: calls go out over a pool of connections, answers or errors come back.

Whatever fails is raised as one of our errors. A call is sent again where that is safe and nowhere
else. Neither the token nor what is sent shows in an error, a log or a repr.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from omnigraph_core import __version__
from omnigraph_core.client.cancelling import Watch
from omnigraph_core.client.failures import Failed, failure_of, unusable
from omnigraph_core.client.requests import JSON, KEY_HEADER
from omnigraph_core.client.retries import Attempt
from omnigraph_core.errors import ConfigError, QueryCancelled
from omnigraph_core.ids import new_ulid
from omnigraph_core.settings import CLIENT_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx2

    from omnigraph_core.client.requests import Call
    from omnigraph_core.exec.guard import Cancellation

T = TypeVar("T")

_CONNECT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A document and the headers it came with."""

    document: Any
    headers: Mapping[str, str]


class Transport:
    """The way to one graph behind a server. Safe to share between threads."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.url = url
        self._headers = _headers(token)
        self._seconds = CLIENT_TIMEOUT.read() if timeout is None else timeout
        if not self._seconds > 0:
            raise ConfigError(f"`timeout` is {timeout}, give seconds above zero")
        self._transport = transport
        self._watch: Watch | None = None
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None

    def __repr__(self) -> str:
        return f"<Transport {self.url}>"

    def close(self) -> None:
        """Close all connections; new ones are made if they are needed."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def fetch(self, call: Call) -> Any:
        """The document a call is answered with."""
        return self.answer(call).document

    def answer(self, call: Call) -> Answer:
        """The document a call is answered with, and its headers."""
        return self.run(call, read_document)

    def run(self, call: Call, consume: Callable[[httpx2.Response], T]) -> T:
        """What `consume` makes of the answer, which is closed afterwards.

        It may be called again with the answer to another try.

        Raises:
            OmnigraphError: what the server raised, or that it cannot be reached.
        """
        return self._tried(call, lambda response: _closing(response, consume))

    def run_until(
        self,
        call: Call,
        consume: Callable[[httpx2.Response], T],
        cancellation: Cancellation | None,
    ) -> T:
        """The same, given up when another thread says so: over a connection of its own then.

        Raises:
            QueryCancelled: it was given up.
        """
        if cancellation is None:
            return self.run(call, consume)
        if cancellation.is_cancelled:
            raise QueryCancelled
        alone = Transport(self.url, timeout=self._seconds, transport=self._transport)
        alone._headers = self._headers
        with Watch(cancellation) as watch, contextlib.closing(alone):
            alone._watch = watch
            return alone.run(call, consume)

    def open(self, call: Call) -> httpx2.Response:
        """The answer, its body still to be read; closing it is up to the caller."""
        return self._tried(call, lambda response: _of_kind(call, response))

    def peek(self, call: Call) -> tuple[int, Mapping[str, str]]:
        """Status and headers of an answer without a body, whatever the status is.

        Raises:
            StorageError: the server cannot be reached.
        """
        import httpx2

        try:
            return _closing(self._send(call), lambda found: (found.status_code, found.headers))
        except httpx2.HTTPError as problem:
            raise unusable(call, self.url, problem).error from problem

    def _tried(self, call: Call, consume: Callable[[httpx2.Response], T]) -> T:
        number = 1
        while True:
            attempt = Attempt(number, is_read=call.is_read, is_keyed=call.key is not None)
            try:
                return self._once(call, consume)
            except Failed as failed:
                if self._watch is not None and self._watch.is_cancelled:
                    raise QueryCancelled from failed
                repeats = failed.failure is not None and attempt.may_repeat(failed.failure)
                wait = attempt.wait(failed.asked) if repeats else None
                if wait is None:
                    raise failed.error from failed.__cause__
            time.sleep(wait)
            number += 1

    def _once(self, call: Call, consume: Callable[[httpx2.Response], T]) -> T:
        import httpx2

        try:
            response = self._send(call)
            if not response.is_success:
                raise _closing(response, lambda found: failure_of(call, found))
            return consume(response)
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as problem:
            raise unusable(call, self.url, problem) from problem

    def _send(self, call: Call) -> httpx2.Response:
        client = self._opened()
        headers = {**call.headers, "X-Request-Id": new_ulid()}
        if call.key is not None:
            headers[KEY_HEADER] = call.key
        request = client.build_request(
            call.method,
            f"{self.url}{call.path}",
            params=call.query or None,
            content=call.body if call.content is None else call.content(),
            headers=headers,
            timeout=self._timeouts(call),
            extensions=None if self._watch is None else {"trace": self._watch.trace},
        )
        return client.send(request, stream=True)

    def _timeouts(self, call: Call) -> httpx2.Timeout:
        import httpx2

        seconds = self._seconds if call.seconds is None else call.seconds
        return httpx2.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds))

    def _opened(self) -> httpx2.Client:
        import httpx2  # here because it loads slowly, and making an object is to be quick

        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(
                    headers=self._headers,
                    # To load certificates takes a tenth of a second; without TLS nobody asks them.
                    verify=not self.url.lower().startswith("http:"),
                    transport=self._transport,
                )
            return self._client


def _headers(token: str | None) -> dict[str, str]:
    headers = {"Accept": JSON, "User-Agent": f"omnigraph-client/{__version__}"}
    text = (token or "").strip()
    if not text:
        return headers
    if not all(" " < char <= "~" for char in text):
        raise ConfigError("the token has characters that cannot be part of one")
    return {**headers, "Authorization": f"Bearer {text}"}


def _closing(response: httpx2.Response, consume: Callable[[httpx2.Response], T]) -> T:
    try:
        return consume(response)
    finally:
        response.close()


def _of_kind(call: Call, response: httpx2.Response) -> httpx2.Response:
    """The answer, if it has the form that was asked for."""
    wanted = call.headers.get("Accept", JSON)
    if response.headers.get("content-type", "").startswith(wanted):
        return response
    raise _closing(response, _foreign)


def _foreign(response: httpx2.Response) -> Failed:
    response.read()
    return Failed.of_foreign(response)


def read_document(response: httpx2.Response) -> Answer:
    body = response.read()
    try:
        document = json.loads(body)
    except ValueError as problem:
        raise Failed.of_foreign(response) from problem
    return Answer(document, response.headers)
