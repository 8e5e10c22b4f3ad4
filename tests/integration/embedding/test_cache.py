"""The cache file: what stays, what goes, and what becomes of a bad one."""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from omnigraph_core.embedding import cache as cache_module
from omnigraph_core.embedding.cache import VectorCache, cache_key

if TYPE_CHECKING:
    from pathlib import Path


def key(name: str) -> bytes:
    return cache_key(("scope",), name)


def vectors(*numbers: float) -> np.ndarray:
    return np.array([[number, -number] for number in numbers], np.float32)


def known(cache: VectorCache, *names: str, dimension: int = 2) -> dict[str, list[float]]:
    parts = cache.iter_found([key(name) for name in names], dimension)
    return {
        names[position]: vector.tolist()
        for positions, found in parts
        for position, vector in zip(positions, found, strict=True)
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sub" / "cache.sqlite"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time as the cache sees it."""
    moment = [1_000_000.0]
    monkeypatch.setattr(cache_module.time, "time", lambda: moment[0])
    return moment


def test_what_was_put_is_found_by_any_instance(path: Path) -> None:
    first, second = VectorCache(path), VectorCache(path)
    first.put([key("a"), key("b")], vectors(0.1, 0.2))
    expected = vectors(0.1, 0.2).tolist()
    for cache in (first, second):
        assert known(cache, "b", "x", "a") == {"a": expected[0], "b": expected[1]}
        cache.close()
        assert known(cache, "a") == {"a": expected[0]}, "opened again"
        cache.close()


def test_many_keys_are_found_in_order_of_position(path: Path) -> None:
    cache = VectorCache(path)
    names = [str(number) for number in range(1201)]
    cache.put([key(name) for name in names], vectors(*range(1201)))
    assert known(cache, *names) == {name: [float(name), -float(name)] for name in names}
    cache.close()


def test_keys_keep_their_parts_apart() -> None:
    assert cache_key(("a", "bc"), "d") != cache_key(("ab", "c"), "d")
    assert cache_key(("a",), "1:b") != cache_key(("a", "b"), "")


def test_what_was_not_used_longest_goes_first(path: Path, now: list[float]) -> None:
    cache = VectorCache(path, limit=3)
    for name in "abc":
        cache.put([key(name)], vectors(1))
        now[0] += 100
    known(cache, "a")
    now[0] += 100
    cache.put([key("d")], vectors(1))
    assert set(known(cache, *"abcd")) == {"a", "c", "d"}
    cache.put([key(name) for name in "efgh"], vectors(1, 2, 3, 4))
    assert len(known(cache, *"abcdefgh")) == 3
    cache.close()


def test_a_vector_of_another_length_or_with_holes_is_not_found(path: Path) -> None:
    cache = VectorCache(path)
    cache.put([key("a"), key("b")], vectors(1, float("nan")))
    assert known(cache, "a", "b") == {"a": [1, -1]}
    assert known(cache, "a", "b", dimension=3) == {}
    cache.close()


def test_a_file_of_another_kind_is_set_aside(path: Path) -> None:
    content = b"not a database" * 100
    path.parent.mkdir()
    path.write_bytes(content)
    cache = VectorCache(path)
    assert known(cache, "a") == {}
    cache.put([key("a")], vectors(1))
    cache.close()
    assert known(cache, "a") == {"a": [1, -1]}
    cache.close()
    assert path.with_name("cache.sqlite.damaged").read_bytes() == content


def test_a_damaged_file_is_set_aside(path: Path) -> None:
    cache = VectorCache(path)
    cache.put([key(str(number)) for number in range(500)], vectors(*range(500)))
    cache.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x55" * (len(content) - 4096)
    path.write_bytes(content)
    damaged = VectorCache(path)
    known(damaged, "1")
    damaged.put([key("a")], vectors(1))
    assert known(damaged, "a") == {"a": [1, -1]}
    damaged.close()
    assert path.with_name("cache.sqlite.damaged").exists()


def test_a_place_that_cannot_be_used_is_done_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    cache = VectorCache(tmp_path / "file" / "cache.sqlite")
    with caplog.at_level(logging.WARNING):
        cache.put([key("a")], vectors(1))
        assert known(cache, "a") == {}
    assert len(caplog.records) == 1, "said once"
    assert "is not used" in caplog.text


def test_a_file_in_use_is_done_without_for_now(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache_module, "_BUSY", 0.01)
    cache = VectorCache(path)
    cache.put([key("a")], vectors(1))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        cache.put([key("b")], vectors(2))
        assert known(cache, "a", "b") == {"a": [1, -1]}, "reading goes on"
        other.execute("ROLLBACK")
    cache.put([key("b")], vectors(2))
    assert set(known(cache, "a", "b")) == {"a", "b"}
    cache.close()
    assert "locked" in caplog.text


def test_threads_share_a_cache(path: Path) -> None:
    cache = VectorCache(path)

    def work(start: int) -> None:
        for number in range(start, 200, 4):
            cache.put([key(str(number))], vectors(number))
            assert known(cache, str(number))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(known(cache, *map(str, range(200)))) == 200
    cache.close()
