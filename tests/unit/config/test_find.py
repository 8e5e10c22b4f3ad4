"""Which `omnigraph.yaml` counts: the nearest one that nobody else can have put there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph_core.config.find import NAME, find_config, nearest
from omnigraph_core.config.model import Config

if TYPE_CHECKING:
    import pytest


def test_the_nearest_one_above_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / NAME).write_text("")
    assert nearest(inner) == tmp_path / NAME
    (inner.parent / NAME).mkdir()  # a directory is none
    assert nearest(inner) == tmp_path / NAME
    (inner / NAME).write_text("")
    assert nearest(inner) == inner / NAME


def test_one_where_everybody_writes_counts_only_on_the_spot(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    inner = shared / "inner"
    inner.mkdir(parents=True)
    (tmp_path / NAME).write_text("")
    (shared / NAME).write_text("")
    shared.chmod(0o1777)
    assert nearest(inner) == tmp_path / NAME
    assert nearest(shared) == shared / NAME


def test_one_of_somebody_else_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / NAME).write_text("")
    owner = (tmp_path / NAME).stat().st_uid
    if owner == 0:  # whose files count for everybody
        os.chown(tmp_path / NAME, 12345, -1)
        owner = 12345
    monkeypatch.setattr("os.getuid", lambda: owner + 1)
    assert nearest(inner) != tmp_path / NAME
    monkeypatch.setattr("os.getuid", lambda: owner)
    assert nearest(inner) == tmp_path / NAME


def test_none_is_a_configuration_without_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_config() == Config(directory=tmp_path)
    (tmp_path / "other.yaml").write_text("cli: { graph: g }")
    assert find_config(Path("other.yaml")).cli.graph == "g"
