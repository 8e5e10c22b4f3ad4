"""Who else may do the heavy part of maintenance: tables come in, the same staged anew go out.

Nothing that is staged is visible, so the work may be done anywhere and lost at any time. What is
published, what is removed, and when, is decided by whoever asked for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from omnigraph_core.engine.beyond import AUTO, LOCAL, check_engine, is_elsewhere, spark_module

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from omnigraph_core.engine.sweeping import Sweeper
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.segments import IndexRequest
    from omnigraph_core.storage.session import Store
    from omnigraph_core.topology.link_files import LinkTables

    Wanted: TypeAlias = tuple[Table, tuple[IndexRequest, ...]]
    """A table and the indexes it is to have."""
    Indexed: TypeAlias = tuple[Table, tuple[str, ...]]
    """The table with every index completed, and the names of those that were not."""


class Workers(Protocol):
    """Does the work on several tables; results are in the order of the tables."""

    def compact(self, tables: Sequence[Table]) -> list[Table | None]:
        """Each table in fewer and fuller files; None where nothing is gained."""
        ...

    def index(self, wanted: Sequence[Wanted]) -> list[Indexed]:
        """Each table with its indexes completed."""
        ...

    def link(self, tables: LinkTables) -> None:
        """Keep the links of an edge type as a file beside the graph."""
        ...

    def sweeper(self, store: Store, *, older_than: float) -> AbstractContextManager[Sweeper]:
        """The files of all tables that were written before a moment, listed now."""
        ...


def workers_for(engine: str, context: GraphContext, branch: str) -> Workers | None:
    """Who does the work; None: this process.

    With `auto` that is Spark where it runs on other machines, if the tables of the branch have so
    many rows, all together, that the settings say so.

    Raises:
        ConfigError: there is no such engine, or Spark is not installed or does not start.
        BranchNotFound: there is none of that name.
    """
    check_engine(engine)
    if engine == LOCAL or (engine == AUTO and not _is_large(context, branch)):
        return None
    workers: Workers = spark_module("maintain.entry").workers()
    return workers


def _is_large(context: GraphContext, branch: str) -> bool:
    if not is_elsewhere():
        return False
    tables = context.head(branch)[1].snapshot.tables.values()
    rows = sum(entry.row_count for entry in tables)
    return rows >= int(spark_module("settings").UPKEEP_FROM.read())
