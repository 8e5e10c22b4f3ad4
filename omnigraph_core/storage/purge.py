"""Values of dropped columns taken out of a table's files: a table comes in, the same rows go out.

Dropping a column leaves its values in the data files, where nobody reads them. Fragments whose
files hold any are rewritten; older versions still have the old files.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from omnigraph_core.storage.compact import TARGET_ROWS, run_task, stage_compaction
from omnigraph_core.storage.fragments import current_fragments
from omnigraph_core.storage.proto import split_schema

if TYPE_CHECKING:
    from lance.fragment import FragmentMetadata

    from omnigraph_core.storage.dataset import Table


def purge_dropped(table: Table) -> Table | None:
    """The table without values of columns it does not have; None if its files hold none."""
    known = {record.id for record in split_schema(table.dataset.lance_schema)[1]}
    tasks = [
        json.dumps({"fragments": [fragment.id], "target_rows": TARGET_ROWS})
        for fragment in current_fragments(table)
        if not _field_ids(fragment) <= known
    ]
    return stage_compaction(table, [run_task(table, task) for task in tasks])


def stored_field_ids(table: Table) -> frozenset[int]:
    """Fields whose values the files of the version hold, columns of the table or not."""
    return frozenset().union(*map(_field_ids, current_fragments(table)))


def _field_ids(fragment: FragmentMetadata) -> set[int]:
    """Fields that the files of a fragment hold."""
    return {field for file in fragment.files for field in file.fields}
