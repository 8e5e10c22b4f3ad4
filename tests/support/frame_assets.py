"""Assets of somebody's Dagster project that return frames for a graph of people.

A folder, by the variable `FRAMES_FOLDER`, holds the graph; a file `fail` in it makes the edges
fail. `FRAMES_GRAPH` is the graph of the job, which Dagster keeps for all tests of a process.
Annotations are read when the module is imported, so they are no text.
"""

import os
from pathlib import Path
from typing import Any, Final

import dagster as dg
import pandas as pd
import polars as pl
import pyarrow as pa

from omnigraph_assets.assets.publish import publish_graph_asset
from omnigraph_assets.resources.io_manager import GraphIOManager

FOLDER: Final = "FRAMES_FOLDER"
GRAPH: Final = "FRAMES_GRAPH"
SCHEMA: Final = """
node Person { name: String @key  age: I32?  born: DateTime?  @range(age, 0..150) }
node Town { name: String @key }
edge Knows: Person -> Person { note: String? }
"""
IO: Final[dict[str, Any]] = {"io_manager_key": "graph_io"}


@dg.asset(**IO)
def Person() -> pl.DataFrame:
    return pl.DataFrame({"name": ["ann", "bob"], "age": [31, None]})


@dg.asset(**IO, metadata={"omnigraph/type": "edge:Knows"})
def knows(Person: pa.Table) -> pa.Table:
    if (Path(os.environ[FOLDER]) / "fail").exists():
        raise RuntimeError("told to fail")
    first, second = Person["name"].to_pylist()
    return pa.table({"src": [first], "dst": [second]})  # without an id: a repeat would be another


@dg.asset(**IO)
def Town() -> pd.DataFrame:
    return pd.DataFrame({"name": ["Birk"]})


published = publish_graph_asset([Person, knows, Town], key="published")


def graph_io(**settings: Any) -> GraphIOManager:
    return GraphIOManager(uri=f"{os.environ[FOLDER]}/graph", **settings)


def frames_job() -> dg.JobDefinition:
    """The job of all of them, by name: a run that is repeated makes it anew."""
    defs = dg.Definitions(
        assets=[Person, knows, Town, published],
        jobs=[dg.define_asset_job("frames")],
        resources={"graph_io": GraphIOManager(uri=dg.EnvVar(GRAPH))},
        executor=dg.in_process_executor,
    )
    return defs.resolve_job_def("frames")


def asset_of(name: str, value: Any, **options: Any) -> dg.AssetsDefinition:
    """An asset that returns a value, for the graph."""

    @dg.asset(name=name, **{**IO, **options})
    def made() -> Any:
        return value

    return made


def reader_of(name: str, kind: Any, **options: Any) -> dg.AssetsDefinition:
    """An asset that reads another one as a kind of frame, and returns it as Arrow or as it is."""

    def read(frame: Any) -> Any:
        return frame

    read.__annotations__ = {"frame": kind, "return": Any}
    return dg.asset(name=f"read_{name}", ins={"frame": dg.AssetIn(name)}, **options)(read)
