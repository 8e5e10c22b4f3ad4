"""Mutations: a compiled query and its parameters come in, one commit goes out, or nothing.

Statements run in order over what is pending in memory and read through it; then the rows are
checked together, vectors are made, and each touched table gets one version. A failure at any point
leaves no trace.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.clock import now_us
from omnigraph_core.errors import CompileError, ConfigError, InvariantBroken
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.ir.nodes import Insert, MutationIR
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.plan.values import Values
from omnigraph_core.query.params import coerce_params
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.catalog import EdgeType, NodeType
from omnigraph_core.storage.lookup import ADDRESS, find_rows
from omnigraph_core.storage.staged import stage_delete_addresses, stage_replace
from omnigraph_core.violations import Violations
from omnigraph_core.write.batches import FRESH, LINE, SOURCE, STATEMENTS, Batch
from omnigraph_core.write.commit import Prepared, commit_write
from omnigraph_core.write.committed import Committed
from omnigraph_core.write.constraints import check_rows
from omnigraph_core.write.embed import EmbedMode, VectorFiller
from omnigraph_core.write.integrity import TableDelta, check_delta, key_columns
from omnigraph_core.write.pending import ASKS, pending_schema
from omnigraph_core.write.refuse import refuse
from omnigraph_core.write.staging import stage_rows
from omnigraph_core.write.statements import run_statements
from omnigraph_core.write.view import CommittedView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.ir.compile import CompiledQuery
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.commit import WriteOptions
    from omnigraph_core.write.pending import MutationStaging, PendingRows

T = TypeVar("T")

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NO_IDS: Final = pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation did; without a commit there was nothing to change."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    commit: GraphCommit | None
    actor_id: str | None = None
    is_repeat: bool = False

    @property
    def commit_id(self) -> str | None:
        return None if self.commit is None else self.commit.graph_commit_id

    def to_json(self) -> dict[str, object]:
        return {
            "branch": self.branch,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "actor_id": self.actor_id,
            "commit_id": self.commit_id,
            "manifest_version": None if self.commit is None else self.commit.manifest_version,
            "repeated": self.is_repeat,
        }


def run_mutation(
    context: GraphContext,
    compiled: Callable[[Catalog], CompiledQuery],
    params: Mapping[str, object] | None,
    options: WriteOptions,
    *,
    embedder: Embedder,
    embed: EmbedMode = EmbedMode.NOW,
    digest: str | None = None,
) -> MutationResult:
    """Run all statements of a mutation with one commit, or none of them.

    Args:
        compiled: compiles the query against the catalog of the state it will run on.
        digest: tells requests apart that come with the same idempotency key.

    Raises:
        CompileError: the query is wrong.
        ConfigError: the query is a read.
        ParameterError: parameters are missing, undeclared or of the wrong type; all of them.
        DataError: rows break a rule; carries every violation.
        ConflictError: others changed the branch meanwhile.
        EmbeddingError: a vector could not be made.
    """
    mutation = _Mutation(context, compiled, params, embedder, embed)
    landed = commit_write(
        context,
        options,
        "mutate",
        mutation.prepare,
        digest=digest,
        is_rerunnable=_is_rerunnable(context, compiled, options),
    )
    summary: Mapping[str, Any] = landed.summary
    return MutationResult(
        options.branch,
        summary["query_name"],
        summary["affected_nodes"],
        summary["affected_edges"],
        landed.commit,
        options.actor if landed.commit is None else landed.commit.actor_id,
        landed.is_repeat,
    )


def _is_rerunnable(
    context: GraphContext, compiled: Callable[[Catalog], CompiledQuery], options: WriteOptions
) -> bool:
    """Whether the mutation only inserts."""
    try:
        known = _known_mutation(context, compiled, options.branch)
    except CompileError:
        if options.idempotency_key is None:
            raise
        return False  # it may have landed before the schema changed; otherwise it fails again
    return all(isinstance(op, Insert) for op in known.ops)


def _known_mutation(
    context: GraphContext, compiled: Callable[[Catalog], CompiledQuery], branch: str
) -> MutationIR:
    """The query as the newest known schema has it; if it has not, as the newest one does."""
    _, known = context.base(branch)
    try:
        return _mutation(compiled, accepted_catalog(known.snapshot.schema))
    except CompileError:
        _, newest = context.head(branch)
        return _mutation(compiled, accepted_catalog(newest.snapshot.schema))


def _mutation(compiled: Callable[[Catalog], CompiledQuery], catalog: Catalog) -> MutationIR:
    ir = compiled(catalog).ir
    if isinstance(ir, MutationIR):
        return ir
    raise ConfigError(f"`{ir.name}` is a read, it changes nothing", hint="run it with `read`")


class _Mutation:
    """One request: what stays the same in every attempt to land it, `now()` among that."""

    def __init__(
        self,
        context: GraphContext,
        compiled: Callable[[Catalog], CompiledQuery],
        params: Mapping[str, object] | None,
        embedder: Embedder,
        embed: EmbedMode,
    ) -> None:
        self._context = context
        self._compiled = compiled
        self._params = params
        self._embedder = embedder
        self._embed = embed
        self._now = _EPOCH + dt.timedelta(milliseconds=now_us() // 1000)

    def prepare(self, state: CatalogState) -> Prepared:
        """Run the statements on a state, check what they did, and stage it."""
        snapshot = state.snapshot

        def open_table(table_key: str) -> Table:
            entry = snapshot.table(table_key)
            return self._context.table(entry.location, entry.physical_version)

        catalog = accepted_catalog(snapshot.schema)
        ir = _mutation(self._compiled, catalog)
        values = Values(self._now, coerce_params(ir.params, self._params))
        violations = Violations()
        base, view = Committed(open_table, values), CommittedView(open_table)
        done = run_statements(ir, catalog, values, base, violations)
        self._check(done.staging, catalog, view, violations)
        changes = self._stage(done.staging, open_table)
        touched = [change.table_key for change in changes]
        return Prepared(
            changes,
            requirements_of(snapshot, touched=touched, read=base.read | view.read),
            {
                "query_name": ir.name,
                "affected_nodes": done.affected_nodes,
                "affected_edges": done.affected_edges,
            },
        )

    def _check(
        self,
        staging: MutationStaging,
        catalog: Catalog,
        view: CommittedView,
        violations: Violations,
    ) -> None:
        """Refuse what breaks a rule.

        A value that did not fit has left its row out; edges may miss it, so there is no more to say
        about rows together.
        """
        is_complete = not violations.total
        for pending in staging.pending:
            batch = Batch(pending.type, pending.rows)
            check_rows(batch, STATEMENTS, violations)
        if is_complete:
            deltas = {**_written(staging), **_deleted(staging)}
            check_delta(deltas, catalog, view, STATEMENTS, violations)
        refuse(violations)

    def _stage(
        self, staging: MutationStaging, open_table: Callable[[str], Table]
    ) -> tuple[UpdateTable, ...]:
        changes = []
        for pending in staging.pending:
            if pending.rows.num_rows:
                key = pending.type.table_key
                changes.append(UpdateTable.of(key, *self._upserted(pending, open_table(key))))
        for type, rows in staging.deletions:
            table = stage_delete_addresses(open_table(type.table_key), rows.column(ADDRESS))
            if table is not None:
                changes.append(UpdateTable.of(type.table_key, table, TableOperation.DELETE))
        return tuple(changes)

    def _upserted(self, pending: PendingRows, table: Table) -> tuple[Table, TableOperation]:
        rows = pending.rows
        if isinstance(pending.type, NodeType) and pending.type.embeddings:
            rows = self._with_vectors(rows, pending.type, table)
        data = rows.select(table_schema(pending.type).names)
        unknown = pc.and_(pc.invert(rows.column(FRESH)), pc.is_null(rows.column(ADDRESS)))
        sought = rows.column("id").filter(unknown).combine_chunks()
        known = pc.drop_null(rows.column(ADDRESS))
        if not len(known):
            return _made(stage_rows(table, data, sought))
        others = find_rows(table, "id", sought, (), has_addresses=True).column(ADDRESS)
        replaced = pa.chunked_array([*known.chunks, *others.chunks], pa.uint64())
        return _made(stage_replace(table, data, replaced)), TableOperation.UPSERT

    def _with_vectors(self, rows: pa.Table, node: NodeType, table: Table) -> pa.Table:
        """Vectors for what is new; what was pending before waits for a backfill."""
        filler = VectorFiller(self._embedder, self._embed, open_table=lambda _: table)
        asking = rows.filter(rows.column(ASKS))
        filled = filler.fill(filler.take_over(asking, node), node)
        return pa.concat_tables([filled, rows.filter(pc.invert(rows.column(ASKS)))])


def _made(staged: T | None) -> T:
    if staged is None:
        raise InvariantBroken("staging rows makes a version")
    return staged


def _written(staging: MutationStaging) -> dict[str, TableDelta]:
    """The rows that rules about several rows have to look at."""
    return {
        pending.type.table_key: TableDelta(pending.type, _key_rows(pending), _NO_IDS)
        for pending in staging.pending
        if pending.needs_set_rules
    }


def _key_rows(pending: PendingRows) -> pa.Table:
    rows = pending.rows.select([*key_columns(pending.type), SOURCE, LINE, FRESH])
    has_id = pc.is_valid(rows.column("id"))  # without one a key is missing, which is reported
    return rows.filter(has_id)


def _deleted(staging: MutationStaging) -> dict[str, TableDelta]:
    """What goes, if that can leave a source with too few edges; nothing else can break."""
    deletions = staging.deletions
    if not any(isinstance(type, EdgeType) and type.cardinality.minimum for type, _ in deletions):
        return {}
    return {
        type.table_key: TableDelta(
            type,
            pending_schema(type).empty_table().select([*key_columns(type), SOURCE, LINE, FRESH]),
            rows.column("id").combine_chunks(),
        )
        for type, rows in deletions
    }
