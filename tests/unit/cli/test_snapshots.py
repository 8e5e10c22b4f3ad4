"""What a text on the command line names."""

from __future__ import annotations

import pytest
import typer

from omnigraph_core.cli.snapshots import named_target
from omnigraph_core.history.snapshots import ReadTarget
from tests.support.cases import each

COMMIT = "01M7HCRA2YB7TR5DXVE32ATFRJ"


@each(
    ("text", "target"),
    [
        ("main", ReadTarget(branch="main")),
        (" review/parts ", ReadTarget(branch="review/parts")),
        (COMMIT, ReadTarget(snapshot_id=COMMIT)),
        (f" {COMMIT} ", ReadTarget(snapshot_id=COMMIT)),
        (COMMIT[:-1], ReadTarget(branch=COMMIT[:-1])),
        ("tag:spring", ReadTarget(tag="spring")),
        (f"tag:{COMMIT}", ReadTarget(tag=COMMIT)),
        (f"branch:{COMMIT}", ReadTarget(branch=COMMIT)),
        ("branch:tag:spring", ReadTarget(branch="tag:spring")),
        ("fix:spring", ReadTarget(branch="fix:spring")),
    ],
)
def test_named_target(text: str, target: ReadTarget) -> None:
    assert named_target(text) == target


@each("text", ["", " ", "tag:", "branch:"])
def test_nothing_is_named(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="expected a branch, a commit id or tag:NAME"):
        named_target(text)
