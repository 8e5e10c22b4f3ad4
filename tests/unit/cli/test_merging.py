"""Options of merges: what excludes each other, and the files that choices go through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

import pytest
import typer

from omnigraph_core.cli.commands.run import Status
from omnigraph_core.cli.merging import (
    COUNTED,
    UNTOLD,
    MergeChoice,
    Strategy,
    merge_choice,
    print_merge,
    reported_conflicts,
)
from omnigraph_core.errors import ConfigError, MergeConflicts
from omnigraph_core.history.runs import RunStatus
from omnigraph_core.merge.model import (
    MergeConflict,
    MergeConflictKind,
    MergeOptions,
    MergeOutcome,
    MergeResult,
    MergeSide,
    MergeStrategy,
    TableDisposition,
    TableMerge,
)

if TYPE_CHECKING:
    from pathlib import Path

CONFLICTS = [
    MergeConflict("node:Part", id, MergeConflictKind.DIVERGENT_UPDATE, "both changed it").to_json()
    for id in ("p1", "Mü")
]


def test_what_is_spelled_out() -> None:
    assert get_args(Strategy) == tuple(map(str, MergeStrategy))
    assert get_args(Status) == tuple(map(str, RunStatus))
    assert MergeOptions().strategy == "row", "the default of the option"
    assert {UNTOLD, *COUNTED} <= set(map(str, TableDisposition))


@pytest.mark.parametrize(
    ("is_ours", "is_theirs", "side"),
    [(False, False, None), (True, False, "ours"), (False, True, "theirs")],
)
def test_sides(is_ours: bool, is_theirs: bool, side: str | None) -> None:
    choice = merge_choice("property", None, is_ours=is_ours, is_theirs=is_theirs)
    assert choice.options() == {"strategy": "property", "resolve": side, "choices": {}}


def test_both_sides_for_all_rows() -> None:
    with pytest.raises(typer.BadParameter, match="exclude each other"):
        merge_choice("row", None, is_ours=True, is_theirs=True)


def test_what_is_written_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "conflicts.json"
    with pytest.raises(MergeConflicts), reported_conflicts(path):
        raise MergeConflicts("two", CONFLICTS)
    assert f"2 conflicts in {path}: add" in capsys.readouterr().err
    assert "Mü" in path.read_text(encoding="utf-8")
    first, second = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([{**first, "choose": "ours"}, second]))
    choice = merge_choice("row", path, is_ours=False, is_theirs=True)
    assert choice == MergeChoice("row", "theirs", {("node:Part", "p1"): MergeSide.OURS})


def test_no_file_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MergeConflicts), reported_conflicts(None):
        raise MergeConflicts("two", CONFLICTS)
    assert capsys.readouterr().err == ""


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"cannot write conflicts to .*: No such file"),
        reported_conflicts(tmp_path / "none" / "conflicts.json"),
    ):
        raise MergeConflicts("two", CONFLICTS)


def test_lines_of_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """What stays has none, and what is taken over is not counted; a document has all of them."""
    tables = (
        TableMerge("node:Bin", TableDisposition.KEPT),
        TableMerge("node:Part", TableDisposition.ADOPTED),
        TableMerge("node:Rack", TableDisposition.MERGED, 2, 0, 1, conflicts=1),
        TableMerge("node:Shelf", TableDisposition.RESHAPED),
        TableMerge("node:Tray", TableDisposition.REMOVED),
        TableMerge("node:Unit", TableDisposition.KEPT, conflicts=2),
    )
    result = MergeResult("review", "main", MergeOutcome.MERGED, "1", "2", "3", None, tables)
    print_merge(result, "merged review into main", None, actor=None, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "merged review into main: merged",
        "node:Part adopted",
        "node:Rack merged +2 ~0 -1 1 conflict",
        "node:Shelf reshaped +0 ~0 -0",
        "node:Tray removed",
        "node:Unit kept 2 conflicts",
    ]
    print_merge(result, "merged review into main", None, actor=None, as_json=True)
    told = json.loads(capsys.readouterr().out)["tables"]
    assert [table["table_key"] for table in told] == [table.table_key for table in tables]
