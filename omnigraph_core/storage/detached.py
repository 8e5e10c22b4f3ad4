"""The one way a table gets another version: a detached commit on top of the version in hand.

A table and an operation over files already written come in, the table at its new version goes out.
HEAD never moves and no catalog names the version yet, so a crash leaves only unreferenced files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from lance.dataset import LanceDataset, LanceOperation, Transaction

from omnigraph_core.failpoints import declare
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.storage.dataset import Table

_BEFORE_FILES: Final = declare("stage.before_files", "nothing of a staged operation is written")
_AFTER_FILES: Final = declare(
    "stage.after_files", "the files of a staged operation are written, its version is not"
)
_AFTER_VERSION: Final = declare(
    "stage.after_version", "the version of a staged operation exists, no catalog names it"
)

Operation: TypeAlias = LanceOperation.BaseOperation


def stage(table: Table, doing: str, prepare: Callable[[], Operation]) -> Table:
    """The table after an operation; `prepare` writes its files and describes it."""
    _BEFORE_FILES.hit()
    return _commit(table, doing, prepare())


def try_stage(table: Table, doing: str, prepare: Callable[[], Operation | None]) -> Table | None:
    """Like `stage`, for an operation that may turn out to change nothing: None then."""
    _BEFORE_FILES.hit()
    operation = prepare()
    return None if operation is None else _commit(table, doing, operation)


def _commit(table: Table, doing: str, operation: Operation) -> Table:
    _AFTER_FILES.hit()
    with translated(doing, table.uri):
        dataset = LanceDataset.commit(
            table.dataset,
            Transaction(table.physical_version, operation),
            storage_options=table.store.options,
            detached=True,
        )
    _AFTER_VERSION.hit()
    return table.at(dataset)
