"""The smallest write there is, for tests of how writes land: rows are appended to one table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph_core.history.context import GraphContext
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.write.commit import Landed, Prepared, WriteOptions, commit_write
from tests.support.graphs import PART, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from omnigraph_core.manifest.catalog import CatalogState


def opened(address: str) -> GraphContext:
    """A graph as another process sees it: nothing is known of it yet."""
    return GraphContext(open_store(address))


@dataclass
class Appending:
    """Prepares to append rows, and remembers on which versions it was asked to.

    `meanwhile` happens each time after staging, before the write is published.
    """

    context: GraphContext
    ids: Sequence[str]
    meanwhile: Callable[[], object] = lambda: None
    table_key: str = PART
    asked: list[int] = field(default_factory=list)

    def __call__(self, state: CatalogState) -> Prepared:
        snapshot = state.snapshot
        self.asked.append(snapshot.manifest_version)
        entry = snapshot.table(self.table_key)
        table = self.context.table(entry.location, entry.physical_version)
        staged = stage_append(table, rows_of(self.table_key, self.ids))
        self.meanwhile()
        if staged is None:
            return Prepared((), (), {"rows": 0})
        change = UpdateTable.of(self.table_key, staged, TableOperation.APPEND)
        requirements = requirements_of(snapshot, touched=[self.table_key])
        return Prepared((change,), requirements, {"rows": len(self.ids), "first": self.ids[0]})


def append(
    context: GraphContext,
    *ids: str,
    key: str | None = None,
    branch: str = "main",
    table_key: str = PART,
    digest: str | None = None,
    is_rerunnable: bool = True,
) -> Landed:
    """One write, on its way through the door."""
    options = WriteOptions(branch, idempotency_key=key, actor="tester")
    prepare = Appending(context, ids, table_key=table_key)
    return commit_write(
        context, options, "load", prepare, digest=digest, is_rerunnable=is_rerunnable
    )


def part_ids(address: str, branch: str = "main") -> list[str]:
    """What a reader sees now."""
    context = opened(address)
    entry = context.head(branch)[1].snapshot.table(PART)
    table = context.table(entry.location, entry.physical_version)
    return sorted(table.read(["id"])["id"].to_pylist())
