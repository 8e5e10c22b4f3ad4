"""Processes merge into one branch at the same time: each merge lands whole, or says what is wrong.

Branches that break a rule only together are among them, and others write and optimize meanwhile.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConflictError, MergeConflicts
from omnigraph_core.manifest.retry import back_off
from tests.support.constraints import (
    BIN,
    LIES_IN,
    MOST_BINS,
    PART,
    Row,
    bin,
    check_every_version,
    jsonl,
    new_graph,
    part,
    rows_of,
)
from tests.support.crowds import until_told
from tests.support.examples import LONG
from tests.support.processes import hear, say, spawn

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.processes import Worker

SLOWLY = {"OMNIGRAPH_FAILPOINTS": "publish.before_image=sleep(10)"}
"""Between deciding and publishing there is time for others."""
MERGERS = 4 if LONG else 3
LOADS = 12 if LONG else 6
DROP = 'query drop() { delete Part where sku = "leaving" }'


def merge_each(address: str, branches: list[str]) -> dict[str, list[str]]:
    """In a worker: the kinds of conflicts of each branch, none for one that has landed."""
    og = Omnigraph.open(address)
    say("ready")
    hear()
    return {branch: _merge(og, branch) for branch in branches}


def _merge(og: Omnigraph, branch: str) -> list[str]:
    for number in range(60):
        try:
            og.branch_merge(branch, actor=branch)
            return []
        except MergeConflicts as found:
            return sorted({str(conflict["kind"]) for conflict in found.conflicts})
        except ConflictError as conflict:
            if not conflict.retryable:
                raise
        back_off(min(number, 5))
    raise AssertionError("others were first sixty times")


def load_some(address: str) -> int:
    og = Omnigraph.open(address)
    say("ready")
    hear()
    for number in range(LOADS):
        og.load(jsonl(part(f"loaded {number}")), actor="loader")
    return LOADS


def optimize_always(address: str) -> int:
    """In a worker: how often there was something to commit."""
    og = Omnigraph.open(address)
    say("ready")
    hear()
    return until_told(lambda: any(table.committed for table in og.optimize(actor="optimizer")))


def lies(id: str, sku: str, label: str) -> Row:
    return {"edge": "LiesIn", "from": sku, "to": label, "data": {"id": id}}


def edits(worker: int) -> dict[str, list[Row]]:
    """What each branch of a worker puts in; only the first kind goes with everything."""
    return {
        f"own/{worker}": [
            part(f"own {worker}", code=f"own {worker}"),
            part(f"kept {worker}", stock=worker),
            lies(f"own {worker}", f"own {worker}", f"b{worker}"),
        ],
        f"same row/{worker}": [part("shared", stock=100 + worker), part(f"row {worker}")],
        f"same code/{worker}": [part(f"code {worker}", code="wanted by all")],
        f"full/{worker}": [lies(f"full {worker}", "crowded", f"b{worker}")],
        f"same edge/{worker}": [lies(f"edge {worker}", "shared", "b0")],
        f"leaving/{worker}": [] if worker == 0 else [lies(f"l {worker}", "leaving", f"b{worker}")],
    }


def start_together(stack: ExitStack, jobs: list[tuple[Any, ...]]) -> list[Worker]:
    workers = [
        stack.enter_context(spawn(f"{__name__}:{job}", *arguments, env=SLOWLY))
        for job, *arguments in jobs
    ]
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")
    return workers


def test_branches_are_merged_by_many(tmp_path: Path) -> None:
    og = new_graph(str(tmp_path / "graph"))
    kept = [part(f"kept {worker}", stock=-1) for worker in range(MERGERS)]
    bins = [bin(f"b{worker}") for worker in range(MERGERS)]
    og.load(jsonl(part("shared"), part("crowded"), part("leaving"), *kept, *bins))
    branches = {worker: edits(worker) for worker in range(MERGERS)}
    for name, rows in (item for group in branches.values() for item in group.items()):
        og.branch_create(name)
        if rows:
            og.load(jsonl(*rows), branch=name)
        else:
            og.mutate(DROP, branch=name)
    with ExitStack() as stack:
        jobs = [("merge_each", og.uri, list(names)) for names in branches.values()]
        others = [("load_some", og.uri), ("optimize_always", og.uri)]
        *mergers, loader, optimizer = start_together(stack, [*jobs, *others])
        found: dict[str, list[str]] = {}
        for worker in mergers:
            found |= worker.wait(120).result()
        loaded = loader.wait().result()
        optimizer.send("stop")
        assert optimizer.wait().result() > 0
    check_outcomes(found)
    landed = [name for name, kinds in found.items() if not kinds]
    check_content(og, branches, landed, loaded)
    check_history(og, landed)
    check_every_version(og)
    og.verify(is_deep=True).require_sound()


def check_outcomes(found: dict[str, list[str]]) -> None:
    """As many as the rules allow, and of every other one the rule it would break."""
    landed = Counter(name.split("/")[0] for name, kinds in found.items() if not kinds)
    refused: dict[str, set[str]] = {}
    for name, kinds in found.items():
        refused.setdefault(name.split("/")[0], set()).update(kinds)
    assert (landed["own"], refused["own"]) == (MERGERS, set())
    assert (landed["same row"], refused["same row"]) == (1, {"divergent_update"})
    assert (landed["same code"], refused["same code"]) == (1, {"unique_violation"})
    assert (landed["full"], refused["full"]) == (MOST_BINS, {"cardinality_violation"})
    assert (landed["same edge"], refused["same edge"]) == (1, {"unique_violation"})
    assert refused["leaving"] <= {"orphan_edge", "cardinality_violation"}
    if found["leaving/0"]:
        assert landed["leaving"] == MOST_BINS, "the part has stayed, with all the edges it may have"
    else:
        assert landed["leaving"] == 1, "the part has gone before there was an edge"


def check_content(
    og: Omnigraph, branches: dict[int, dict[str, list[Row]]], landed: list[str], loaded: int
) -> None:
    """What is there is what there was, with all that has landed."""
    put = [row for group in branches.values() for name in landed for row in group.get(name, [])]
    rows = rows_of(Omnigraph.open(og.uri), og.snapshot())
    parts = {row["sku"]: (row["code"], row["stock"]) for row in rows[PART]}
    expected: dict[str, tuple[Any, Any]] = {"shared": (None, None), "crowded": (None, None)}
    expected |= {"leaving": (None, None)} if "leaving/0" not in landed else {}
    expected |= {f"loaded {number}": (None, None) for number in range(loaded)}
    expected |= {
        row["data"]["sku"]: (row["data"].get("code"), row["data"].get("stock"))
        for row in put
        if row.get("type") == "Part"
    }
    assert parts == expected
    edges = {row["id"]: (row["src"], row["dst"]) for row in rows[LIES_IN]}
    assert edges == {row["data"]["id"]: (row["from"], row["to"]) for row in put if "edge" in row}
    assert len(rows[BIN]) == MERGERS


def check_history(og: Omnigraph, landed: list[str]) -> None:
    """One commit with two parents for each merge that has landed."""
    line, commit = [], og.snapshot().commit
    while commit.parent_commit_id is not None:
        line.append(commit)
        commit = og.get_commit(commit.parent_commit_id)
    merges = {c.actor_id: c.merged_parent_commit_id for c in line if c.operation == "merge"}
    assert merges == {name: og.head_commit_id_for_branch(name) for name in landed}
    assert sum(c.operation == "merge" for c in line) == len(landed)
    assert sum(c.operation == "load" for c in line) == 1 + LOADS
