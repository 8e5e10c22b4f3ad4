"""Stores that refuse: read-only directories and full disks."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.engine.limits import make_graph
from tests.support.graphs import append_pair, ids, new_graph
from tests.support.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = "tests.integration.engine.limits"
READS = {
    "rows": "['a', 'b']",
    "version": "['a']",
    "entity": "{'id': 'a', 'sku': 'a', 'name': 'part a', 'stock': 0}",
    "commit": "'commit'",
    "commits": "2",
    "tag": "['a']",
    "moment": "2",
    "runs": "0",
    "preview": "True",
}
WRITES = [
    "init below",
    "append",
    "branch_create",
    "branch_delete",
    "tag_create",
    "tag_delete",
    "begin_run",
    "optimize",
]


def everything(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def readable() -> Iterator[Path]:
    """A directory others can reach: those of pytest are for their owner alone."""
    root = Path(tempfile.mkdtemp(prefix="omnigraph-", dir="/tmp"))
    root.chmod(0o755)
    try:
        yield root
    finally:
        for path in [root, *root.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(root)


def make_read_only(root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.fixture(scope="module")
def read_only(readable: Path) -> dict[str, list[object]]:
    """What a process that may only read is told; the graph is compared with what it was."""
    make_graph(str(readable / "graph"))
    before = everything(readable)
    make_read_only(readable)
    found: dict[str, list[object]] = (
        spawn(f"{HERE}:use_read_only", str(readable / "graph")).wait().result()
    )
    assert everything(readable) == before
    assert os.access(readable / "graph/__manifest", os.R_OK)
    return found


def test_a_read_only_graph(read_only: dict[str, list[object]]) -> None:
    assert read_only["init"][0] == "AlreadyExists"
    wrong = {name: read_only[name] for name in WRITES if not is_refused(*read_only[name])}
    assert wrong == {}


def is_refused(kind: object, message: object, *rest: object) -> bool:
    hint = "check permissions and credentials of this store"
    return kind == "StorageError" and "ermission denied" in str(message) and rest == (hint, False)


def test_reading_a_read_only_graph(read_only: dict[str, list[object]]) -> None:
    assert {name: read_only[name] for name in READS} == {
        name: ["ok", result] for name, result in READS.items()
    }


@pytest.mark.parametrize("limit", [64, 1_000, 4_000, 20_000])
def test_a_full_disk(tmp_path: Path, limit: int) -> None:
    """Rows, table version, transaction, image, catalog version: whichever does not fit."""
    og = new_graph(str(tmp_path))
    append_pair(og, ["a"])
    found = spawn(f"{HERE}:use_small_files", str(tmp_path), limit).wait().result()
    kind, message, hint, is_retryable = found["append"]
    assert (kind, is_retryable) == ("StorageError", False), message
    assert str(tmp_path) in message
    assert hint == "free some space and try again; nothing was published"
    assert found["rows"] == ["ok", "['a']"]
    assert found["later"] == ["ok", "3"]
    again = Omnigraph.open(str(tmp_path))
    assert len(ids(again, again.snapshot())) == 2001
    assert [commit.manifest_version for commit in again.list_commits()] == [3, 2, 1]
