"""What a killed job leaves for its parts goes with the next cleanup, once it is old."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.storage.scratch import Scratch

if TYPE_CHECKING:
    from pathlib import Path


def test_cleanup_removes_what_is_old(tmp_path: Path) -> None:
    graph = Omnigraph.init(str(tmp_path), "node Part { sku: String @key }")
    store = graph._context.store
    old, young = Scratch(store, "old").put("keys", b"x"), Scratch(store, "young").put("keys", b"y")
    long_ago = time.time() - 60 * 86_400
    os.utime(tmp_path / "_scratch" / "old" / old, (long_ago, long_ago))
    graph.cleanup(keep=1, is_preview=True)
    assert Scratch(store, "old").names("keys") == [old]
    graph.cleanup(keep=1, is_preview=False)
    assert Scratch(store, "old").names("keys") == []
    assert Scratch(store, "young").names("keys") == [young]
