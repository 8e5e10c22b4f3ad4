"""The load: one asset made of a graph of ops, so that what is materialised is what is published.

    plan        the files that wait, and the run they are loaded by
    read        every record, once, checked by itself: one job of Spark
    stage_node  a version of one node type that nobody sees, a step for each type that is present
    stage_edge  the same for an edge type, when all nodes are staged
    audit       all types together, a blocking check for each
    commit      one compare-and-swap, if the publish guard lets it

Steps hand the id of the run on and nothing else: what they make lies beside the graph. Those that
only have an order hand nothing on, because each value costs three events and two lines of the log.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from pydantic import Field

from omnigraph_assets.assets.tables import TableSpec, by_output, manifest_spec, table_specs
from omnigraph_assets.config import GraphConfig
from omnigraph_assets.loads import guard
from omnigraph_assets.loads.plan import (
    PlannedLoad,
    archive_finished,
    archive_loaded,
    landing_of,
    plan_files,
    planned_load,
    quarantine_invalid,
    read_anew,
)
from omnigraph_assets.loads.run_records import (
    Published,
    begin_load,
    decision_of,
    publish_load,
    reject_load,
)
from omnigraph_assets.metadata import (
    RUN_TAG,
    ProgressLogger,
    failures,
    manifest_metadata,
    spark_metadata,
    table_metadata,
    violation_metadata,
)
from omnigraph_assets.names import Names, output_of
from omnigraph_assets.resources.graph import open_graph
from omnigraph_assets.resources.landing import OnProblem
from omnigraph_assets.schema_state import AcceptedState
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConflictError, DataError, StorageError
from omnigraph_core.job_report import job_facts

CHECK: Final = "staged_rows"
_RETRY: Final = dg.RetryPolicy(max_retries=2, delay=1)
_RECORDS: Final = "records"
"""Stands for the table of what belongs to none."""


class PlanConfig(dg.Config):
    """Which files to load; without any, all that wait for the branch."""

    files: list[str] = Field(default_factory=list)


def build_load(config: GraphConfig, state: AcceptedState) -> dg.AssetsDefinition:
    """The load of a graph, partitioned by branch; any of its types may be selected."""
    names = Names(config.name)
    tables = table_specs(config, state)
    specs = by_output(tables, manifest_spec(config, tables))
    checks = check_specs(names, tables)
    check_outputs = [spec.get_python_identifier() for spec in checks.values()]
    plan, read = _plan_op(config, names, state, tables), _read_op(config, names)
    stage_node, stage_edge = (_stage_op(config, names, kind) for kind in ("node", "edge"))
    join_nodes = _join_op(names)
    audit = _audit_op(config, names, tables, checks)
    commit = _commit_op(config, names, state, specs, checks)

    @dg.graph(
        name=names.named("load"),
        out={name: dg.GraphOut() for name in (*specs, *check_outputs)},
    )
    def load(drops: Any) -> Any:
        rows = read(plan(drops))
        nodes = join_nodes(nodes=rows.node.map(stage_node).collect())
        edges = rows.edge.map(lambda edge: stage_edge(edge, nodes=nodes)).collect()
        audited = audit(rows.load, nodes=nodes, edges=edges)
        done = commit(rows.load, audited=audited.done)
        outputs = {name: getattr(done, name) for name in specs}
        return outputs | {name: getattr(audited, name) for name in check_outputs}

    return dg.AssetsDefinition.from_graph(
        load,
        keys_by_input_name={"drops": names.drops},
        keys_by_output_name={name: spec.key for name, spec in specs.items()},
        internal_asset_deps={
            name: {dep.asset_key for dep in spec.deps} for name, spec in specs.items()
        },
        partitions_def=names.branches,
        check_specs=list(checks.values()),
        can_subset=True,
    ).map_asset_specs(lambda spec: _with_spec_attributes(spec, specs))


def _with_spec_attributes(spec: dg.AssetSpec, specs: Mapping[str, dg.AssetSpec]) -> dg.AssetSpec:
    wanted = next(one for one in specs.values() if one.key == spec.key)
    return spec.replace_attributes(
        description=wanted.description,
        metadata={**spec.metadata, **wanted.metadata},
        group_name=wanted.group_name,
        owners=wanted.owners,
        kinds=wanted.kinds,
        freshness_policy=wanted.freshness_policy,
    )


def check_specs(names: Names, tables: tuple[TableSpec, ...]) -> dict[str, dg.AssetCheckSpec]:
    """By table key: one for each type, and one for records that name no type."""
    about = "Of rows that are staged: if it fails nothing is published, and what is stays as it is."
    checks = {
        table.table_key: dg.AssetCheckSpec(
            CHECK,
            asset=table.spec.key,
            description=f"{about} Rules of the type {table.type_name}.",
            blocking=True,
            partitions_def=names.branches,
        )
        for table in tables
    }
    checks[_RECORDS] = dg.AssetCheckSpec(
        "staged_records",
        asset=names.manifest,
        description=f"{about} Records that are malformed, or of no known type.",
        blocking=True,
        partitions_def=names.branches,
    )
    return checks


def _plan_op(
    target: GraphConfig, names: Names, state: AcceptedState, tables: tuple[TableSpec, ...]
) -> dg.OpDefinition:
    keys = {table.spec.key: table.table_key for table in tables}
    catalog = state.catalog

    @dg.op(
        name=names.named("plan"),
        ins={"drops": dg.In(dg.Nothing)},
        out=dg.Out(dict, is_required=False),
        retry_policy=_RETRY,
        required_resource_keys=names.resources,
    )
    def plan(context: dg.OpExecutionContext, config: PlanConfig) -> Iterator[dg.Output[Any]]:
        branch, chosen = context.partition_key, context.run.asset_selection
        selected = frozenset(keys[key] for key in chosen if key in keys) if chosen else None
        with failures(), open_graph(context, target) as graph:
            refuse_stale(graph, branch, state)
            if selected is not None and not selected:
                context.log.warning("No type is selected: nothing is loaded")
                return
            with job_facts(operation="load"):
                found = plan_files(
                    graph, target, catalog, branch, addresses=config.files, selected=selected
                )
            for problem in found.problems:
                context.log.warning("Left out: %s", problem)
            for address in archive_finished(target, found.finished, _warn_by(context.log.warning)):
                context.log.info("The branch has the content already: %s", address)
            if not found.files:
                context.log.warning("No file waits for the branch %s: nothing is loaded", branch)
                return
            files = {file.address: entry for file, entry in found.files.items()}
            run = begin_load(graph, target, branch, files, found.types, state.schema_hash)
        context.instance.add_run_tags(context.run_id, {RUN_TAG: run.run_id})
        context.log.info("Load %s of %s files into %s", run.run_id, len(files), branch)
        planned = PlannedLoad(run.run_id, tuple(found.files))
        types = "all" if found.types is None else ", ".join(sorted(found.types))
        about = {"files": len(files), "bytes": sum(file.size for file in planned.files)}
        yield dg.Output(planned.to_json(), metadata={**about, "types": types})

    return plan


def _warn_by(warn: Callable[[str], None]) -> OnProblem:
    """Files that cannot be moved now are moved by a later load, or by the drops sensor."""
    return lambda problem: warn(f"Stays where it is for now: {problem}")


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


def _read_op(config: GraphConfig, names: Names) -> dg.OpDefinition:
    @dg.op(
        name=names.named("read"),
        out={
            "node": dg.DynamicOut(dict),
            "edge": dg.DynamicOut(dict),
            "load": dg.Out(dict),
        },
        retry_policy=_RETRY,
        required_resource_keys=names.resources,
    )
    def read(context: dg.OpExecutionContext, planned: dict[str, Any]) -> Iterator[Any]:
        load, branch = planned_load(planned), context.partition_key
        with failures(), open_graph(context, config) as graph, _spark_jobs() as report:
            steps = graph.load_steps(load.run_id, branch=branch, engine=config.engine)
            rows = steps.read(ProgressLogger(context.log.info))
            sizes = steps.written_bytes()
            problems = steps.problem_count()
            _refuse_changed(graph, config, load)
        if problems:
            context.log.error("%s records are malformed or break a rule", problems)
        else:
            for table_key in sorted(rows):
                kind, _, type_name = table_key.partition(":")
                step = {
                    "run_id": load.run_id,
                    "table_key": table_key,
                    "rows": rows[table_key],
                    "bytes": sizes.get(table_key, 0),
                }
                yield dg.DynamicOutput(step, mapping_key=type_name, output_name=kind)
        yield dg.Output(
            {**planned, "rows": rows, "spark": report.result},
            "load",
            metadata={
                "rows": sum(rows.values()),
                "bytes": sum(sizes.values()),
                "rows_by_type": dg.MetadataValue.json(rows),
                "problems": problems,
                **spark_metadata(report.result),
            },
        )

    return read


def _spark_jobs() -> Any:
    """Collects the jobs of Spark that a step of a load runs."""
    return job_facts(operation="load")


def _refuse_changed(graph: Omnigraph, config: GraphConfig, load: PlannedLoad) -> None:
    """A file that is written while it is loaded may not be what its digest says."""
    store = landing_of(config)
    changed = [file.address for file in load.files if store.look(file) not in (file, None)]
    if changed:
        reject_load(graph, load.run_id)
        raise dg.Failure(
            f"written while they were loaded: {', '.join(changed)}; write to a name that ends in "
            "`.part` and rename it",
            allow_retries=False,
        )


def _refuse_outdated(graph: Omnigraph, config: GraphConfig, run_id: str) -> None:
    """
    Raises:
        dg.Failure: what was read is too old, and its files are not what was planned any more.
    """
    if not read_anew(graph, config, graph.get_run(run_id)):
        reject_load(graph, run_id)
        raise dg.Failure("its files have changed since they were read", allow_retries=False)


def _stage_op(config: GraphConfig, names: Names, kind: str) -> dg.OpDefinition:
    after = {} if kind == "node" else {"nodes": dg.In(dg.Nothing)}

    @dg.op(
        name=names.named(f"stage_{kind}"),
        ins={"step": dg.In(dict), **after},
        out=dg.Out(dg.Nothing),
        retry_policy=_RETRY,
        required_resource_keys=names.resources,
    )
    def stage(context: dg.OpExecutionContext, step: dict[str, Any]) -> dg.Output[None]:
        run_id, table_key = step["run_id"], step["table_key"]
        with failures(), open_graph(context, config) as graph, _spark_jobs() as report:
            _refuse_outdated(graph, config, run_id)
            steps = graph.load_steps(run_id, branch=context.partition_key, engine=config.engine)
            suspects = steps.inspect(table_key)
            staged = steps.stage(table_key)
        return dg.Output(
            None,
            metadata={
                "type": table_key,
                "rows": step["rows"],
                "bytes": step["bytes"],
                "rows_of_the_table": staged,
                "rows_to_check": suspects,
                **spark_metadata(report.result),
            },
        )

    return stage


def _join_op(names: Names) -> dg.OpDefinition:
    @dg.op(name=names.named("join_nodes"), ins={"nodes": dg.In(dg.Nothing)}, out=dg.Out(dg.Nothing))
    def join_nodes() -> None:
        """Edges wait for their ends."""

    return join_nodes


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
        ins={"load": dg.In(dict), "nodes": dg.In(dg.Nothing), "edges": dg.In(dg.Nothing)},
        out={"done": dg.Out(dg.Nothing), **{name: _optional() for name in outputs.values()}},
        retry_policy=_RETRY,
        required_resource_keys=names.resources,
    )
    def audit(context: dg.OpExecutionContext, load: dict[str, Any]) -> Iterator[Any]:
        planned, branch = planned_load(load), context.partition_key
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        with failures(), open_graph(context, config) as graph, _spark_jobs() as report:
            _refuse_outdated(graph, config, planned.run_id)
            steps = graph.load_steps(planned.run_id, branch=branch, engine=config.engine)
            try:
                steps.audit()
            except DataError as refused:
                context.log.error("The rows were refused: %s", refused)
                problems: list[dict[str, Any]] = [
                    {**one.to_json(), "place": one.place()} for one in refused.violations
                ]
                for violation in problems:
                    found[known.get(violation.get("type") or "", _RECORDS)].append(violation)
                if not found:
                    found[_RECORDS].append({"rule": "record", "message": str(refused)})
                graph.fail_run(planned.run_id)
                warn = _warn_by(context.log.warning)
                for address in quarantine_invalid(config, planned.files, problems, warn):
                    context.log.warning("Put into quarantine: %s", address)
        about = {"types": len(load["rows"]), **spark_metadata(report.result)}
        yield dg.Output(None, "done", metadata=about)
        # Checks that pass are reported with what they have let through, by `commit`.
        selected = context.selected_output_names
        for key in [key for key in checks if key in found]:
            if outputs[key] in selected:
                yield _failed_result(checks[key], found[key])
            else:
                yield _failed_evaluation(checks[key], found[key], branch)
        if any(outputs[key] not in selected for key in found):  # the others fail the step
            raise dg.Failure("nothing is published: see the checks", allow_retries=False)

    return audit


def _optional() -> dg.Out:
    return dg.Out(Any, is_required=False)


def _failed_evaluation(
    spec: dg.AssetCheckSpec, violations: list[dict[str, Any]], branch: str
) -> dg.AssetCheckEvaluation:
    """The result of a check that the run was not asked for."""
    return dg.AssetCheckEvaluation(
        check_name=spec.name,
        asset_key=spec.asset_key,
        passed=False,
        metadata=violation_metadata(violations),
        partition=branch,
    )


def _failed_result(
    spec: dg.AssetCheckSpec, violations: list[dict[str, Any]]
) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=False,
        asset_key=spec.asset_key,
        check_name=spec.name,
        metadata=violation_metadata(violations),
    )


def _commit_op(
    config: GraphConfig,
    names: Names,
    state: AcceptedState,
    specs: Mapping[str, dg.AssetSpec],
    checks: Mapping[str, dg.AssetCheckSpec],
) -> dg.OpDefinition:
    @dg.op(
        name=names.named("commit"),
        ins={"load": dg.In(dict), "audited": dg.In(dg.Nothing)},
        out={name: dg.Out(dg.Nothing, is_required=False) for name in specs},
        retry_policy=_RETRY,
        required_resource_keys=names.resources,
    )
    def commit(context: dg.OpExecutionContext, load: dict[str, Any]) -> Iterator[Any]:
        run_id = load["run_id"]
        with failures(), open_graph(context, config) as graph:
            published = publish_guarded(graph, config, run_id, context.log.warning)
            if published is None:
                return
            read = spark_metadata(load.get("spark"))
            for name, about in table_outputs(graph, config, published):
                metadata = {**about, **read}
                if name in context.selected_output_names:
                    yield dg.Output(None, name, metadata=metadata)
                elif name in specs:
                    context.log_event(_materialization(specs[name], context, metadata))
            archive_published(graph, config, state, run_id, context.log.warning)
        yield from passed_checks(context.instance, checks, published, load["rows"])

    return commit


def passed_checks(
    instance: dg.DagsterInstance,
    checks: Mapping[str, dg.AssetCheckSpec],
    published: Published,
    loaded: Iterable[str] = (),
) -> Iterator[dg.AssetCheckEvaluation]:
    """The checks that a publish has passed, each as one of its newest materialisation.

    Dagster counts a check that is older than the rows as missing.

    Args:
        loaded: table keys of types that were loaded, also if nothing of them has changed.
    """
    changed = [table.table_key for table in published.tables]
    for key in [key for key in checks if key in (*changed, *loaded, _RECORDS)]:
        spec = checks[key]
        yield dg.AssetCheckEvaluation(
            check_name=spec.name,
            asset_key=spec.asset_key,
            passed=True,
            metadata=violation_metadata([]),
            target_materialization_data=_newest(instance, spec.asset_key, published.branch),
            blocking=True,
            partition=published.branch,
        )


def _newest(
    instance: dg.DagsterInstance, key: dg.AssetKey, branch: str
) -> AssetCheckEvaluationTargetMaterializationData | None:
    wanted = dg.AssetRecordsFilter(key, asset_partitions=[branch])
    for made in instance.fetch_materializations(wanted, limit=1).records:
        return AssetCheckEvaluationTargetMaterializationData(
            storage_id=made.storage_id, run_id=made.run_id, timestamp=made.timestamp
        )
    return None


def _materialization(
    spec: dg.AssetSpec, context: dg.OpExecutionContext, metadata: Mapping[str, Any]
) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(spec.key, partition=context.partition_key, metadata=metadata)


def publish_guarded(
    graph: Omnigraph, config: GraphConfig, run_id: str, warn: Callable[[str], None]
) -> Published | None:
    """Publish a load if the guard lets it; None if it has to wait.

    Raises:
        dg.Failure: it can never be published; it is given up, and its files may be planned again.
    """
    decision = decision_of(graph, run_id)
    if decision.verdict is guard.Verdict.WAIT:
        warn(f"The load {run_id} stays staged and is published later: {decision.reason}")
        return None
    if decision.verdict is guard.Verdict.REJECT:
        reject_load(graph, run_id)
        raise dg.Failure(decision.reason, allow_retries=False)
    _refuse_outdated(graph, config, run_id)
    try:
        return publish_load(graph, config, run_id)
    except DataError:  # the branch has moved, and the rows do not fit it any more
        graph.fail_run(run_id)
        raise
    except ConflictError as conflict:
        if not conflict.retryable:
            reject_load(graph, run_id)  # planned again it is based on what others wrote
        raise


def archive_published(
    graph: Omnigraph,
    config: GraphConfig,
    state: AcceptedState,
    run_id: str,
    warn: Callable[[str], None],
) -> None:
    """Archive the files of a load; what cannot be moved now is moved by the next load."""
    try:
        archive_loaded(graph, config, state.catalog, graph.get_run(run_id), _warn_by(warn))
    except (OSError, StorageError) as problem:
        warn(f"Files of the load {run_id} stay where they are for now: {problem}")


def table_outputs(
    graph: Omnigraph, config: GraphConfig, published: Published, *, has_previews: bool = True
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a publish changed by output, in the order in which Dagster wants it."""
    if not published.tables:
        return
    for table, metadata in table_metadata(graph, config, published, has_previews=has_previews):
        yield output_of(table.table_key), metadata
    yield "manifest", manifest_metadata(config, published)
