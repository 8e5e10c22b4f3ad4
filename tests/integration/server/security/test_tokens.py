"""Tokens: compared in the same way whichever they are, and nowhere in what a server writes."""

from __future__ import annotations

import hmac
import json
import re
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.server import auth
from tests.integration.server.security.asking import TOKENS
from tests.support.raw_http import exchange, request
from tests.support.served import state_of
from tests.support.server import server_process, serving, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

BAD: Final = (
    "Bearer wrong", "Bearer token-of-an", "Bearer token-of-ann2", "Bearer  token-of-ann",
    "Bearer token-of-ann\t x", "Bearer TOKEN-OF-ANN", "Bearer " + "a" * 60_000, "Bearer \xff\xfe",
    "Bearer token-of-ann, Bearer token-of-ben", "Bearer ", "Bearer token-of-ann\xa0",
)  # fmt: skip
NONE: Final = ("", "Bearer", "bearer token-of-ann", "BEARER token-of-ann", "Basic dG9rZW4=",
               "Token token-of-ann", "Bearertoken-of-ann", "token-of-ann")  # fmt: skip


def test_every_wrong_token_gets_the_same_answer_by_the_same_way(
    stock: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is compared with all that there are: no answer comes sooner than another. In a server of
    this process, where comparisons can be counted."""
    compared: list[bytes] = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append(right)
        return hmac.compare_digest(left, right)

    monkeypatch.setattr(auth, "hmac", type("counting", (), {"compare_digest": compare}))
    with serving(stock.uri, env=tokens(**TOKENS)) as server:
        check_refusals(server, compared)


def check_refusals(server: Client, compared: list[bytes]) -> None:
    for given, message in (*((text, "invalid") for text in BAD), *((t, "missing") for t in NONE)):
        compared.clear()
        (answer,) = exchange(server.url, request("GET", "/schema", Authorization=given))
        body = answer.json()
        assert answer.status == 401, given[:40]
        assert body == {
            "error": f"{message} bearer token",
            "code": "unauthorized",
            "reason": body["reason"],
            "request_id": answer.headers["x-request-id"],
        }
        # What HTTP itself trims is gone before anybody sees it: `Bearer ` is no bearer then.
        assert len(compared) == (3 if message == "invalid" else 0), given[:40]
    compared.clear()
    for token in TOKENS.values():
        (answer,) = exchange(server.url, request("GET", "/x", Authorization=f"Bearer {token}"))
    assert len(compared) == 9  # a good token, too


def described(server: Client) -> Iterator[tuple[str, str, Any]]:
    for path, operations in server.get("/openapi.json").json()["paths"].items():
        for method, operation in operations.items():
            yield method, re.sub(r"\{\w+\}", "x", path), operation


def test_no_operation_does_anything_without_a_token(guarded: Client, stock: Omnigraph) -> None:
    before = state_of(stock)
    for method, path, operation in described(guarded):
        for prefix in ("", "/graphs/none"):
            if "security" not in operation:
                assert path in ("/healthz", "/readyz")
                continue
            answer = guarded.request(method.upper(), prefix + path, content=b"{")
            assert answer.status_code == 401, (method, path)
            if method != "head":
                assert answer.json()["error"] == "missing bearer token"
    assert state_of(stock) == before
    (missing,) = exchange(guarded.url, request("GET", "/none"))
    assert missing.status == 404


def test_tokens_are_nowhere(root: Path, stock: Omnigraph, tmp_path: Path) -> None:
    """Through requests that fail in all ways, with everything logged."""
    token = "s3cr3t-0f-ann"
    wrong = "wr0ng-s3cr3t"
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"ann": token, "ben": "0ther-s3cr3t"}))
    env = {
        "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(file),
        "OMNIGRAPH_SERVER_BEARER_TOKEN": "s1ngle-s3cr3t",
        "OMNIGRAPH_SERVER_SPOOL": str(tmp_path / "spool"),
        "OMNIGRAPH_LOG": "debug",
    }
    answers = []
    with server_process("--config", root / "omnigraph.yaml", env=env) as server:
        for given in (token, wrong):
            with server.client(given) as client:
                for method, path, _ in described(client):
                    address = f"{path}?token={given}&access_token={given}"
                    body = b"{" if given == wrong else b""
                    answers.append(client.request(method.upper(), address, content=body))
                part = {"file": ("Part.csv", b"sku\n1\n")}
                answers.append(client.request("POST", "/load/files", files=part))
                answers.append(client.get("/metrics"))
                answers.append(client.get("/openapi.json"))
                key = {"Idempotency-Key": "k", "X-Request-Id": "r"}
                answers.append(client.post("/branches", {"name": f"by-{given[:5]}"}, headers=key))
                answers.append(client.post("/verify", headers={"Prefer": "respond-async"}))
        exchange(
            server.url, b"GET / HTTP/1.1\r\nAuthorization: Bearer " + token.encode() + b"\0\r\n"
        )
        assert server.stop() == 0
    told = ["".join(server.log)]
    told += [f"{answer.headers!r} {answer.text}" for answer in answers]
    told += [path.read_text() for path in (tmp_path / "spool").rglob("*") if path.is_file()]
    assert len(told) > 100
    assert not [text for text in told if "s3cr3t" in text]
    assert told[0].count("omnigraph.access") > 100


def test_tokens_are_in_no_repr() -> None:
    known = auth.Tokens([("ann", "s3cr3t-0f-ann")])
    assert "s3cr3t" not in f"{known!r} {known} {[known]} {known.__reduce_ex__(2)}"
    assert "s3cr3t" not in repr([getattr(known, name) for name in auth.Tokens.__slots__])
