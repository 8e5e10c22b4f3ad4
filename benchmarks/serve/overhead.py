"""What HTTP adds to a read: one client, one request after another, everything warm."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import uvloop

from benchmarks.serve import stages
from benchmarks.serve.clients import Place, connected
from benchmarks.serve.data import ACTOR, READS, TOKEN, read
from tests.support.server import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.serve.connection import Connection
    from benchmarks.serve.data import Scale

_WARM: Final = 50
_STAGES: Final = f"GET {stages.PATH} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()
_WITHIN: Final = tuple(
    name for name in stages.STAGES if name not in (stages.ENGINE, stages.AFTERWARDS)
)


@dataclass(frozen=True, slots=True)
class Overhead:
    """Milliseconds of each request."""

    added: list[float]
    """From the first event of a request to the last byte of its answer, without the engine."""
    told: list[float]
    """The same up to the headers, as `Server-Timing` tells it."""
    outside: list[float]
    """The same as the client sees it: with the network and its own work."""
    stages: dict[str, list[float]]


def measure(config: Path, scale: Scale, *, requests: int) -> dict[str, Overhead]:
    """By query, what a server adds to so many requests."""
    with _staged_server(config) as place:
        return uvloop.run(_measure(place, scale, requests))


@contextmanager
def _staged_server(config: Path) -> Iterator[Place]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.serve.stages", "--config", str(config)],
        env={**os.environ, **tokens(**{ACTOR: TOKEN})},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().rsplit(b":", 1)[1])
        yield Place("127.0.0.1", port, process.pid)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


async def _measure(place: Place, scale: Scale, requests: int) -> dict[str, Overhead]:
    chance = random.Random(3)
    async with connected(place) as connection:
        for name in READS:
            await _asked(connection, scale, chance, name, _WARM)
        return {name: await _asked(connection, scale, chance, name, requests) for name in READS}


async def _asked(
    connection: Connection, scale: Scale, chance: random.Random, name: str, requests: int
) -> Overhead:
    told, outside = [], []
    for _ in range(requests):
        request = read(scale, chance, name).encoded()
        began = time.perf_counter()
        answer = await connection.ask(request)
        seen = (time.perf_counter() - began) * 1_000
        assert answer.status == 200, answer.body
        assert answer.timing is not None, "reads tell their time"
        engine, server = answer.timing
        told.append(server - engine)
        outside.append(seen - engine)
    seen_stages = json.loads((await connection.ask(_STAGES)).body)
    added = [sum(one[name] for name in _WITHIN) for one in seen_stages]
    by_stage = defaultdict(list)
    for one in seen_stages:
        for stage, ms in one.items():
            by_stage[stage].append(ms)
    return Overhead(added, told, outside, dict(by_stage))
