"""What everything is called: keys of assets, outputs, partitions, jobs.

Every name begins with that of its graph, so that several graphs live in one code location. The
last part of a key is what the graph of assets shows, so it tells type and column.
"""

from dataclasses import dataclass
from typing import Final

import dagster as dg

MAIN: Final = "main"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one graph."""

    graph: str

    def key(self, *parts: str) -> dg.AssetKey:
        return dg.AssetKey([self.graph, *parts])

    def node(self, type_name: str) -> dg.AssetKey:
        return self.key("nodes", type_name)

    def edge(self, type_name: str) -> dg.AssetKey:
        return self.key("edges", type_name)

    def table(self, table_key: str) -> dg.AssetKey:
        """The asset of a table by the engine's key, `node:Person` or `edge:Knows`."""
        kind, _, type_name = table_key.partition(":")
        return self.node(type_name) if kind == "node" else self.edge(type_name)

    def embedding(self, type_name: str, property_name: str) -> dg.AssetKey:
        return self.key("embeddings", f"{type_name}.{property_name}")

    def index(self, type_name: str) -> dg.AssetKey:
        return self.key("indexes", type_name)

    @property
    def topology(self) -> dg.AssetKey:
        return self.key("topology")

    @property
    def manifest(self) -> dg.AssetKey:
        return self.key("manifest")

    @property
    def drops(self) -> dg.AssetKey:
        return self.key("drops")

    def named(self, what: str) -> str:
        """The name of an op, a job, a sensor or a schedule."""
        return f"{self.graph}_{what}"

    @property
    def graph_resource(self) -> str:
        """The key of the graph among the resources."""
        return self.named("graph")

    @property
    def spark_resource(self) -> str:
        """The key of Spark among the resources."""
        return self.named("spark")

    @property
    def resources(self) -> set[str]:
        """What an op that works on the graph requires."""
        return {self.graph_resource, self.spark_resource}

    @property
    def embedding_pool(self) -> str:
        """The pool of runs that ask the provider for vectors."""
        return self.named("embeddings")

    @property
    def maintenance_pool(self) -> str:
        """The pool of runs that index, compact and clean up."""
        return self.named("maintenance")

    def group(self, what: str) -> str:
        return f"{self.graph}_{what}"

    @property
    def branches(self) -> dg.DynamicPartitionsDefinition:
        return dg.DynamicPartitionsDefinition(name=self.named("branches"))


def output_of(table_key: str) -> str:
    """The output of an op that stands for a table."""
    return table_key.replace(":", "_")
