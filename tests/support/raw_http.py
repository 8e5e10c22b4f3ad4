"""Bytes on a connection, as no client library would send them, and what comes back."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 120


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a server."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@contextmanager
def connected(url: str, *, window: int | None = None) -> Iterator[socket.socket]:
    """A connection; `window` is how many bytes it takes in before they are read."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.socket() as connection:
        connection.settimeout(SECONDS)
        if window is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        connection.connect((host, int(port)))
        yield connection


def exchange(url: str, data: bytes, *, is_half_closed: bool = False) -> list[Answer]:
    """Send bytes, and read until the server hangs up."""
    with connected(url) as connection:
        connection.sendall(data)
        if is_half_closed:
            connection.shutdown(socket.SHUT_WR)
        return answers(read_all(connection))


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side hangs up, however it does."""
    found = b""
    try:
        while part := connection.recv(65_536):
            found += part
    except ConnectionResetError:
        pass
    return found


def answers(data: bytes) -> list[Answer]:
    """What a server wrote, taken apart. Every answer must tell its length."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in map(_parted, fields)}
        length = int(headers["content-length"])
        found.append(Answer(int(line.split()[1]), headers, rest[:length]))
        data = rest[length:]
    return found


def _parted(field: str) -> tuple[str, str, str]:
    return field.partition(":")


def request(method: str, target: str, body: bytes = b"", **headers: str) -> bytes:
    """A whole request that ends its connection; header names have `_` for `-`."""
    given = {"Host": "x", "Connection": "close", **headers}
    if body:
        given.setdefault("Content-Type", "application/json")
        given.setdefault("Content-Length", str(len(body)))
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in given.items()]
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *lines])
    return head.encode("latin-1") + b"\r\n\r\n" + body


def check_refusal(answer: Answer, status: int) -> Any:
    """The body of a refusal, which must have this status and what every one has."""
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["error"]
    assert body["reason"]
    assert body["code"] in ("bad_request", "not_found")
    return body
