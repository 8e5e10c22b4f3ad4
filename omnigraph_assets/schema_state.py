"""The state that definitions are made from: the accepted schema of a graph, as a file."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.schema.catalog import Catalog
from omnigraph_core.schema.document import catalog_from_document, document_from_json


@dataclass(frozen=True, slots=True)
class AcceptedState:
    """A schema in force: its hash, and its compiled document as JSON text."""

    schema_hash: str
    document: str

    @property
    def catalog(self) -> Catalog:
        return catalog_from_document(document_from_json(json.loads(self.document)))

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def read_state(path: Path) -> AcceptedState:
    """What `AcceptedState.write` has written."""
    return AcceptedState(**json.loads(path.read_text()))


def state_of(graph: Omnigraph) -> AcceptedState:
    """The schema that is in force on main."""
    schema = graph.schema_show()
    return AcceptedState(schema.hash, schema.document)


def state_key(name: str) -> str:
    """Where the state of a graph's definitions is kept."""
    return f"omnigraph[{name}]"
