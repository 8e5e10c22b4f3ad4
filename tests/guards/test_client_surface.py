"""A graph behind a server has the methods of a graph at hand: same names, parameters, defaults."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

from omnigraph_core.client.remote import RemoteGraph
from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.cases import each

LOCAL_ONLY = {
    "init": "a graph is made where it is kept",
    "open": "a connection is made with `connect`, or `RemoteGraph(url)`",
    "acting_as": "the token says who acts",
    "actor": "the token says who acts",
    "rights": "the server asks them",
    "commit": "publishes versions of tables that were staged at hand",
    "plan_load": "the steps of a load write beside the graph, from processes that reach it",
    "load_steps": "the same",
    "build_topology": "makes files of the store",
    "hold": "keeps files of the store from cleanup",
    "table": "reads files of the store",
}
REMOTE_ONLY = {"list_jobs", "get_job", "cancel_job"}
OTHER_RESULTS = {
    "open_diff": "RemoteDiff",
    "open_commit_changes": "RemoteDiff",
}
"""Methods whose result is another class with the same methods."""


def public(kind: type) -> dict[str, Any]:
    return {
        name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")
    }


LOCAL, REMOTE = public(Omnigraph), public(RemoteGraph)


def test_every_method_is_there_or_is_known_to_be_local() -> None:
    assert LOCAL.keys() - REMOTE.keys() == LOCAL_ONLY.keys()
    assert REMOTE.keys() - LOCAL.keys() == REMOTE_ONLY


@each("name", sorted(LOCAL.keys() & REMOTE.keys()))
def test_parameters_and_results_are_the_same(name: str) -> None:
    if isinstance(LOCAL[name], property):
        assert isinstance(REMOTE[name], property)
        return
    local, remote = (inspect.signature(kind[name]) for kind in (LOCAL, REMOTE))
    assert list(remote.parameters.values()) == list(local.parameters.values())
    returned = OTHER_RESULTS.get(name, local.return_annotation)
    assert remote.return_annotation == returned


@pytest.mark.parametrize("name", sorted(OTHER_RESULTS))
def test_results_of_another_class_have_the_same_methods(name: str) -> None:
    from omnigraph_core.client.diffs import RemoteDiff
    from omnigraph_core.engine.diffs import OpenDiff

    assert OTHER_RESULTS[name] == RemoteDiff.__name__
    local, remote = public(OpenDiff), public(RemoteDiff)
    assert local.keys() - {"of"} == remote.keys()
    assert inspect.signature(OpenDiff.iter_changes) == inspect.signature(RemoteDiff.iter_changes)


def test_a_reader_of_a_blob_has_the_same_methods() -> None:
    from omnigraph_core.client.blobs import RemoteBlobReader
    from omnigraph_core.storage.blobs import BlobReader

    local, remote = public(BlobReader), public(RemoteBlobReader)
    assert local.keys() == remote.keys()
    for name in local.keys() - {"size"}:
        ours, theirs = inspect.signature(local[name]), inspect.signature(remote[name])
        assert list(ours.parameters.values()) == list(theirs.parameters.values())


PROGRAM = """
import sys
import omnigraph_core
graph = omnigraph_core.connect("http://127.0.0.1:9/graphs/stock", token="t", timeout=1)
with graph:
    assert graph.uri == "http://127.0.0.1:9/graphs/stock"
print(*sorted(name for name in sys.modules if name.partition(".")[0] in
      {"lance", "obstore", "pyarrow", "httpx2", "fastapi", "typer"} and "." not in name))
"""


READING = """
import sys
from omnigraph_core.client.decode import changes, commits, plans, reading, rows, schemas
from omnigraph_core.client import uploads
from omnigraph_core.exec.result import QueryResult
print(*({"lance", "obstore"} & sys.modules.keys()))
"""


@pytest.mark.parametrize("program", [PROGRAM, READING], ids=["connecting", "reading"])
def test_a_client_loads_no_storage(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
