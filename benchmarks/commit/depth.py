"""Graphs with a history: the cheapest commits there are, in any number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.constants import LOG_FLUSH_INTERVAL
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from tests.support.graphs import BIN, append_pair, new_graph

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.manifest.image import GraphCommit


def graph_at(address: str, depth: int) -> Omnigraph:
    """A graph of that many versions; its parts and its edges have a row each."""
    og = new_graph(address)
    append_pair(og, ["seed"])
    deepen(og, depth)
    return og


def deepen(og: Omnigraph, depth: int, branch: str = "main") -> None:
    """Commit until the branch is at that version."""
    while og.snapshot(branch).manifest_version < depth:
        republish(og, branch)


def republish(og: Omnigraph, branch: str = "main") -> GraphCommit:
    """Publish a table once more as it is: a commit that stages nothing."""
    snapshot = og.snapshot(branch)
    change = UpdateTable.of(BIN, og.table(snapshot, BIN), TableOperation.COMPACTION)
    requirements = requirements_of(snapshot, touched=[BIN])
    return og.commit([change], requirements, branch=branch, actor="benchmark")


def deepen_to_flush(og: Omnigraph) -> None:
    """Commit until the next commit on main is one that also appends to the commit log."""
    while not _is_flush_next(og, "main"):
        republish(og)


def step_over_flush(og: Omnigraph, branch: str = "main") -> None:
    """Make sure that the next commit does not append to the commit log."""
    if _is_flush_next(og, branch):
        republish(og, branch)


def _is_flush_next(og: Omnigraph, branch: str) -> bool:
    return (og.snapshot(branch).manifest_version + 1) % LOG_FLUSH_INTERVAL.value == 0
