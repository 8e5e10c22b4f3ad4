"""Work on branches from the UI: create, merge, delete, compare; apply a schema, ask a query."""

import json
from typing import Any, Final

import dagster as dg

from omnigraph_assets.config import GraphConfig
from omnigraph_assets.metadata import conflict_metadata, failures, spark_metadata
from omnigraph_assets.names import Names
from omnigraph_assets.resources.graph import open_graph

MERGEABLE: Final = "mergeable"
_LISTED: Final = 50
"""Changes and rows that metadata spells out."""


class CreateConfig(dg.Config):
    """A branch to make, and what it is forked from."""

    name: str
    source: str = "main"


class MergeConfig(dg.Config):
    """A merge; unless `confirm` is set it only tells what it would do."""

    source: str
    into: str = "main"
    strategy: str = "row"
    resolve: str | None = None
    delete_branch: bool = False
    confirm: bool = False


class DeleteConfig(dg.Config):
    """A branch to delete; `confirm` repeats its name."""

    name: str
    confirm: str = ""


class DiffConfig(dg.Config):
    """Two branches to compare."""

    source: str
    target: str = "main"


class SchemaConfig(dg.Config):
    """A schema to bring into force; unless `confirm` is set it is only planned and checked."""

    schema_text: str
    branch: str = "main"
    allow_data_loss: bool = False
    confirm: bool = False


class QueryConfig(dg.Config):
    """A read, as `.gq` text."""

    text: str
    name: str | None = None
    params_json: str = "{}"
    branch: str = "main"


def build_branch_jobs(target: GraphConfig) -> list[dg.JobDefinition]:
    """The jobs of a graph that people launch by hand."""
    names = Names(target.name)

    @dg.op(name=names.named("create_branch"), required_resource_keys=names.resources)
    def create(context: dg.OpExecutionContext, config: CreateConfig) -> None:
        with failures(), open_graph(context, target, needs_spark=False) as graph:
            made = graph.branch_create(config.name, source=config.source)
        context.instance.add_dynamic_partitions(names.branches.name or "", [made.branch])
        context.add_output_metadata({"branch": made.branch, "source": config.source})

    @dg.op(name=names.named("merge_branch"), required_resource_keys=names.resources)
    def merge(context: dg.OpExecutionContext, config: MergeConfig) -> None:
        with failures(), open_graph(context, target) as graph:
            options: Any = {
                "strategy": config.strategy,
                "resolve": config.resolve,
                "engine": target.engine,
            }
            would = graph.branch_merge(config.source, into=config.into, dry_run=True, **options)
            _report_mergeable(context, names, would)
            if not config.confirm:
                context.log.info("Nothing was merged: set `confirm` to merge")
                context.add_output_metadata(_told(would))
                return
            done = graph.branch_merge(
                config.source, into=config.into, delete_branch=config.delete_branch, **options
            )
        context.add_output_metadata(_told(done))

    @dg.op(name=names.named("delete_branch"), required_resource_keys=names.resources)
    def delete(context: dg.OpExecutionContext, config: DeleteConfig) -> None:
        if config.confirm != config.name:
            raise dg.Failure(
                f"to delete the branch `{config.name}` give its name as `confirm` too",
                allow_retries=False,
            )
        with failures(), open_graph(context, target, needs_spark=False) as graph:
            graph.branch_delete(config.name)
        context.instance.delete_dynamic_partition(names.branches.name or "", config.name)

    @dg.op(name=names.named("diff_branches"), required_resource_keys=names.resources)
    def diff(context: dg.OpExecutionContext, config: DiffConfig) -> None:
        with failures(), open_graph(context, target) as graph:
            found = graph.diff_between(
                config.target, config.source, limit=_LISTED, engine=target.engine
            )
        context.add_output_metadata(
            {
                "inserts": found.stats.inserts,
                "updates": found.stats.updates,
                "deletes": found.stats.deletes,
                "changes": _json(found.to_json()),
                **spark_metadata(found.spark),
            }
        )

    @dg.op(name=names.named("apply_schema"), required_resource_keys=names.resources)
    def apply(context: dg.OpExecutionContext, config: SchemaConfig) -> None:
        with failures(), open_graph(context, target, needs_spark=False) as graph:
            done = graph.schema_apply(
                config.schema_text,
                branch=config.branch,
                allow_data_loss=config.allow_data_loss,
                dry_run=not config.confirm,
            )
        context.add_output_metadata({"applied": done.applied, "plan": _json(done.to_json())})

    @dg.op(name=names.named("run_query"), required_resource_keys=names.resources)
    def query(context: dg.OpExecutionContext, config: QueryConfig) -> None:
        with failures(), open_graph(context, target, needs_spark=False) as graph:
            params = json.loads(config.params_json)
            found = graph.query(config.branch, config.text, config.name, params)
        rows = json.loads(found.to_json())
        context.add_output_metadata({"rows": len(rows), "result": _json(rows[:_LISTED])})

    jobs = {
        create: "Fork a branch.",
        merge: "Merge a branch into another; conflicts show as a check of the manifest.",
        delete: "Delete a branch.",
        diff: "Tell what a branch has that another has not.",
        apply: "Bring a schema into force, or tell what that would do.",
        query: "Ask a query and attach its result.",
    }
    return [_job(op, description) for op, description in jobs.items()]


def _job(op: dg.OpDefinition, description: str) -> dg.JobDefinition:
    @dg.job(name=f"{op.name}_job", description=description)
    def job() -> None:
        op()

    return job


def _report_mergeable(context: dg.OpExecutionContext, names: Names, merge: Any) -> None:
    """Report the conflicts of a merge as the check `mergeable` of its source branch.

    As an event of the run: of reports without a run Dagster keeps one for each partition, and
    refuses the second.
    """
    conflicts = [conflict.to_json() for conflict in merge.conflicts]
    evaluation: Any = dg.AssetCheckEvaluation(  # taken by `log_event`, which does not say so
        check_name=MERGEABLE,
        asset_key=names.manifest,
        partition=merge.source,
        passed=not merge.conflicts,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=conflict_metadata(conflicts, merge.source, merge.target),
    )
    context.log_event(evaluation)


def _told(merge: Any) -> dict[str, Any]:
    return {
        "outcome": str(merge.outcome),
        "conflicts": len(merge.conflicts),
        "merge": _json(merge.to_json()),
        **spark_metadata(merge.spark),
    }


def _json(value: Any) -> dg.JsonMetadataValue:
    return dg.MetadataValue.json(json.loads(json.dumps(value, default=str)))
