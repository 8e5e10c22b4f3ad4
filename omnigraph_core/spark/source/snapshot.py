"""A whole snapshot as views: one commit, one temporary view for each type."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from omnigraph_core.engine.type_names import find_type
from omnigraph_core.errors import ConfigError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.spark.source.options import read_options
from omnigraph_core.spark.source.resolve import snapshot_of
from omnigraph_core.spark.source.source import FORMAT, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession


def read_snapshot(
    session: SparkSession,
    graph: str,
    *,
    branch: str | None = None,
    commit: str | None = None,
    tag: str | None = None,
    version: int | None = None,
    types: Sequence[str] = (),
    prefix: str = "",
    actor: str | None = None,
    policy: str | None = None,
) -> str:
    """Register a view for every type, `node_Person` and `edge_Knows`, all at one snapshot.

    Args:
        graph: its address.
        version: of the branch, or of main.
        types: the only ones to register: `Person`, `node:Person`, `edge:Knows`.
        prefix: what the names of all views begin with.

    Returns:
        The id of the commit that the views show.

    Raises:
        NotFoundError: no such graph, branch, commit, tag or version.
        ConfigError: no such type, or two views would have one name.
        PolicyDenied: the actor may not read there.
    """
    given = {
        "graph": graph,
        "branch": branch,
        "commit": commit,
        "tag": tag,
        "version": None if version is None else str(version),
        "actor": actor,
        "policy": policy,
    }
    options = read_options({"type": "*", **{k: v for k, v in given.items() if v is not None}})
    with options.graph.open() as opened:
        snapshot = snapshot_of(opened, options)
    catalog = accepted_catalog(snapshot.schema)
    keys = [find_type(catalog, name).table_key for name in types] or list(snapshot.tables)
    views = {key: prefix + key.replace(":", "_") for key in dict.fromkeys(keys)}
    _refuse_twins(list(views.values()))
    register(session)
    commit_id = snapshot.commit.graph_commit_id
    reader = session.read.format(FORMAT).options(graph=options.graph.address, commit=commit_id)
    for name in ("actor", "policy"):
        if (value := given[name]) is not None:
            reader = reader.option(name, value)
    for key, view in views.items():
        reader.option("type", key).load().createOrReplaceTempView(f"`{view}`")
    return commit_id


def _refuse_twins(views: Sequence[str]) -> None:
    """Spark takes no notice of case in names."""
    alike = defaultdict(list)
    for view in views:
        alike[view.lower()].append(view)
    twins = [f"`{'`, `'.join(names)}`" for names in alike.values() if len(names) > 1]
    if twins:
        raise ConfigError(
            f"Spark has one name for {'; '.join(twins)}", hint="choose `types`, one at a time"
        )
