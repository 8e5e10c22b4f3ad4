"""Schemas change while others change them too, load and merge: every row fits the schema it is in.

A write lands before a schema change or after it, under the schema of that moment.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConflictError, DataError, PreconditionFailed, SchemaApplyLocked
from tests.support.constraints import PART, SCHEMA, jsonl, new_graph, part, rows_of
from tests.support.crowds import until_told
from tests.support.processes import hear, say, spawn

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.processes import Worker

SLOWLY = {"OMNIGRAPH_FAILPOINTS": "publish.before_image=sleep(10)"}
NO_LOCK = {"OMNIGRAPH_SCHEMA_LOCK": "0.001"}
"""The lock expires at once: what counts is decided when the change is published."""
RIVALS = 3
PAUSE = 0.2
"""Seconds between two loads: who never pauses leaves no time to prepare a schema change in."""
MERGED = 6
GRADED = SCHEMA.replace("stock: I64?", "stock: I64 @default(0)\n  grade: I64 @default(5)")
RENAMED = GRADED.replace("stock: I64 ", "amount: I64 ").replace(
    "@default(0)", '@default(0) @rename_from("stock")'
)


def apply_each(address: str) -> None:
    """In a worker, as the others here: applies what it is told, and says what became of it."""
    og = Omnigraph.open(address)
    say("ready")
    while (line := hear()) is not None:
        say(_applied(og, json.loads(line)))


def _applied(og: Omnigraph, source: str) -> str:
    try:
        result = og.schema_apply(source, actor="changer")
    except SchemaApplyLocked:
        return "locked"
    except PreconditionFailed:
        return "overtaken"
    return "applied" if result.applied else "unchanged"


def load_always(address: str) -> dict[str, Any]:
    """Parts with a stock until they are refused: how many were taken, and what was said then."""
    og = Omnigraph.open(address)
    say("ready")
    taken = 0
    try:
        while True:
            og.load(jsonl(part(f"loaded {taken}", stock=taken)), actor="loader")
            taken += 1
            time.sleep(PAUSE)
    except DataError as refused:
        return {"taken": taken, "refused": refused.message}


def merge_each(address: str) -> int:
    """How many branches were merged; some after the schema has changed."""
    og = Omnigraph.open(address)
    say("ready")
    merged = iter(range(MERGED))

    def turn() -> bool:
        number = next(merged, None)
        if number is not None:
            og.branch_merge(f"side/{number}", actor="merger")
        return number is not None

    return until_told(turn)


def start(stack: ExitStack, job: str, *arguments: Any, **env: str) -> Worker:
    target = f"{__name__}:{job}"
    return stack.enter_context(spawn(target, *arguments, env={**SLOWLY, **env}))


def race(workers: list[Worker], sources: list[str]) -> list[str]:
    for worker, source in zip(workers, sources, strict=True):
        worker.send(json.dumps(source))
    return [worker.next_line() for worker in workers]


@pytest.mark.parametrize("env", [{}, NO_LOCK], ids=["lock", "no lock"])
def test_several_change_the_schema(env: dict[str, str], tmp_path: Path) -> None:
    """Each lands on a schema its author has seen: what one adds, another does not take away."""
    og = new_graph(str(tmp_path / "graph"))
    og.load(jsonl(part("p")))
    sources = [
        SCHEMA.replace("stock: I64?", f"stock: I64?\n  of_{rival}: I64 @default({rival})")
        for rival in range(RIVALS)
    ]
    with ExitStack() as stack:
        workers = [start(stack, "apply_each", og.uri, **env) for _ in range(RIVALS)]
        for worker in workers:
            assert worker.next_line() == "ready"
        outcomes = race(workers, sources)
        applied = [
            source for source, told in zip(sources, outcomes, strict=True) if told == "applied"
        ]
        assert set(outcomes) <= {"applied", "locked", "overtaken"}
        assert applied
        commits = [commit for commit in og.list_commits() if commit.operation == "schema_apply"]
        assert len(commits) == len(applied)
        assert og.schema_show().source in applied
        # The same by all: once, and nobody is told that it failed but who was locked out.
        outcomes = race(workers, [GRADED] * RIVALS)
        assert outcomes.count("applied") == 1
        assert set(outcomes) <= {"applied", "locked", "unchanged"}
    assert og.schema_show().source == GRADED
    og.verify(is_deep=True).require_sound()


def test_rows_come_in_while_the_schema_changes(tmp_path: Path) -> None:
    og = new_graph(str(tmp_path / "graph"))
    og.load(jsonl(part("p")))
    for number in range(MERGED):
        og.branch_create(f"side/{number}")
        og.load(jsonl(part(f"merged {number}")), branch=f"side/{number}")
    with ExitStack() as stack:
        loader = start(stack, "load_always", og.uri)
        merger = start(stack, "merge_each", og.uri)
        for worker in (loader, merger):
            assert worker.next_line() == "ready"
        for source in (GRADED, RENAMED):
            applied = _apply(og, source)
            assert applied
        told = loader.wait(120).result()
        merger.send("stop")
        merged = merger.wait().result()
    assert "`stock`" in told["refused"]
    rest = [og.branch_merge(f"side/{number}") for number in range(merged, MERGED)]
    assert all(result.commit is not None for result in rest)
    rows = {row["sku"]: row for row in rows_of(og, og.snapshot())[PART]}
    names = {f"loaded {number}" for number in range(told["taken"])}
    assert rows.keys() == {"p", *names, *(f"merged {number}" for number in range(MERGED))}
    assert {row["grade"] for row in rows.values()} == {5}
    amounts = {name: row["amount"] for name, row in rows.items() if name in names}
    assert amounts == {f"loaded {number}": number for number in range(told["taken"])}
    check_every_schema(og)
    og.verify(is_deep=True).require_sound()


def _apply(og: Omnigraph, source: str) -> bool:
    """Others may be first every time that it tries; its caller tries again."""
    while True:
        try:
            return og.schema_apply(source, actor="changer").applied
        except ConflictError as conflict:
            if not conflict.retryable:
                raise


def check_every_schema(og: Omnigraph) -> None:
    """At every version rows have the columns of its schema, filled as it says; it changed twice."""
    seen = []
    for version in range(1, og.snapshot().manifest_version + 1):
        snapshot = og.snapshot_at_version(version)
        columns = set(og.table(snapshot, PART).schema.names)
        if not seen or seen[-1] != snapshot.schema.source:
            seen.append(snapshot.schema.source)
        assert (
            columns
            == {
                SCHEMA: {"id", "sku", "code", "stock"},
                GRADED: {"id", "sku", "code", "stock", "grade"},
                RENAMED: {"id", "sku", "code", "amount", "grade"},
            }[snapshot.schema.source]
        )
    assert seen == [SCHEMA, GRADED, RENAMED]
