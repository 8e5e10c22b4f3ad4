"""Stopping long work from above."""

from __future__ import annotations

import threading

import pytest

from omnigraph_core.errors import QueryCancelled
from omnigraph_core.interruption import interrupted_by, pause


def stop() -> None:
    raise QueryCancelled


def test_nobody_asks_outside_a_block() -> None:
    pause()
    with pytest.raises(QueryCancelled), interrupted_by(stop):
        pause()
    pause()


def test_the_inner_block_counts() -> None:
    asked: list[str] = []
    with interrupted_by(lambda: asked.append("outer")):
        with interrupted_by(lambda: asked.append("inner")):
            pause()
        pause()
    assert asked == ["inner", "outer"]


def test_another_thread_is_not_stopped() -> None:
    ended: list[str] = []
    with interrupted_by(stop):
        worker = threading.Thread(target=lambda: (pause(), ended.append("well")))
        worker.start()
        worker.join()
    assert ended == ["well"]
