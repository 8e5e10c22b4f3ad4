"""What everything is called: keys of assets, outputs, partitions, jobs.

Every name begins with that of its graph, so that several graphs live in one code location. The
last part of a key is what the graph of assets shows, so it tells type and column.
"""

from dataclasses import dataclass

import dagster as dg


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

    def index(self, type_name: str, column: str) -> dg.AssetKey:
        return self.key("indexes", f"{type_name}.{column}")

    @property
    def manifest(self) -> dg.AssetKey:
        return self.key("manifest")

    @property
    def drops(self) -> dg.AssetKey:
        return self.key("drops")

    def named(self, what: str) -> str:
        """The name of an op, a job, a sensor or a schedule."""
        return f"{self.graph}_{what}"

    def group(self, what: str) -> str:
        return f"{self.graph}_{what}"

    @property
    def branches(self) -> dg.DynamicPartitionsDefinition:
        return dg.DynamicPartitionsDefinition(name=self.named("branches"))


def output_of(table_key: str) -> str:
    """The output of an op that stands for a table."""
    return table_key.replace(":", "_")
