"""`deploy/s3-local.sh`, run as a user runs it: a store, a graph on it, a server, and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.support.ports import ATTEMPTS, free_port, is_free
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent.parent
SCRIPT = ROOT / "deploy" / "s3-local.sh"
STORY = ROOT / "examples" / "river" / "story.jsonl"
STORE_PORTS = [number + more for number in range(4) for more in (0, 10_000)]
START_SECONDS = 300
"""Long enough for a machine that is busy with other tests."""


def free_ports() -> tuple[int, int]:
    """For the store and for the server."""
    store = free_port([*STORE_PORTS, 5], most=19_000)
    return store, store + 5


def command(directory: Path, store: int, server: int) -> dict[str, object]:
    environment = {
        "BIN": str(Path(sys.executable).parent),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "S3_PORT": str(store),
        "SERVER_PORT": str(server),
        "S3_LOCAL_DIR": str(directory),
    }
    return {"args": [SCRIPT, STORY], "env": environment, "text": True}


@pytest.fixture
def short_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sockets have short names."""
    return tmp_path_factory.mktemp("s")


@dataclass(frozen=True, slots=True)
class Running:
    """The script once it serves, and what it said on the way."""

    process: subprocess.Popen[str]
    store: int
    server: int
    said: str


@pytest.fixture
def running(short_path: Path) -> Iterator[Running]:
    """Another process may take a port between the choice and the start: then choose again."""
    for _ in range(ATTEMPTS):
        with _started(short_path) as found:
            if "Ctrl-C stops everything" in found.said:
                yield found
                return
            if not re.search("is taken|in use", found.said):
                break
    pytest.fail(found.said)


@contextmanager
def _started(directory: Path) -> Iterator[Running]:
    store, server = free_ports()
    process: subprocess.Popen[str] = subprocess.Popen(
        **command(directory, store, server),  # type: ignore[call-overload]
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    overdue = threading.Timer(START_SECONDS, process.terminate)
    overdue.start()
    try:
        said = ""
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            if "Ctrl-C stops everything" in line:
                break
        yield Running(process, store, server, said)
    finally:
        overdue.cancel()
        process.terminate()
        process.communicate()


def test_from_nothing_to_answers_and_back(running: Running) -> None:
    process, store, server = running.process, running.store, running.server
    assert "ready\n" in running.said, running.said
    assert "44 nodes across 12 node types" in running.said
    answer = httpx2.post(
        f"http://127.0.0.1:{server}/queries/suspects",
        json={"params": {"number": "IN-2030-1"}},
        timeout=120,
    )
    rows = answer.json()["rows"]
    assert [row["facility"] for row in rows] == ["Bend paper mill", "Cinder slate quarry"]
    snapshot = httpx2.get(f"http://127.0.0.1:{server}/snapshot", timeout=120).json()
    assert snapshot["tables"]

    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(120) == 130
    ports = [*(store + port for port in STORE_PORTS), server]

    def taken() -> list[int]:
        return [port for port in ports if not is_free(port)]

    wait_until(lambda: not taken(), "all ports to be free again", tell=taken)


def test_a_taken_port_is_told_before_anything_starts(short_path: Path) -> None:
    store, _ = free_ports()
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket() as other:
        other.bind(("127.0.0.1", store + 1))
        server = taken.getsockname()[1]
        done = subprocess.run(
            **command(short_path, store, server),  # type: ignore[call-overload]
            capture_output=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"error: port {server} is taken: set SERVER_PORT to another one",
        f"error: port {store + 1} is taken: set S3_PORT to another one",
    ]
    assert list(short_path.iterdir()) == []
