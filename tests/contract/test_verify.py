"""Verify finds nothing in graphs that are whole, whatever was done to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.verifying.model import Code, Severity
from omnigraph_core.errors import BranchNotFound, StorageError
from omnigraph_core.failpoints import arm
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.storage.objects import list_objects
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from tests.support.ageing import clean_up
from tests.support.graphs import BIN, HOLDS, PART, append, append_pair, parts, publish
from tests.support.table_writes import stage_delete_keys, stage_upsert

if TYPE_CHECKING:
    from omnigraph_core.engine.verifying.model import VerifyReport

pytestmark = pytest.mark.long_on_s3("test_http_over_s3 and test_commits show S3")


def worked_on(og: Omnigraph) -> None:
    """Every kind of table version on two branches, in sound rows."""
    append(og, BIN, ["bin"])
    append_pair(og, ["a", "b", "c"])
    snapshot = og.snapshot()
    changed = stage_upsert(og.table(snapshot, PART), parts(["a", "z"], stock=5))
    assert changed is not None
    publish(og, snapshot, {PART: changed}, TableOperation.UPSERT)
    og.tag_create("v1")
    og.branch_create("review")
    append_pair(og, ["d"], "review")
    og.optimize()
    snapshot = og.snapshot()
    fewer = stage_delete_keys(og.table(snapshot, PART), pa.array(["z"]))
    assert fewer is not None
    publish(og, snapshot, {PART: fewer}, TableOperation.DELETE)
    append_pair(og, ["e"])


def errors(report: VerifyReport) -> list[str]:
    return [item.render() for item in report.findings if item.severity is Severity.ERROR]


@pytest.mark.parametrize("is_deep", [False, True])
def test_a_new_graph(og: Omnigraph, is_deep: bool) -> None:
    report = og.verify(is_deep=is_deep)
    assert report.is_sound
    assert report.require_sound() is report
    assert (report.branch, report.is_deep) == (None, is_deep)
    assert (report.checked.branches, report.checked.table_versions) == (1, 3)


def test_a_graph_that_was_worked_on(og: Omnigraph) -> None:
    worked_on(og)
    before = {item.path for item in list_objects(open_store(og.uri), "")}
    shallow = Omnigraph.open(og.uri).verify()
    assert shallow.findings == ()
    assert (shallow.checked.branches, shallow.checked.tags) == (2, 1)
    assert (shallow.checked.catalog_versions, shallow.checked.rows) == (2, 0)
    deep = Omnigraph.open(og.uri).verify(is_deep=True)
    assert errors(deep) == []
    assert deep.checked.catalog_versions == 9
    assert deep.checked.table_versions > shallow.checked.table_versions
    assert deep.checked.indexes > 0
    assert deep.checked.rows >= 5 + 4 + 1, "those of main, and of the branch what differs"
    assert {item.path for item in list_objects(open_store(og.uri), "")} == before


def test_one_branch(og: Omnigraph) -> None:
    worked_on(og)
    report = og.verify("review", is_deep=True)
    assert report.is_sound
    assert (report.branch, report.checked.branches, report.checked.tags) == ("review", 1, 0)
    assert report.checked.catalog_versions == 2
    with pytest.raises(BranchNotFound):
        og.verify("nope")


def test_after_cleanup(og: Omnigraph) -> None:
    worked_on(og)
    og.branch_delete("review")
    assert stage_append(og.table(og.snapshot(), PART), parts(["never published"])) is not None
    clean_up(og, keep=1)
    report = og.verify(is_deep=True).require_sound()
    assert report.checked.catalog_versions == 2, "the head, and what the tag names"
    assert report.checked.tags == 1
    append_pair(og, ["later"])
    assert og.verify(is_deep=True).is_sound


def test_after_failures(og: Omnigraph) -> None:
    worked_on(og)
    for point in ("stage.after_version", "image.after_files", "log.before_append"):
        with arm(point, "error*9"):
            try:
                append_pair(og, [point])
                og.list_commits()
            except StorageError:
                pass
    with arm("branch.after_catalog", "error"), pytest.raises(StorageError):
        og.branch_create("never")
    with arm("branch.after_deleted_mark", "error"), pytest.raises(StorageError):
        og.branch_delete("review")
    assert errors(og.verify(is_deep=True)) == []


def test_forks_of_forks_and_of_the_past(og: Omnigraph) -> None:
    worked_on(og)
    og.branch_create("second", source="review")
    append_pair(og, ["f"], "second")
    og.branch_create("past", source=ReadTarget(tag="v1"))
    for number in range(3):
        append_pair(og, [f"g{number}"], "past")
    og.list_commits("past")
    assert errors(og.verify(is_deep=True)) == []


def test_garbage_is_told_and_is_no_damage(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    assert stage_append(og.table(og.snapshot(), PART), parts(["never published"])) is not None
    (found,) = [item for item in og.verify(is_deep=True).findings if item.code == Code.GARBAGE]
    assert found.severity is Severity.INFO
    assert "not needed" in found.message
    assert og.verify().findings == (), "without depth it is not known what old versions need"


def test_reports(og: Omnigraph) -> None:
    worked_on(og)
    report = og.verify(is_deep=True)
    document = json.loads(json.dumps(report.to_json()))
    assert document["is_sound"] is True
    assert document["checked"]["branches"] == 2
    assert report.render().splitlines()[-2] == "sound"
    append(og, HOLDS, ["nowhere"])
    report = og.verify(is_deep=True)
    (found,) = [item for item in report.to_json()["findings"] if item["severity"] == "error"]
    assert found["code"] == "rows.endpoint"
    assert found["place"].startswith("main@")
    assert "dst 'nowhere' not found in Part" in found["message"]
    assert "damaged: 1 error\n" in report.render()
    with pytest.raises(StorageError, match="dst 'nowhere' not found"):
        report.require_sound()
    assert og.verify().is_sound, "rows are read in depth only"
