"""The cache keeps what fits, drops what was not used longest, and makes nothing twice at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.topology import memory
from omnigraph_core.topology.memory import ByteCache, shared_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence


def never() -> str:
    raise AssertionError("kept values are not made again")


def test_a_value_is_made_once() -> None:
    cache = ByteCache(100)
    assert cache.get("bolt", lambda: "steel", len) == "steel"
    assert cache.get("bolt", never, len) == "steel"
    assert cache.held == 5


def test_peek_makes_nothing() -> None:
    cache = ByteCache(100)
    assert cache.peek("bolt") is None
    cache.put("bolt", "steel", 5)
    assert cache.peek("bolt") == "steel"


def test_put_replaces() -> None:
    cache = ByteCache(100)
    cache.put("bolt", "steel", 5)
    cache.put("bolt", "brass plate", 11)
    assert cache.peek("bolt") == "brass plate"
    assert cache.held == 11


@pytest.mark.parametrize(
    "use", [lambda cache: cache.peek("a"), lambda cache: cache.get("a", never, len)]
)
def test_what_was_not_used_longest_goes_first(use: Callable[[ByteCache], object]) -> None:
    cache = ByteCache(10)
    for name in ("a", "b"):
        cache.put(name, name, 4)
    use(cache)
    cache.put("c", "c", 4)
    assert [cache.peek(name) for name in ("a", "b", "c")] == ["a", None, "c"]
    assert cache.held == 8


def test_several_go_for_a_large_one() -> None:
    cache = ByteCache(10)
    for name in ("a", "b", "c"):
        cache.put(name, name, 3)
    cache.put("d", "d", 7)
    assert [cache.peek(name) for name in ("a", "b", "c", "d")] == [None, None, "c", "d"]


def test_what_exceeds_the_whole_is_returned_and_not_kept() -> None:
    cache = ByteCache(10)
    cache.put("a", "a", 3)
    assert cache.get("large", lambda: "x" * 11, len) == "x" * 11
    assert cache.peek("large") is None
    assert cache.peek("a") == "a"
    cache.put("a", "x" * 11, 11)
    assert cache.peek("a") is None
    assert cache.held == 0


def test_clear_leaves_nothing() -> None:
    cache = ByteCache(10)
    cache.put("a", "a", 3)
    cache.clear()
    assert cache.peek("a") is None
    assert cache.held == 0


def test_several_missing_values_are_made_together() -> None:
    cache = ByteCache(100)
    cache.put("b", "known", 5)
    asked: list[Sequence[Hashable]] = []

    def build(keys: Sequence[Hashable]) -> list[tuple[str, int]]:
        asked.append(keys)
        return [(f"made {key}", 6) for key in keys]

    assert cache.get_many(("a", "b", "c"), build) == {"a": "made a", "b": "known", "c": "made c"}
    assert asked == [("a", "c")]
    assert cache.held == 17


def test_a_failure_leaves_the_key_free() -> None:
    cache = ByteCache(100)
    with pytest.raises(AssertionError):
        cache.get("bolt", never, len)
    assert cache.get("bolt", lambda: "steel", len) == "steel"


def test_a_value_that_needs_itself_is_refused() -> None:
    cache = ByteCache(100)

    def build() -> str:
        return cache.get("bolt", build, len)

    with pytest.raises(InvariantBroken, match="does not need itself"):
        cache.get("bolt", build, len)


def test_others_wait_for_the_one_who_makes_it() -> None:
    cache = ByteCache(100)
    begun, go_on = threading.Event(), threading.Event()
    made: list[str] = []

    def build() -> str:
        begun.set()
        assert go_on.wait(120)
        made.append("steel")
        return "steel"

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(cache.get, "bolt", build, len)
        assert begun.wait(120)
        others = [pool.submit(cache.get, "bolt", build, len) for _ in range(3)]
        go_on.set()
        assert {task.result(120) for task in [first, *others]} == {"steel"}
    assert made == ["steel"]


def test_those_who_waited_for_a_failure_try_themselves() -> None:
    cache = ByteCache(100)
    begun, go_on = threading.Event(), threading.Event()

    def fail() -> str:
        begun.set()
        assert go_on.wait(120)
        raise OSError("gone")

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(cache.get, "bolt", fail, len)
        assert begun.wait(120)
        others = [pool.submit(cache.get, "bolt", lambda: "steel", len) for _ in range(2)]
        go_on.set()
        assert [task.result(120) for task in others] == ["steel", "steel"]
        with pytest.raises(OSError, match="gone"):
            first.result(120)


def test_overlapping_requests_make_each_value_once() -> None:
    cache = ByteCache(10_000)
    made: list[int] = []

    def build(keys: Sequence[Any]) -> list[tuple[str, int]]:
        made.extend(keys)
        return [(str(key), 3) for key in keys]

    wanted = [tuple(range(start, start + 20)) for start in range(30)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda keys: cache.get_many(keys, build), wanted))
    assert [dict(values) for values in found] == [{n: str(n) for n in keys} for keys in wanted]
    assert sorted(made) == list(range(49))


def test_what_single_versions_have_takes_a_small_part() -> None:
    cache = ByteCache(8_000)
    assert cache.version_capacity == 1_000
    cache.put("column", "steel", 4_000)
    for version in range(10):
        assert cache.get_of_version(version, lambda: "handle", lambda _: 300) == "handle"
        cache.peek(0)  # the one that is used stays
    assert [version for version in range(10) if cache.glance(version)] == [0, 8, 9]
    assert (cache.held_of_versions, cache.held) == (900, 4_900)
    cache.drop(9)
    cache.resize(8, 100)
    assert (cache.held_of_versions, cache.held) == (400, 4_400)


def test_what_is_superseded_counts_with_its_own_bytes() -> None:
    cache = ByteCache(8_000)
    for version in range(20):
        cache.put(version, "links", 3_000)
        cache.supersede(version, 100)
    assert [version for version in range(20) if cache.glance(version)] == [*range(10, 20)]
    assert cache.held == cache.held_of_versions == 1_000
    cache.put("large", "links", 3_000)
    cache.supersede("large", 2_000)
    assert cache.glance("large") == "links"
    assert (cache.held_of_versions, cache.held) == (1_000, 3_000)


def test_of_a_series_the_last_are_kept() -> None:
    cache = ByteCache(10_000)
    for version in range(8):
        for name in ("size", "color"):
            cache.get_of_series(name, (name, version), lambda: "ranks", lambda _: 10)
        cache.get_of_series("size", ("size", 0), lambda: "ranks", lambda _: 10)
    kept = {name: [n for n in range(8) if cache.glance((name, n))] for name in ("size", "color")}
    assert kept == {"size": [0, 5, 6, 7], "color": [4, 5, 6, 7]}
    assert cache.held == 80


def test_the_process_has_one_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_shared", None)
    monkeypatch.setenv("OMNIGRAPH_CACHE_MEMORY", "3M")
    assert shared_cache().capacity == 3 * 2**20
    assert shared_cache() is shared_cache()
