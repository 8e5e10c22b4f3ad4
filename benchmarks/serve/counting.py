"""Several clients raise one counter, through several worker processes: no step may be lost.

A client reads the counter and asks for the next value on the condition that it is still what was
read. Who is refused with a conflict, or came too late, begins again.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks.serve.clients import connected
from benchmarks.serve.data import COUNTER, COUNTING, Call

if TYPE_CHECKING:
    from benchmarks.serve.clients import Place
    from benchmarks.serve.connection import Connection


@dataclass(slots=True)
class Count:
    """What became of all steps."""

    wanted: int
    value: int = -1
    """Of the counter in the end, as every worker tells it."""
    statuses: Counter[int] = field(default_factory=Counter)
    late: int = 0
    """Steps that found another value than the one read before."""
    processes: int = 0
    """Worker processes that had something to do."""
    problems: list[str] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return sum(count for status, count in self.statuses.items() if status >= 500)

    @property
    def is_exact(self) -> bool:
        return self.value == self.wanted and not self.problems


def count(place: Place, *, clients: int, steps: int) -> Count:
    """Let each client raise the counter by so many steps of one."""
    before = _worked(place.pid)
    found = uvloop.run(_count(place, clients, steps))
    found.processes = sum(ticks > before.get(pid, 0) for pid, ticks in _worked(place.pid).items())
    return found


async def _count(place: Place, clients: int, steps: int) -> Count:
    found = Count(clients * steps)
    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(_raise_often(place, steps, found))
    values = [await _fresh_value(place, found) for _ in range(clients)]  # any worker may answer
    found.value = values[0]
    if len(set(values)) > 1:
        found.problems.append(f"workers disagree: {sorted(set(values))}")
    return found


def _worked(pid: int) -> dict[int, int]:
    """The time each child of a process has worked, as Linux tells it; elsewhere nothing."""
    times = {}
    for path in Path(f"/proc/{pid}/task/{pid}").glob("children"):
        for child in map(int, path.read_text().split()):
            facts = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            times[child] = int(facts[11]) + int(facts[12])
    return times


async def _raise_often(place: Place, steps: int, found: Count) -> None:
    for _ in range(steps):
        while not await _raise_once(place, found):
            pass


async def _raise_once(place: Place, found: Count) -> bool:
    """Whether a step was made. On a new connection each time, so that any worker may answer."""
    async with connected(place) as connection:
        return await _try_raise(connection, found)


async def _try_raise(connection: Connection, found: Count) -> bool:
    seen = await _value(connection, found)
    params = {"name": COUNTER, "seen": seen, "next": seen + 1}
    status, document = await _ask(connection, "/change", "raise_to", params, found)
    if status == 200:
        is_made = bool(document["affected_nodes"] == 1)
        found.late += not is_made
        return is_made
    if status != 409 or not document.get("retryable"):
        found.problems.append(f"{status}: {document}")
        raise RuntimeError(f"a step failed: {document}")
    return False


async def _fresh_value(place: Place, found: Count) -> int:
    async with connected(place) as connection:
        return await _value(connection, found)


async def _value(connection: Connection, found: Count) -> int:
    status, document = await _ask(connection, "/read", "value", {"name": COUNTER}, found)
    if status != 200:
        raise RuntimeError(f"the counter cannot be read: {document}")
    value: int = document["rows"][0]["c.value"]
    return value


async def _ask(
    connection: Connection, path: str, name: str, params: dict[str, object], found: Count
) -> tuple[int, dict[str, Any]]:
    document: dict[str, object] = {
        "query_source": COUNTING,
        "query_name": name,
        "params": params,
    }
    answer = await connection.ask(Call(name, path, document).encoded())
    found.statuses[answer.status] += 1
    return answer.status, json.loads(answer.body)
