"""The load: one asset made of a graph of ops, so that what is materialised is what is published.

plan (files, and the run they are staged in) → stage (rows, checked as a whole) → audit (a blocking
check for each type) → seal (what is staged may be published) → commit (one publish, if the guard
lets it). The engine checks the rows of all types together, since edges need their ends: so they are
staged in one step, and told apart by the checks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import dagster as dg
from pydantic import Field

from omnigraph_assets import guard
from omnigraph_assets.accepted import AcceptedState
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.drops import open_drops
from omnigraph_assets.loads import (
    Published,
    begin_load,
    publish_load,
    reject_load,
    ruling_of,
    stage_load,
)
from omnigraph_assets.names import Names, output_of
from omnigraph_assets.pending import PlannedLoad, planned_load, put_away_bad, waiting_for
from omnigraph_assets.specs import TableSpec, by_output, manifest_spec, table_specs
from omnigraph_assets.told import (
    RUN_TAG,
    RowsTold,
    failures,
    manifest_metadata,
    spark_metadata,
    table_metadata,
    violation_metadata,
)
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import MergeConflicts

CHECK: Final = "staged_rows"
_RETRY: Final = dg.RetryPolicy(max_retries=2, delay=1)
_RECORDS: Final = "records"
"""Stands for the table of what belongs to none."""


class PlanConfig(dg.Config):
    """Which files to load; without any, all that wait for the branch."""

    files: list[str] = Field(default_factory=list)


def build_load(config: GraphConfig, state: AcceptedState) -> dg.AssetsDefinition:
    """The load of a graph, partitioned by branch; either all of it runs or none."""
    names = Names(config.name)
    tables = table_specs(config, state)
    specs = by_output(tables, manifest_spec(config, tables))
    checks = _check_specs(names, tables)
    check_outputs = [spec.get_python_identifier() for spec in checks.values()]
    plan, stage = _plan_op(config, names, state), _stage_op(config, names)
    audit = _audit_op(config, names, tables, checks)
    seal, commit = _seal_op(config, names), _commit_op(config, names, specs)

    @dg.graph(
        name=names.named("load"),
        out={name: dg.GraphOut() for name in (*specs, *check_outputs)},
    )
    def load(drops: Any) -> Any:
        audited = audit(stage(plan(drops)))
        done = commit(seal(audited.run_id))
        told = {name: getattr(done, name) for name in specs}
        return told | {name: getattr(audited, name) for name in check_outputs}

    return dg.AssetsDefinition.from_graph(
        load,
        keys_by_input_name={"drops": names.drops},
        keys_by_output_name={name: spec.key for name, spec in specs.items()},
        internal_asset_deps={
            name: {dep.asset_key for dep in spec.deps} for name, spec in specs.items()
        },
        partitions_def=names.branches,
        check_specs=list(checks.values()),
    ).map_asset_specs(lambda spec: _dressed(spec, specs))


def _dressed(spec: dg.AssetSpec, specs: Mapping[str, dg.AssetSpec]) -> dg.AssetSpec:
    wanted = next(one for one in specs.values() if one.key == spec.key)
    return spec.replace_attributes(
        description=wanted.description,
        metadata={**spec.metadata, **wanted.metadata},
        group_name=wanted.group_name,
        owners=wanted.owners,
        kinds=wanted.kinds,
        freshness_policy=wanted.freshness_policy,
    )


def _check_specs(names: Names, tables: tuple[TableSpec, ...]) -> dict[str, dg.AssetCheckSpec]:
    """By table key: one for each type, and one for records that no type can be told of."""
    told = "Of rows that are staged: if it fails nothing is published, and what is stays as it is."
    checks = {
        table.table_key: dg.AssetCheckSpec(
            CHECK,
            asset=table.spec.key,
            description=f"{told} Rules of the type {table.type_name}.",
            blocking=True,
        )
        for table in tables
    }
    checks[_RECORDS] = dg.AssetCheckSpec(
        "staged_records",
        asset=names.manifest,
        description=f"{told} Records that are malformed, or of no known type.",
        blocking=True,
    )
    return checks


def _plan_op(target: GraphConfig, names: Names, state: AcceptedState) -> dg.OpDefinition:
    @dg.op(
        name=names.named("plan"),
        ins={"drops": dg.In(dg.Nothing)},
        out=dg.Out(dict, is_required=False),
        retry_policy=_RETRY,
    )
    def plan(context: dg.OpExecutionContext, config: PlanConfig) -> Iterator[dg.Output[Any]]:
        branch = context.partition_key
        with failures(), target.open() as graph:
            refuse_stale(graph, branch, state)
            waiting = waiting_for(graph, target, branch, config.files)
            if not waiting:
                context.log.warning("No file waits for the branch %s: nothing is loaded", branch)
                return
            digests = [digest for _, digest in waiting]
            run = begin_load(graph, target, branch, digests, state.schema_hash)
        context.instance.add_run_tags(context.run_id, {RUN_TAG: run.run_id})
        context.log.info("Load %s of %s files into %s", run.run_id, len(waiting), branch)
        yield dg.Output(PlannedLoad(run.run_id, tuple(file for file, _ in waiting)).to_json())

    return plan


def refuse_stale(graph: Omnigraph, branch: str, state: AcceptedState) -> None:
    """
    Raises:
        dg.Failure: the definitions were made for another schema than that of the branch.
    """
    found = graph.schema_show(branch).hash
    if found != state.schema_hash:
        raise dg.Failure(
            f"these definitions were made for the schema {state.schema_hash}, "
            f"`{branch}` is at {found}: reload the definitions, and the files load then",
            allow_retries=False,
        )


def _stage_op(config: GraphConfig, names: Names) -> dg.OpDefinition:
    @dg.op(name=names.named("stage"), out=dg.Out(dict), retry_policy=_RETRY, pool="spark")
    def stage(context: dg.OpExecutionContext, planned: dict[str, Any]) -> dg.Output[Any]:
        load = planned_load(planned)
        with failures(), config.open() as graph:
            run = graph.get_run(load.run_id)
            files = [file.address for file in load.files]
            staged = stage_load(graph, config, run, files, RowsTold(context.log.info))
            _refuse_changed(graph, config, load)
        if staged.problem is not None:
            context.log.error("The rows were refused: %s", staged.problem)
        violations = [{**item.to_json(), "place": item.place()} for item in staged.violations]
        told: dict[str, Any] = {
            "rows": dg.MetadataValue.json(staged.rows),
            "violations": len(violations),
            **spark_metadata(staged.spark),
        }
        value = {**planned, "violations": violations, "problem": staged.problem}
        return dg.Output({**value, "rows": staged.rows}, metadata=told)

    return stage


def _refuse_changed(graph: Omnigraph, config: GraphConfig, load: PlannedLoad) -> None:
    """A file that is written while it is loaded may not be what its digest says."""
    assert config.drops is not None
    store = open_drops(config.drops)
    changed = [file.address for file in load.files if store.look(file) not in (file, None)]
    if changed:
        reject_load(graph, load.run_id)
        raise dg.Failure(
            f"written while they were loaded: {', '.join(changed)}; write to a name that ends in "
            "`.part` and rename it",
            allow_retries=False,
        )


def _audit_op(
    config: GraphConfig,
    names: Names,
    tables: tuple[TableSpec, ...],
    checks: Mapping[str, dg.AssetCheckSpec],
) -> dg.OpDefinition:
    known = {
        name: table.table_key for table in tables for name in (table.table_key, table.type_name)
    }
    outputs = {key: spec.get_python_identifier() for key, spec in checks.items()}

    @dg.op(
        name=names.named("audit"),
        out={"run_id": dg.Out(str), **{name: _optional() for name in outputs.values()}},
    )
    def audit(context: dg.OpExecutionContext, staged: dict[str, Any]) -> Iterator[Any]:
        load = planned_load(staged)
        found = defaultdict(list)
        for violation in staged["violations"]:
            found[known.get(violation.get("type"), _RECORDS)].append(violation)
        if staged["problem"] is not None and not found:
            found[_RECORDS].append({"rule": "record", "message": staged["problem"]})
        for address in put_away_bad(config, load.files, staged["violations"]):
            context.log.warning("Put into quarantine: %s", address)
        yield dg.Output(load.run_id, "run_id")
        # Of types the load has nothing of there is nothing to tell.
        for key in [key for key in checks if key in (_RECORDS, *staged["rows"], *found)]:
            yield _checked(checks[key], found[key])

    return audit


def _optional() -> dg.Out:
    return dg.Out(Any, is_required=False)


def _checked(spec: dg.AssetCheckSpec, violations: list[dict[str, Any]]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not violations,
        asset_key=spec.asset_key,
        check_name=spec.name,
        metadata=violation_metadata(violations),
    )


def _seal_op(config: GraphConfig, names: Names) -> dg.OpDefinition:
    @dg.op(name=names.named("seal"), out=dg.Out(str), retry_policy=_RETRY)
    def seal(context: dg.OpExecutionContext, run_id: str) -> str:
        with failures(), config.open() as graph:
            ruling = ruling_of(graph, run_id)
        context.log.info("Load %s: %s (%s)", run_id, ruling.verdict, ruling.reason)
        return run_id

    return seal


def _commit_op(
    config: GraphConfig, names: Names, specs: Mapping[str, dg.AssetSpec]
) -> dg.OpDefinition:
    @dg.op(
        name=names.named("commit"),
        out={name: dg.Out(dg.Nothing, is_required=False) for name in specs},
        retry_policy=_RETRY,
    )
    def commit(context: dg.OpExecutionContext, run_id: str) -> Iterator[dg.Output[None]]:
        with failures(), config.open() as graph:
            published = publish_guarded(graph, run_id, context.log.warning)
            if published is not None:
                for name, metadata in told_tables(graph, config, published):
                    if name in specs:
                        yield dg.Output(None, name, metadata=metadata)

    return commit


def publish_guarded(graph: Omnigraph, run_id: str, warn: Callable[[str], None]) -> Published | None:
    """Publish a load if the guard lets it; None if it has to wait.

    Raises:
        dg.Failure: it can never be published; it is given up, and its files may be planned again.
    """
    ruling = ruling_of(graph, run_id)
    if ruling.verdict is guard.Verdict.WAIT:
        warn(f"The load {run_id} stays staged and is published later: {ruling.reason}")
        return None
    if ruling.verdict is guard.Verdict.REJECT:
        reject_load(graph, run_id)
        raise dg.Failure(ruling.reason, allow_retries=False)
    try:
        return publish_load(graph, run_id)
    except MergeConflicts:
        reject_load(graph, run_id)  # planned again it is based on what others wrote
        raise


def told_tables(
    graph: Omnigraph, config: GraphConfig, published: Published
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a publish changed by output, in the order in which Dagster wants to hear it."""
    for table, metadata in table_metadata(graph, config, published):
        yield output_of(table.table_key), metadata
    yield "manifest", manifest_metadata(config, published)
