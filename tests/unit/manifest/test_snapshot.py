"""Snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import TableNotFound
from tests.unit.manifest.samples import SCHEMA, commit, entry, image, snapshot

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import TableEntry


def test_what_a_snapshot_shows() -> None:
    held = snapshot(image(entry("node:Part"), entry("edge:Fits")))
    assert held.commit == commit(1)
    assert held.schema == SCHEMA
    assert list(held.tables) == ["edge:Fits", "node:Part"]
    assert held.table("node:Part") == entry("node:Part")


@pytest.mark.parametrize(
    ("entries", "known"), [((), "none"), ((entry("node:A"), entry("node:B")), "node:A, node:B")]
)
def test_a_missing_table(entries: tuple[TableEntry, ...], known: str) -> None:
    held = snapshot(image(*entries), branch="b", manifest_version=4)
    with pytest.raises(TableNotFound) as caught:
        held.table("node:X")
    assert caught.value.message == "no table `node:X` on b at version 4"
    assert caught.value.hint == f"tables there: {known}"
