"""Who maintains a graph on executors.

One commit for all tables, work done again on tables that moved meanwhile, what is removed and
when: all of that is the engine's. Until it commits nothing is visible, whatever becomes of tasks.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.ids import new_ulid
from omnigraph_core.spark.maintain.cleaning import SweeperThere
from omnigraph_core.spark.maintain.compaction import compact_tables
from omnigraph_core.spark.maintain.indexing import PART_ROWS, index_tables
from omnigraph_core.spark.maintain.topology import build_links
from omnigraph_core.storage.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.engine.workers import Indexed, Wanted
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store
    from omnigraph_core.topology.link_files import LinkTables

PORTION_FILES: Final = 100_000
"""Files that one task removes."""


@dataclass(frozen=True, slots=True)
class Executors:
    """Works on tables by the tasks of a runner."""

    runner: Runner
    part_rows: int = PART_ROWS
    portion_files: int = PORTION_FILES

    def compact(self, tables: Sequence[Table]) -> list[Table | None]:
        return compact_tables(self.runner, tables)

    def index(self, wanted: Sequence[Wanted]) -> list[Indexed]:
        return index_tables(self.runner, wanted, part_rows=self.part_rows)

    def link(self, tables: LinkTables) -> None:
        build_links(self.runner, tables, part_rows=self.part_rows)

    @contextmanager
    def sweeper(self, store: Store, *, older_than: float) -> Iterator[SweeperThere]:
        scratch = Scratch(store, new_ulid())
        try:
            yield SweeperThere(self.runner, scratch, older_than, self.portion_files)
        finally:
            scratch.clear()
