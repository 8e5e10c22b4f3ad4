"""A Dagster project that feeds a graph from a Parquet file.

sailings_file → sailings (polars) → ports, ships, routes, serves → graph_publish → busiest_ports

The four assets in the middle return data frames, each of one type of the graph. `graph_publish`
makes all of them visible with one commit.
"""

import os
from pathlib import Path

import dagster as dg
import pandas as pd
import polars as pl

from omnigraph_assets.assets.publish import publish_graph_asset
from omnigraph_assets.resources.io_manager import GraphIOManager

FOLDER = Path(__file__).parent / "build"


class SailingsFile(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The export of the shipping office."""

    path: str


@dg.asset(kinds={"parquet"})
def sailings_file(file: SailingsFile) -> dg.MaterializeResult[pl.DataFrame]:
    """The export as it is."""
    rows = pl.read_parquet(file.path)
    return dg.MaterializeResult(value=rows, metadata={"dagster/row_count": rows.height})


@dg.asset(kinds={"polars"})
def sailings(sailings_file: pl.DataFrame) -> pl.DataFrame:
    """Every sailing that took place, once, with ports and ships under one spelling."""
    names = [pl.col(name).str.strip_chars().str.to_titlecase() for name in ("ship", "start", "end")]
    return (
        sailings_file.with_columns(names)
        .unique("number", keep="first", maintain_order=True)
        .filter(~pl.col("cancelled"))
    )


@dg.asset(io_manager_key="graph_io", metadata={"omnigraph/type": "Port"})
def ports(sailings: pl.DataFrame) -> pl.DataFrame:
    """Every port that a ship left or reached."""
    left = sailings.select(name="start", country="start_country", sailings=pl.lit(1))
    reached = sailings.select(name="end", country="end_country", sailings=pl.lit(0))
    return pl.concat([left, reached]).group_by("name", "country").sum().sort("name")


@dg.asset(io_manager_key="graph_io", metadata={"omnigraph/type": "Ship"})
def ships(sailings: pl.DataFrame) -> pd.DataFrame:
    """Every ship. An asset may return pandas, polars, Arrow or Spark frames."""
    frame = sailings.select(name="ship", capacity="capacity").to_pandas()
    return frame.drop_duplicates("name").sort_values("name")


@dg.asset(io_manager_key="graph_io", metadata={"omnigraph/type": "edge:Route"})
def routes(sailings: pl.DataFrame) -> pl.DataFrame:
    """Pairs of ports; the id of an edge is made of its ends, so that a repeat replaces it."""
    pairs = sailings.group_by(src="start", dst="end").agg(
        sailings=pl.len(), tonnes=pl.sum("tonnes")
    )
    return with_edge_ids(pairs)


@dg.asset(io_manager_key="graph_io", metadata={"omnigraph/type": "edge:Serves"})
def serves(sailings: pl.DataFrame) -> pl.DataFrame:
    """Which ship left from which port."""
    return with_edge_ids(sailings.group_by(src="ship", dst="start").agg(sailings=pl.len()))


def with_edge_ids(edges: pl.DataFrame) -> pl.DataFrame:
    """Edges by id, which is made of both ends."""
    return edges.with_columns(id=pl.format("{}-{}", "src", "dst")).sort("id")


graph_publish = publish_graph_asset([ports, ships, routes, serves])


@dg.asset(deps=[graph_publish])
def busiest_ports(ports: pd.DataFrame) -> dg.MaterializeResult[list[str]]:
    """The published ports, by the sailings that left from them; reads what was just published."""
    names = ports.sort_values("sailings", ascending=False)["name"].tolist()
    return dg.MaterializeResult(value=names, metadata={"ports": names})


def build_definitions(folder: Path) -> dg.Definitions:
    """The project, with its file and its graph in a folder."""
    return dg.Definitions(
        assets=[
            sailings_file,
            sailings,
            ports,
            ships,
            routes,
            serves,
            graph_publish,
            busiest_ports,
        ],
        jobs=[dg.define_asset_job("sailings_to_graph")],
        resources={
            "file": SailingsFile(path=str(folder / "sailings.parquet")),
            "graph_io": GraphIOManager(uri=str(folder / "graph"), actor="shipping-office"),
        },
    )


defs = build_definitions(Path(os.environ.get("PIPELINE_FOLDER", FOLDER)))
