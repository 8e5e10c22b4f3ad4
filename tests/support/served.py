"""A small stock behind a server of this process, with a spool of its own."""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.server import Client, serving
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from httpx2 import Response

SCHEMA: Final = """
node Part {
  sku: String @key
  name: String @index
  stock: I64?
  drawing: Blob?
}
node Bin {
  code: String @key
}
edge Holds: Bin -> Part {
  amount: I64?
}
"""

DRAWING: Final = bytes(range(256)) * 20


def part(sku: str, **values: Any) -> dict[str, Any]:
    return {"type": "Part", "data": {"sku": sku, "name": f"part {sku}", **values}}


def lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


STOCK: Final = lines(
    [
        part("p1", stock=4, drawing=f"base64:{base64.b64encode(DRAWING).decode()}"),
        part("p2", stock=7),
        part("p3", drawing="https://example.org/drawings/p3?a=b"),
        part("p4", drawing="file:///drawings/p4"),
        {"type": "Bin", "data": {"code": "b1"}},
        {"edge": "Holds", "from": "b1", "to": "p1", "data": {"amount": 2}},
    ]
)


def new_stock(root: Path, name: str = "stock") -> Omnigraph:
    graph = Omnigraph.init(str(root / name), SCHEMA)
    graph.load(STOCK)
    return graph


@contextmanager
def stock_server(
    root: Path, *, token: str | None = None, env: Mapping[str, str] | None = None, **options: Any
) -> Iterator[Client]:
    """A server of the graph `stock` below a directory, or of what a configuration there names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_SERVER_SPOOL", str(root / "spool"))
        uri = None if "config" in options else str(root / "stock")
        with serving(uri, token=token, env=env, **options) as client:
            yield client


def document(response: Response, status: int = 200) -> Any:
    """The body of an answer, which must have this status."""
    assert response.status_code == status, response.text
    return response.json()


def ended(client: Client, job: Mapping[str, Any], *, prefix: str = "") -> Any:
    """A job once it runs no more; the prefix names its graph."""

    def result() -> Any:
        found = document(client.get(f"{prefix}/jobs/{job['job_id']}"))
        return None if found["status"] == "running" else found

    return wait_until(result, f"the end of job {job['job_id']}")


def state_of(graph: Omnigraph) -> object:
    """What every write changes."""
    branches = [(name, graph.head_commit_id_for_branch(name)) for name in graph.branch_list()]
    return branches, graph.tag_list(), [run.run_id for run in graph.list_runs()]
