"""Writers and a cleaner are killed again and again; nothing acknowledged is ever missed."""

from __future__ import annotations

import json
import random
import signal
import time
from contextlib import ExitStack
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.faults.soak import ENVIRONMENT, read_pairs
from tests.support.graphs import append_pair, new_graph
from tests.support.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from tests.support.processes import Outcome, Worker

KILLS = 24
ENOUGH_SECONDS = 120  # of killing, on a machine too busy to get through them
WRITERS = ("w0", "w1", "w2")
SLOTS = (*WRITERS, "cleaner")


def test_random_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    address = str(tmp_path / "graph")
    og = new_graph(address)
    with ExitStack() as stack:
        storm = Storm(address, stack)
        storm.rage(random.Random(11))
        ended = storm.calm()
    for outcome in ended:
        assert outcome.returncode in (0, -signal.SIGKILL), outcome
        assert outcome.stderr == "", outcome.target
    swept = [line.split() for line in lines_of(ended, "sweep")]
    assert sum(int(versions) for versions, _ in swept) > 0, "the cleaner had something to do"
    assert len(lines_of(ended, "inspect")) > len(SLOTS), "the reader had something to look at"

    writers = [outcome for outcome in ended if outcome.target.endswith("churn")]
    check_journals(og, writers)
    monkeypatch.setenv("OMNIGRAPH_PUBLISH_LEASE", "0.001")
    og.cleanup(keep=1, grace=timedelta(seconds=0.002))
    monkeypatch.setenv("OMNIGRAPH_PUBLISH_LEASE", "60")
    fresh = Omnigraph.open(address)
    check_journals(fresh, writers)
    for branch in fresh.branch_list():
        commits = fresh.list_commits(branch)
        assert len({commit.graph_commit_id for commit in commits}) == len(commits)
        assert commits[-1].operation == "init"
    append_pair(fresh, ["after"])


class Storm:
    """The processes, one per slot; a killed one is followed by another."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        self._address = address
        self._stack = stack
        self._seeds = count()
        self._ended: list[Outcome] = []
        self._reader = self._start("inspect")
        self._running = {slot: self._start_slot(slot) for slot in SLOTS}

    def rage(self, chance: random.Random) -> None:
        deadline = time.monotonic() + ENOUGH_SECONDS
        for _ in range(KILLS):
            slot = chance.choice(SLOTS)
            victim = self._running[slot]
            assert victim.next_line() == "ready"  # killed at work, not while it starts
            time.sleep(chance.uniform(0.1, 1.2))
            victim.kill()
            self._ended.append(victim.wait())
            self._running[slot] = self._start_slot(slot)
            if time.monotonic() > deadline:
                break

    def calm(self) -> Sequence[Outcome]:
        """Let the last ones finish what they are doing; how all of them ended."""
        workers = [self._reader, *self._running.values()]
        for worker in workers:
            worker.send("stop")
        return [*self._ended, *(worker.wait(120) for worker in workers)]

    def _start_slot(self, slot: str) -> Worker:
        if slot == "cleaner":
            return self._start("sweep")
        seed = next(self._seeds)
        return self._start("churn", f"{slot}.{seed}", seed)

    def _start(self, function: str, *arguments: Any) -> Worker:
        target = f"tests.faults.soak:{function}"
        return self._stack.enter_context(spawn(target, self._address, *arguments))


def lines_of(ended: Sequence[Outcome], function: str) -> list[str]:
    """What all processes of a function said after they were ready."""
    own = [outcome for outcome in ended if outcome.target.endswith(function)]
    return [line for outcome in own for line in outcome.stdout.splitlines()[1:]]


def check_journals(og: Omnigraph, writers: Sequence[Outcome]) -> None:
    """The graph holds what was acknowledged; of what was only tried, all or nothing."""
    branches: dict[str, set[bool]] = {"main": {True}}
    values: dict[str, dict[str, set[int | None]]] = {"main": {}}
    for writer in writers:
        for line in writer.stdout.splitlines()[1:]:
            stage, verb, branch, *rest = json.loads(line)
            if verb == "set":
                token, value = rest
                allowed: set[Any] = values[branch].setdefault(token, {None})
                possible: Any = value
            else:
                values.setdefault(branch, {})
                allowed = branches.setdefault(branch, {False})
                possible = verb == "create"
            if stage == "done":
                allowed.clear()
            allowed.add(possible)
    present = og.branch_list()
    assert {name: name in present for name in branches}.items() <= {
        (name, is_there) for name, possible in branches.items() for is_there in possible
    }
    assert set(present) <= set(branches)
    for branch in present:
        found = read_pairs(og, og.snapshot(branch))
        for token, possible_values in values[branch].items():
            assert found.get(token) in possible_values, f"{token} on {branch}"
    assert set(read_pairs(og, og.snapshot())) <= set(values["main"])
