"""Many clients at a time: each asks, waits for the answer, and asks again, until time is up."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import uvloop

from benchmarks.serve.connection import connect
from benchmarks.serve.data import READS, WRITES, calls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from benchmarks.serve.connection import Connection
    from benchmarks.serve.data import Call, Scale


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server listens, and its process."""

    host: str
    port: int
    pid: int


@dataclass(slots=True)
class Load:
    """What many clients saw together."""

    seconds: float = 0.0
    latencies: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Milliseconds of what succeeded, by what was asked."""
    statuses: Counter[int] = field(default_factory=Counter)
    resident: list[int] = field(default_factory=list)
    """Bytes the server's processes had in memory, from time to time."""
    problems: list[str] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return sum(count for status, count in self.statuses.items() if status >= 500)

    @property
    def reads(self) -> list[float]:
        return [ms for name in READS for ms in self.latencies[name]]

    @property
    def writes(self) -> list[float]:
        return [ms for name in WRITES for ms in self.latencies[name]]

    @property
    def growth(self) -> float:
        """Memory at the end against the middle, as a share: the first half is for warming up."""
        quarter = len(self.resident) // 4
        if not quarter:
            return 0.0
        middle = np.median(self.resident[quarter * 2 : quarter * 3])
        return float(np.median(self.resident[-quarter:]) / middle - 1)


def percentile(values: list[float], share: float) -> float:
    return float(np.percentile(values, share)) if values else float("nan")


def drive(
    place: Place, scale: Scale, *, clients: int, seconds: float, write_share: float, seed: int
) -> Load:
    """Let clients ask for so long."""
    return uvloop.run(_drive(place, scale, clients, seconds, write_share, seed))


async def _drive(
    place: Place, scale: Scale, clients: int, seconds: float, write_share: float, seed: int
) -> Load:
    load = Load()
    began = time.perf_counter()
    async with _sampled(place.pid, load), asyncio.TaskGroup() as group:
        for client in range(clients):
            asked = calls(scale, seed * 1_000 + client, write_share=write_share)
            group.create_task(_client(place, asked, began + seconds, load))
    load.seconds = time.perf_counter() - began
    return load


async def _client(place: Place, asked: Iterator[Call], deadline: float, load: Load) -> None:
    async with connected(place) as connection:
        for call in asked:
            began = time.perf_counter()
            if began > deadline:
                return
            answer = await connection.ask(call.encoded())
            load.statuses[answer.status] += 1
            if answer.status == 200:
                load.latencies[call.name].append((time.perf_counter() - began) * 1_000)
            elif answer.status != 409:
                load.problems.append(answer.body.decode())


@asynccontextmanager
async def connected(place: Place) -> AsyncIterator[Connection]:
    connection = await connect(place.host, place.port)
    try:
        yield connection
    finally:
        connection.close()


@asynccontextmanager
async def _sampled(pid: int, load: Load) -> AsyncIterator[None]:
    """Look at the memory of the server while the block runs."""

    async def sample() -> None:
        while True:
            load.resident.append(resident_bytes(pid))
            await asyncio.sleep(0.25)

    sampling = asyncio.create_task(sample())
    try:
        yield
    finally:
        sampling.cancel()


def resident_bytes(pid: int) -> int:
    """What a process has in memory, as Linux tells it; elsewhere nothing."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    found = next((line for line in lines if line.startswith("VmRSS:")), "VmRSS: 0 kB")
    return int(found.split()[1]) * 1024
