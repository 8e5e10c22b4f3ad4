"""Stopping long work from above."""

from __future__ import annotations

import threading

import pytest

from omnigraph_core.errors import EmbeddingError, QueryCancelled
from omnigraph_core.interruption import aside, interrupted_by, pause, wait_for


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


def test_waiting_can_be_stopped() -> None:
    with pytest.raises(QueryCancelled), interrupted_by(stop):
        wait_for(threading.Event())
    done = threading.Event()
    done.set()
    with interrupted_by(stop):
        wait_for(done)


def test_work_aside() -> None:
    def fail() -> int:
        raise EmbeddingError("no answer")

    assert aside(threading.get_ident) == threading.get_ident(), "nobody may stop it"
    with interrupted_by(lambda: None):
        assert aside(threading.get_ident) != threading.get_ident()
        with pytest.raises(EmbeddingError, match="no answer"):
            aside(fail)


def test_work_aside_is_left_alone_when_stopped() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def work() -> None:
        go_on.wait()
        ended.set()

    with pytest.raises(QueryCancelled), interrupted_by(stop):
        aside(work)
    assert not ended.is_set()
    go_on.set()
    assert ended.wait(120)
