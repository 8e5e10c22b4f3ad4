"""Compaction: a table in many small or half-deleted fragments comes in, one in few goes out.

Planning reads metadata only, tasks run anywhere and write files, staging commits. No row is lost or
changed; rows of rewritten fragments move to the end of the scan. Indexes no longer cover what was
rewritten, and results do not change by that.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lance.dataset import LanceOperation
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction, CompactionTask

from omnigraph_core.errors import PreconditionFailed
from omnigraph_core.failpoints import declare
from omnigraph_core.storage.detached import try_stage
from omnigraph_core.storage.fragments import (
    check_layout,
    count_fragments,
    current_fragments,
    layout,
)
from omnigraph_core.storage.rewrites import record_rewrite
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.detached import Operation

_REWRITTEN: Final = declare("compact.after_rewrite", "fragments are rewritten, not yet replaced")
_RECORDED: Final = declare("compact.after_record", "where rewritten rows came from is recorded")

TARGET_ROWS: Final = 1_048_576
MAX_DELETED_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Independent tasks as JSON texts, and the rows they rewrite together."""

    tasks: tuple[str, ...]
    row_count: int


def compact(
    table: Table,
    *,
    target_rows: int = TARGET_ROWS,
    max_deleted_share: float = MAX_DELETED_SHARE,
) -> Table | None:
    """Plan, rewrite and stage in this process; None when nothing is gained."""
    plan = plan_compaction(table, target_rows=target_rows, max_deleted_share=max_deleted_share)
    if plan is None:
        return None
    return stage_compaction(table, [run_task(table, task) for task in plan.tasks])


def plan_compaction(
    table: Table,
    *,
    target_rows: int = TARGET_ROWS,
    max_deleted_share: float = MAX_DELETED_SHARE,
) -> CompactionPlan | None:
    """Which fragments to rewrite together; None when nothing is gained.

    Fragments under half the target are gathered up to the target, so at most one such fragment is
    left; larger ones are rewritten alone when too many of their rows are deleted. Lance's own plan
    would not join fragments that different index segments cover, which is what small appends are.
    """
    fragments = current_fragments(table)
    small = [fragment for fragment in fragments if fragment.num_rows * 2 < target_rows]
    groups = _gather(small, target_rows)
    groups += [[fragment] for fragment in fragments if fragment.num_rows * 2 >= target_rows]
    gainful = [group for group in groups if _is_gain(group, max_deleted_share)]
    if not gainful:
        return None
    row_count = sum(fragment.num_rows for group in gainful for fragment in group)
    return CompactionPlan(tuple(_task(group, target_rows) for group in gainful), row_count)


def run_task(table: Table, task: str) -> str:
    """Rewrite the fragments of one task; what `stage_compaction` needs, as a JSON text.

    Where the rows came from is recorded beside the new files, and swept with them.

    Raises:
        PreconditionFailed: the table no longer holds a fragment of the task.
    """
    begun_at = time.time()
    content = json.loads(task)
    present = {fragment.id: fragment for fragment in current_fragments(table)}
    for gone in set(content["fragments"]) - set(present):
        raise _moved(table, gone)
    replaced = [present[fragment_id] for fragment_id in content["fragments"]]
    with translated("compacting", table.uri):
        rewritten = _rewrite(table, replaced, content["target_rows"])
    count_fragments(rewritten)
    _REWRITTEN.hit()
    record_rewrite(table, replaced, rewritten)
    _RECORDED.hit()
    result = {
        "begun_at": begun_at,
        "layout": layout(table),
        "replaced": [fragment.to_json() for fragment in replaced],
        "rewritten": [fragment.to_json() for fragment in rewritten],
    }
    return json.dumps(result)


def stage_compaction(table: Table, results: Iterable[str]) -> Table | None:
    """Put the rewritten fragments in the place of the old ones; None without results.

    The table may have moved on since the tasks ran, as long as it still holds the fragments they
    rewrote as they were.

    Raises:
        PreconditionFailed: columns, or rows of rewritten fragments, have changed since.
    """

    done = [json.loads(result) for result in results]

    def prepare() -> Operation | None:
        groups = [_group(table, result) for result in done]
        return LanceOperation.Rewrite(groups, []) if groups else None

    dated = table.since(min((result["begun_at"] for result in done), default=table.staged_since))
    return try_stage(dated, "replacing compacted fragments", prepare)


def _gather(small: Sequence[FragmentMetadata], target_rows: int) -> list[list[FragmentMetadata]]:
    groups: list[list[FragmentMetadata]] = []
    held = 0
    for fragment in small:
        if not groups or held + fragment.num_rows > target_rows:
            groups.append([])
            held = 0
        groups[-1].append(fragment)
        held += fragment.num_rows
    return groups


def _is_gain(group: Sequence[FragmentMetadata], max_deleted_share: float) -> bool:
    if len(group) > 1:
        return True
    return group[0].num_deletions > max_deleted_share * group[0].physical_rows


def _task(group: Sequence[FragmentMetadata], target_rows: int) -> str:
    return json.dumps({"fragments": [item.id for item in group], "target_rows": target_rows})


def _rewrite(
    table: Table, replaced: Sequence[FragmentMetadata], target_rows: int
) -> list[FragmentMetadata]:
    """Lance executes a task of our making: its own form, with the options it plans with."""
    plan: Any = Compaction.plan(table.dataset, {"target_rows_per_fragment": target_rows})
    content = {
        "task": {"fragments": [fragment.to_json() for fragment in replaced]},
        "read_version": table.physical_version,
        "options": json.loads(plan.json())["options"],
    }
    tasks: Any = CompactionTask  # its type stub leaves out the JSON form
    return list(tasks.from_json(json.dumps(content)).execute(table.dataset).new_fragments)


def _group(table: Table, result: dict[str, list[dict[str, object]]]) -> LanceOperation.RewriteGroup:
    """New ids are left to the commit: it knows those of removed fragments, which indexes may name.

    A fragment under an id that an old index segment still lists would be looked up there in vain.
    """
    check_layout(table, str(result["layout"]))
    present = {fragment.id: fragment for fragment in current_fragments(table)}
    replaced = []
    for expected in result["replaced"]:
        fragment = present.get(int(str(expected["id"])))
        if fragment is None or fragment.to_json() != expected:
            raise _moved(table, expected["id"])
        replaced.append(fragment)
    rewritten = [FragmentMetadata.from_json(json.dumps(item)) for item in result["rewritten"]]
    return LanceOperation.RewriteGroup(replaced, rewritten)


def _moved(table: Table, fragment_id: object) -> PreconditionFailed:
    member = f"fragment {fragment_id} of `{table.location}`"
    return PreconditionFailed(member, "as it was planned", "changed or gone")
