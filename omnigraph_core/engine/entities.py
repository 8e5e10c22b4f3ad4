"""One row of a table as JSON: what `entity_at` answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from omnigraph_core.exec.json_rows import plain_objects

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table


def find_entity(table: Table, id: str) -> dict[str, object] | None:
    """The row of that id, or None."""
    # Lance translates no Arrow expression on a table that has unsigned columns.
    rows = table.read(where="`id` = '" + id.replace("'", "''") + "'")
    if rows.num_rows == 0:
        return None
    found: dict[str, object] = json.loads(plain_objects(rows)[0].as_py())
    return found
