"""Bearer tokens: sources, precedence, what is refused, and that nothing tells a token."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ConfigError, Unauthenticated
from omnigraph_core.server.auth import Tokens, read_tokens
from tests.support.cases import each

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = {
    "single": "OMNIGRAPH_SERVER_BEARER_TOKEN",
    "file": "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE",
    "text": "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON",
    "aws": "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET",
}


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in NAMES.values():
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def actor(tokens: Tokens, token: str) -> str | None:
    try:
        return tokens.actor_of(f"Bearer {token}".encode())
    except Unauthenticated:
        return None


def test_no_source_means_no_tokens(given: pytest.MonkeyPatch) -> None:
    assert len(read_tokens()) == 0


def test_the_single_token_and_the_file_count_together_and_the_text_does_not(
    given: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "tokens.json"
    path.write_text('{" ada ": " t-ada\\n"}')
    given.setenv(NAMES["single"], "t-default")
    given.setenv(NAMES["file"], str(path))
    given.setenv(NAMES["text"], '{"bob": "t-bob"}')
    tokens = read_tokens()
    assert [actor(tokens, t) for t in ("t-default", "t-ada", "t-bob")] == ["default", "ada", None]


def test_the_text_counts_without_a_file(given: pytest.MonkeyPatch) -> None:
    given.setenv(NAMES["text"], '{"bob": "t-bob", "ada": "t-ada"}')
    assert actor(read_tokens(), "t-bob") == "bob"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not an object of tokens"),
        ("[]", "not an object of tokens"),
        ('["s3cret"]', "not an object of tokens"),
        ('{"ada": 7}', "not an object of tokens"),
        ('{"ada": {"token": "s3cret"}}', "not an object of tokens"),
        ('{" ": "s3cret"}', "an actor without a name"),
        ('{"ada": " "}', "the token of `ada` is blank"),
        ('{"ada": "s3cret", " ada": "s3cret2"}', "the actor `ada` has two tokens"),
        ('{"ada": "s3cret", "ada": "s3cret2"}', "the actor `ada` has two tokens"),
        ('{"ada": "s3cret", "bob": " s3cret"}', "`ada` and `bob` have the same token"),
        ("{}", "no tokens in it"),
        ('{"a\\nb": "s3cret"}', "holds control characters"),
        ('{"a\\ud800": "s3cret"}', "is not Unicode text"),
        ('{"ada": "s3cret\\ud800"}', "the token of `ada` is not Unicode text"),
    ],
)
def test_what_cannot_be_used_is_refused_without_telling_a_token(
    given: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    given.setenv(NAMES["text"], text)
    with pytest.raises(ConfigError, match=problem) as refused:
        read_tokens()
    chain = [str(refused.value), repr(refused.value), repr(refused.value.__cause__)]
    assert "s3cret" not in " ".join(chain)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        Tokens([("", "a"), ("ada", ""), ("bob", "x"), ("eve", "x")])
    assert len(refused.value.message.splitlines()) == 4


def test_a_default_actor_in_the_file_meets_the_single_token(given: pytest.MonkeyPatch) -> None:
    given.setenv(NAMES["single"], "one")
    given.setenv(NAMES["text"], '{"default": "two"}')
    with pytest.raises(ConfigError, match="`default` has two tokens"):
        read_tokens()


def test_a_file_that_is_not_there(given: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given.setenv(NAMES["file"], str(tmp_path / "none.json"))
    with pytest.raises(ConfigError, match="cannot read"):
        read_tokens()


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("blank", ["", " \t"])
def test_a_source_that_is_set_and_blank_opens_nothing(
    given: pytest.MonkeyPatch, source: str, blank: str
) -> None:
    given.setenv(NAMES["single"], "t-default")
    given.setenv(NAMES[source], blank)
    with pytest.raises(ConfigError, match=f"(?m)set, but blank: {NAMES[source]}$"):
        read_tokens()


@each("header", [None, b"", b"Basic abc", b"bearer t-ada", b"Bearer", b"t-ada"])
def test_no_bearer_token(header: bytes | None) -> None:
    with pytest.raises(Unauthenticated, match=r"^missing bearer token$"):
        Tokens([("ada", "t-ada")]).actor_of(header)


@each("token", ["", "t-ad", "t-ada ", " t-ada", "T-ADA", "t-ada\xff"])
def test_no_known_token(token: str) -> None:
    with pytest.raises(Unauthenticated, match=r"^invalid bearer token$"):
        Tokens([("ada", "t-ada")]).actor_of(b"Bearer " + token.encode("latin-1"))


def test_every_digest_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append(right)
        return left == right

    monkeypatch.setattr("omnigraph_core.server.auth.hmac.compare_digest", compare)
    tokens = Tokens((f"actor-{n}", f"token-{n}") for n in range(5))
    for token in ("token-0", "token-4", "token-9"):
        compared.clear()
        actor(tokens, token)
        assert len(compared) == 5


def test_tokens_are_kept_as_digests() -> None:
    tokens = Tokens([("ada", "s3cret")])
    assert repr(tokens) == "<Tokens of 1 actors>"
    assert "s3cret" not in repr(tokens._digests)


class Secrets(BaseHTTPRequestHandler):
    """Speaks as much of AWS Secrets Manager as `GetSecretValue` needs."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert self.headers["x-amz-target"] == "secretsmanager.GetSecretValue"
        account = self.headers["authorization"].partition("Credential=")[2].partition("/")[0]
        values = {
            "account": json.dumps({account: "t-account"}),
            "tokens": json.dumps({"ada": "t-aws"}),
            "words": "hello",
        }
        if body["SecretId"] in values:
            self._send(200, {"SecretString": values[body["SecretId"]]})
        elif body["SecretId"] == "bytes":
            self._send(200, {"SecretBinary": "AAAA"})
        else:
            self._send(400, {"__type": "ResourceNotFoundException", "message": "no such secret"})

    def _send(self, status: int, document: object) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/x-amz-json-1.1")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def secrets(given: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Secrets) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        given.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", url)
        given.setenv("AWS_REGION", "us-east-1")
        given.setenv("AWS_ACCESS_KEY_ID", "id")
        given.setenv("AWS_SECRET_ACCESS_KEY", "key")
        yield given
        server.shutdown()
        thread.join()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore")
def test_a_secret_of_aws_counts_alone(secrets: pytest.MonkeyPatch) -> None:
    secrets.setenv(NAMES["aws"], "tokens")
    secrets.setenv(NAMES["single"], "t-default")
    tokens = read_tokens()
    assert [actor(tokens, token) for token in ("t-aws", "t-default")] == ["ada", None]
    for name, problem in (("missing", "no such secret"), ("bytes", "holds no text")):
        secrets.setenv(NAMES["aws"], name)
        with pytest.raises(ConfigError, match=problem):
            read_tokens()
    secrets.setenv(NAMES["aws"], "words")
    with pytest.raises(ConfigError, match="not an object of tokens"):
        read_tokens()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore")
def test_a_secret_of_aws_is_read_by_the_account_of_the_moment(secrets: pytest.MonkeyPatch) -> None:
    secrets.setenv(NAMES["aws"], "account")
    for account in ("ada", "bob"):
        secrets.setenv("AWS_ACCESS_KEY_ID", account)
        assert actor(read_tokens(), "t-account") == account


def test_a_secret_of_aws_needs_boto3(given: pytest.MonkeyPatch) -> None:
    given.setenv(NAMES["aws"], "tokens")
    given.setenv(NAMES["single"], "t-default")
    given.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigError, match="boto3 is not installed") as refused:
        read_tokens()
    assert "omnigraph[aws]" in str(refused.value)
