"""The graph as a resource of Dagster: assets ask for it, and open it for as long as they need."""

import dagster as dg

from omnigraph_assets.config import ACTOR
from omnigraph_core.engine.omnigraph import Omnigraph


class GraphResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A graph by its address; what is written is written by `actor`."""

    uri: str
    actor: str = ACTOR

    def open(self) -> Omnigraph:
        """
        Raises:
            GraphNotFound: there is none at its address.
        """
        return Omnigraph.open(self.uri, actor=self.actor)
