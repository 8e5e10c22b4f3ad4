"""Another process that changes a graph while it is read: it does what it is told, and says so.

Every commit keeps a law that any reader can check: each part is held by one bin, stocks add up to
the number of the commit times the number of parts, and there are ten more parts each time.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.settings import PUBLISH_LEASE
from tests.support.graphs import new_graph
from tests.support.processes import hear, say, spawn

if TYPE_CHECKING:
    from types import TracebackType

    from tests.support.processes import Worker

STEP: Final = 10
LAW: Final = """
query law() {
  match { $p: Part  optional { $b holds $p } }
  return { count($p) as parts, count($b) as held, sum($p.stock) as stock }
}
"""


def begin(address: str) -> Omnigraph:
    """A graph after its first commit of the kind."""
    og = new_graph(address)
    commit(og, 1)
    return og


def commit(og: Omnigraph, number: int, branch: str = "main") -> None:
    """Every part there is gets the number as its stock, and ten parts come in."""
    records: list[dict[str, object]] = [{"type": "Bin", "data": {"code": "bin"}}]
    for part in range(number * STEP):
        sku = f"p{part:05}"
        records.append({"type": "Part", "data": {"sku": sku, "name": sku, "stock": number}})
        if part >= (number - 1) * STEP:
            records.append({"edge": "Holds", "from": "bin", "to": sku})
    og.load("".join(json.dumps(record) + "\n" for record in records).encode(), branch=branch)


def law_after(number: int) -> dict[str, int]:
    """What every reader finds after so many commits."""
    parts = number * STEP
    return {"parts": parts, "held": parts, "stock": parts * number}


class Rival:
    """The process, as seen by the test."""

    def __init__(self, address: str) -> None:
        self._worker: Worker = spawn("tests.support.read_rivals:obey", address)

    def __enter__(self) -> Rival:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._worker.__exit__(kind, error, trace)

    def do(self, *words: object) -> str:
        """Have one thing done; returns when it is."""
        self._worker.send(json.dumps(words))
        return self._worker.next_line()


def obey(address: str) -> None:
    """Inside the process."""
    og = Omnigraph.open(address)
    while (line := hear()) is not None:
        word, *rest = json.loads(line)
        if word == "commit":
            commit(og, *rest)
        elif word == "optimize":
            og.optimize()
        elif word == "cleanup":
            _clean_up(og, *rest)
        else:
            og.branch_delete(*rest)
        say(word)


def _clean_up(og: Omnigraph, grace: float | None = None) -> None:
    """As much as may be: by default with the least grace that running writers allow."""
    if grace is None:
        grace = 2 * PUBLISH_LEASE.read()
    os.environ[PUBLISH_LEASE.name] = str(grace / 2)
    og.cleanup(keep=1, grace=timedelta(seconds=grace))
    del os.environ[PUBLISH_LEASE.name]
