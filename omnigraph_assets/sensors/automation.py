"""Requests derived assets of tables that changed: one run for each branch that has moved.

The cursor holds, for each branch, the commit that derived work is done for, and the commit that a
run was requested for. Work counts as done only when its run has succeeded, so a change is never
forgotten: not while a run is under way, not by a failed run, and not by a stopped sensor.

Derived work commits too, and these commits request nothing by themselves: the run that embeds also
indexes and links, in this order. Each commit is looked at once, so no run can request the next.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import dagster as dg

from omnigraph_assets.assets.embeddings import embedded_properties
from omnigraph_assets.assets.indexes import COVERED, indexed_types
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.instance import busy_branches, count_runs, instance_of, last_run
from omnigraph_assets.loads.run_records import PublishedTable, changes_since
from omnigraph_assets.names import Names
from omnigraph_assets.schema_state import AcceptedState
from omnigraph_assets.sensors.branches import known_branches
from omnigraph_core.constants import DERIVED_MIN_ROWS
from omnigraph_core.engine.indexing import IndexState
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.schema.catalog import Catalog

DERIVED_TAG: Final = "omnigraph/derived"
_FIRST_WAIT: Final = 60.0
"""Seconds from a failed run to the next one; each further wait is four times as long."""
_LONGER_WAITS: Final = 3
"""After that they stay as long, 64 minutes: a provider may be out for hours on a quiet branch."""
_INTERVAL: Final = 29
"""Seconds; the daemon evaluates the sensor every 30 s then, as it looks every 5 s."""
_WALKED: Final = 200
"""Commits that are looked through for those of derived work."""
_EMBED: Final = "embed"
_REWRITES: Final = ("ensure_indices", "optimize")
"""Operations that change no row."""
_ENDED: Final = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.CANCELED)
"""Runs that are not repeated: who cancels one does not want it before the next change."""


class Commit(Protocol):
    """What is asked of a commit of the graph."""

    @property
    def operation(self) -> str: ...

    @property
    def actor_id(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class BranchMark:
    """How far derived work on a branch has come."""

    handled: str | None = None
    """The commit that it is done for."""
    requested: str | None = None
    """The commit that a run was requested for, which has not been seen to succeed."""


@dataclass(frozen=True, slots=True)
class BranchTick:
    """What one look at a branch has decided."""

    mark: BranchMark
    request: dg.RunRequest | None = None
    reason: str | None = None
    is_new: bool = False
    """The branch has to be made a partition before a run can be requested."""


def build_automation(config: GraphConfig, state: AcceptedState, job: Any) -> dg.SensorDefinition:
    """The sensor that keeps embeddings, indexes and topology of a graph up to date."""
    names = Names(config.name)
    catalog = state.catalog

    @dg.sensor(
        name=names.named("automation"),
        job=job,
        minimum_interval_seconds=_INTERVAL,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Requests embeddings, indexes and topology of the types that changed, with one "
        "run for each branch.",
    )
    def automation(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        marks = _read_marks(context.cursor)
        with config.open() as graph:
            look = _Look(instance_of(context), graph, config, state, catalog, marks)
            ticks = {branch: look.evaluate_branch(branch) for branch in graph.branch_list()}
        requests = [tick.request for tick in ticks.values() if tick.request is not None]
        reasons = [tick.reason for tick in ticks.values() if tick.reason is not None]
        new = [branch for branch, tick in ticks.items() if tick.is_new]
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else "; ".join(reasons) or "no table has changed",
            cursor=json.dumps({branch: asdict(tick.mark) for branch, tick in ticks.items()}),
            dynamic_partitions_requests=[names.branches.build_add_request(sorted(new))]
            if new
            else [],
        )

    return automation


def _read_marks(text: str | None) -> dict[str, BranchMark]:
    """The marks of the last tick; a cursor of another release counts as none."""
    try:
        return {branch: BranchMark(**mark) for branch, mark in json.loads(text or "{}").items()}
    except (ValueError, TypeError, AttributeError):
        return {}


@dataclass(frozen=True)
class _Look:
    """One look at the graph."""

    instance: dg.DagsterInstance
    graph: Omnigraph
    config: GraphConfig
    state: AcceptedState
    catalog: Catalog
    marks: Mapping[str, BranchMark]

    @cached_property
    def busy(self) -> set[str]:
        """Asked for only if some branch has moved."""
        return busy_branches(self.instance, self.config.name)

    @cached_property
    def partitions(self) -> set[str]:
        return known_branches(self.instance, Names(self.config.name))

    def evaluate_branch(self, branch: str) -> BranchTick:
        mark = self.marks.get(branch, BranchMark())
        head = self.graph.head_commit_id_for_branch(branch)
        if mark == BranchMark(head):
            return BranchTick(mark)
        if branch in self.busy:
            return BranchTick(mark, reason=f"a run works on `{branch}`")
        if mark.requested is not None:
            last = last_run(self.instance, DERIVED_TAG, _target(branch, mark.requested))
            if last is not None and last.dagster_run.status in _ENDED:
                mark = BranchMark(mark.requested)
        if self.graph.schema_show(branch).hash != self.state.schema_hash:
            return BranchTick(mark, reason=f"`{branch}` has another schema than the definitions")
        keys = self._behind(branch, mark.handled, head)
        if not keys:
            return BranchTick(BranchMark(head))
        if branch not in self.partitions:
            reason = f"`{branch}` becomes a partition first"
            return BranchTick(mark, reason=reason, is_new=True)
        return self._requested(branch, head, mark, keys)

    def _behind(self, branch: str, handled: str | None, head: str) -> set[dg.AssetKey]:
        """The derived assets that commits since the handled one have left behind."""
        commits = self.graph.list_commits(branch, limit=_WALKED)
        ids = [commit.graph_commit_id for commit in commits]
        if handled is None:
            # A new branch: it begins with what was done for the one it was forked from.
            done = {mark.handled for mark in self.marks.values()}
            handled = next((commit_id for commit_id in ids if commit_id in done), None)
        if handled == head:
            return set()
        found = changes_since(self.graph, branch, handled, head).tables
        changed = {table.table_key: table for table in found if table.rows}
        if handled not in ids:
            return derived_keys(self.config.name, self.catalog, changed)
        since = commits[: ids.index(handled)]
        if not all(_is_derived_work(commit, self.config.actor) for commit in since):
            return derived_keys(self.config.name, self.catalog, changed)
        return self._left_by_derived_work(since, head, changed)

    def _left_by_derived_work(
        self, commits: Sequence[Commit], head: str, changed: Mapping[str, PublishedTable]
    ) -> set[dg.AssetKey]:
        """What embedding alone, or a rewrite of tables, has left behind.

        A run of automation leaves nothing; embeddings that were made by hand leave their indexes,
        and a compaction the links of large tables.
        """
        operations = {commit.operation for commit in commits}
        keys: set[dg.AssetKey] = set()
        if _EMBED in operations:
            status = self.graph.index_status(ReadTarget(snapshot_id=head))
            partial = {
                report.table_key
                for report in status
                if report.state is IndexState.PARTIAL and not report.is_inherited
            }
            keys |= derived_keys(self.config.name, self.catalog, partial & changed.keys())
            keys = {key for key in keys if key.path[1] != "embeddings"}
        is_rewritten = "optimize" in operations or any(
            commit.actor_id != self.config.actor for commit in commits
        )
        if is_rewritten and self._has_large_links(changed):
            keys.add(Names(self.config.name).topology)
        return keys

    def _has_large_links(self, changed: Mapping[str, PublishedTable]) -> bool:
        """Whether links that are kept as a file belong to another version of a table now."""
        return any(
            table.rows >= DERIVED_MIN_ROWS.value
            for key, table in changed.items()
            if key.startswith("edge:")
        )

    def _requested(
        self, branch: str, head: str, mark: BranchMark, keys: set[dg.AssetKey]
    ) -> BranchTick:
        target = _target(branch, head)
        attempt = count_runs(self.instance, DERIVED_TAG, target)
        waiting = BranchMark(mark.handled, head)
        if attempt and (seconds := self._seconds_left(target, attempt)) > 0:
            reason = (
                f"derived assets of `{branch}` failed {attempt} times: look at their runs; "
                f"the next run is in {seconds:.0f} s"
            )
            return BranchTick(waiting, reason=reason)
        names = Names(self.config.name)
        indexes = {names.index(type.name) for type in indexed_types(self.catalog)}
        request = dg.RunRequest(
            run_key=f"{target}#{attempt}",
            partition_key=branch,
            tags={DERIVED_TAG: target},
            asset_selection=sorted(keys),
            asset_check_keys=[dg.AssetCheckKey(key, COVERED) for key in sorted(keys & indexes)],
        )
        return BranchTick(waiting, request)

    def _seconds_left(self, target: str, attempt: int) -> float:
        last = last_run(self.instance, DERIVED_TAG, target)
        if last is None or last.end_time is None:
            return 0.0
        wait: float = _FIRST_WAIT * 4 ** min(attempt - 1, _LONGER_WAITS)
        return last.end_time + wait - time.time()


def _target(branch: str, commit_id: str) -> str:
    return f"{branch}@{commit_id}"


def _is_derived_work(commit: Commit, actor: str) -> bool:
    """Whether a commit was made by derived work; vectors by others are a change of rows."""
    if commit.operation == _EMBED:
        return commit.actor_id == actor
    return commit.operation in _REWRITES


def derived_keys(graph: str, catalog: Catalog, changed: Iterable[str]) -> set[dg.AssetKey]:
    """The derived assets of tables: embeddings, indexes, and links if these are touched.

    Args:
        changed: table keys.
    """
    names = Names(graph)
    tables = set(changed)
    keys = {
        names.embedding(type_name, name)
        for type_name, name in embedded_properties(catalog)
        if node_table_key(type_name) in tables
    }
    keys |= {names.index(type.name) for type in indexed_types(catalog) if type.table_key in tables}
    linked = {
        key
        for edge in catalog.edges.values()
        for key in (
            edge_table_key(edge.name),
            node_table_key(edge.source),
            node_table_key(edge.target),
        )
    }
    return keys | ({names.topology} if tables & linked else set())
