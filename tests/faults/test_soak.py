"""Writers and a cleaner are killed again and again; nothing acknowledged is ever missed."""

from __future__ import annotations

import json
import random
import signal
import time
from contextlib import ExitStack, suppress
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.history.snapshots import ReadTarget
from tests.faults.soak import ENVIRONMENT, load_pair, prepare, read_pairs
from tests.support.graphs import new_graph
from tests.support.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.support.processes import Outcome, Worker

KILLS = 24
ENOUGH_SECONDS = 120  # of killing, on a machine too busy to get through them
WRITERS = ("w0", "w1", "w2")
SLOTS = (*WRITERS, "cleaner")


@pytest.mark.long("test_operations kills each operation at each point")
def test_random_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    address = str(tmp_path / "graph")
    og = new_graph(address)
    prepare(og)
    with ExitStack() as stack:
        storm = Storm(address, stack)
        storm.rage(random.Random(11))
        ended = storm.calm()
    for outcome in ended:
        assert outcome.stderr == "", f"{outcome.target}: {outcome.stderr}"
        assert outcome.returncode in (0, -signal.SIGKILL), outcome
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
    load_pair(fresh, "main", "after", 0)


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
            time.sleep(chance.uniform(0.1, 0.9))
            victim.kill()
            self._ended.append(victim.wait())
            self._running[slot] = self._start_slot(slot)
            if time.monotonic() > deadline:
                break

    def calm(self) -> Sequence[Outcome]:
        """Let the last ones finish what they are doing; how all of them ended."""
        workers = [self._reader, *self._running.values()]
        for worker in workers:
            with suppress(BrokenPipeError):  # one that has failed: its outcome tells
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
    journals = [[json.loads(line) for line in writer.stdout.splitlines()[1:]] for writer in writers]
    possible = possibilities(entry for journal in journals for entry in journal)
    branches = og.branch_list()
    tags = [tag.tag for tag in og.tag_list()]
    for (kind, *name), outcomes in possible.items():
        if kind == "branch":
            assert (name[0] in branches) in outcomes, name
        if kind == "tag":
            assert (name[0] in tags) in outcomes, name
            if outcomes == {True}:
                read_pairs(og, og.snapshot_of(ReadTarget(tag=name[0])))
    for branch in branches:
        found = read_pairs(og, og.snapshot(branch))
        for (kind, *name), outcomes in possible.items():
            if kind == "token" and name[0] == branch:
                assert found.get(name[1]) in outcomes, name
        tokens = {key[2] for key in possible if key[0] == "token"}
        assert set(found) <= tokens, f"{branch} holds what nobody wrote"


def possibilities(entries: Iterable[list[Any]]) -> dict[tuple[str, ...], set[Any]]:
    """What may be there by name: a branch or tag, or not; the value of a token on a branch."""
    found: dict[tuple[str, ...], set[Any]] = {}
    for stage, verb, *rest in entries:
        if verb == "set":
            branch, token, value = rest
            outcomes, after = found.setdefault(("token", branch, token), {None}), value
        else:
            kind = "tag" if verb == "tag" else "branch"
            outcomes, after = found.setdefault((kind, rest[0]), {False}), verb != "drop"
        if stage == "done":
            outcomes.clear()
        if stage == "refused":
            outcomes.discard(after)
        else:
            outcomes.add(after)
    return found
