"""JSON over HTTP to processes of this machine."""

import http.client
import json
import socket
import urllib.error
import urllib.request
from typing import Any, Final

from omnigraph_assets.local.places import HOST

_SECONDS: Final = 60.0


class NoAnswer(Exception):
    """Nobody is there, or it refuses."""


def ask(address: str, body: object = None) -> Any:
    """What the address answers; with a body, to a POST of it.

    Raises:
        NoAnswer: nobody answered, or with a refusal.
    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            return json.loads(answer.read() or "null")
    except urllib.error.HTTPError as refused:
        answer = refused.read().decode(errors="replace")
        raise NoAnswer(f"{address} answered {refused.code}: {answer}") from refused
    except (OSError, http.client.HTTPException) as problem:
        raise NoAnswer(f"nobody answered at {address}: {problem}") from problem


def is_listening(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False
