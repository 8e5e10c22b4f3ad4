"""One type at one snapshot, as a value: all that a task on another machine needs to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph_core.storage.places import TablePlace


@dataclass(frozen=True, slots=True)
class Pin:
    """A table as it was at a commit."""

    commit_id: str
    table_key: str
    place: TablePlace
    columns: tuple[str, ...]
    """Those that can be asked for, in order."""
    bytes_columns: tuple[str, ...]
    """Those of them that come only if they are asked for by name."""
