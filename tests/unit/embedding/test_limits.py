"""Whatever is asked and whenever: no minute at the provider has more than its limits allow."""

from __future__ import annotations

import itertools
import random
import threading

import pytest

from omnigraph_core.embedding.limits import Limits, RateLimiter, shared_limiter


class Clock(threading.Event):
    """Time passes while somebody waits, and never otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0

    def wait(self, timeout: float | None = None) -> bool:
        if not self.is_set():
            self.now += timeout or 0.0
        return self.is_set()


def sent(limiter: RateLimiter, clock: Clock, sizes: list[int], idle: float) -> list[float]:
    """When requests of these sizes go; now and then nobody asks for a while."""
    rng = random.Random(7)
    moments = []
    for size in sizes:
        if idle and rng.random() < 0.01:
            clock.now += rng.uniform(0, idle)
        assert limiter.acquire(size, clock)
        moments.append(clock.now)
    return moments


def most_in_a_minute(moments: list[float], sizes: list[int]) -> int:
    """The most that any 60 seconds have."""
    order = sorted(range(len(moments)), key=moments.__getitem__)
    most = total = start = 0
    for at in order:
        total += sizes[at]
        while moments[at] - moments[order[start]] >= 60:
            total -= sizes[order[start]]
            start += 1
        most = max(most, total)
    return most


@pytest.mark.parametrize("idle", [0.0, 90.0])
@pytest.mark.parametrize("limit", [7, 600, 30_000])
def test_requests_keep_the_limit_and_use_most_of_it(limit: int, idle: float) -> None:
    clock = Clock()
    limiter = RateLimiter(Limits(requests=limit), clock=lambda: clock.now)
    count = 5 * limit
    moments = sent(limiter, clock, [1] * count, idle)
    rng = random.Random(3)
    arrived = [moment + rng.uniform(0, 2) for moment in moments]
    assert most_in_a_minute(arrived, [1] * count) <= limit
    if not idle:
        assert (count - 1) / (moments[-1] - moments[0]) * 60 >= 0.9 * limit
    assert limiter.granted == count


@pytest.mark.parametrize("largest", [500, 9_000])
@pytest.mark.parametrize("idle", [0.0, 90.0])
def test_tokens_keep_the_limit_however_large_requests_are(largest: int, idle: float) -> None:
    clock = Clock()
    limiter = RateLimiter(Limits(tokens=10_000), clock=lambda: clock.now)
    rng = random.Random(5)
    sizes = [rng.choice([10, largest // 2, largest]) for _ in range(400)]
    moments = sent(limiter, clock, sizes, idle)
    assert most_in_a_minute(moments, sizes) <= 10_000
    if not idle and largest == 500:
        assert sum(sizes) / (moments[-1] - moments[0]) * 60 >= 0.9 * 10_000


def test_a_request_beyond_the_limit_goes_alone() -> None:
    clock = Clock()
    limiter = RateLimiter(Limits(tokens=100), clock=lambda: clock.now)
    first, large, last = sent(limiter, clock, [50, 250, 50], 0)
    assert large - first >= 60
    assert last - large >= 60


def test_a_pause_is_for_everybody_and_may_come_while_one_waits() -> None:
    class Pausing(Clock):
        def wait(self, timeout: float | None = None) -> bool:
            if pauses:
                limiter.pause(pauses.pop())
            return super().wait(timeout)

    pauses = [30.0]
    clock = Pausing()
    limiter = RateLimiter(Limits(requests=60), clock=lambda: clock.now)
    moments = sent(limiter, clock, [1] * 5, 0)
    gaps = [right - left for left, right in itertools.pairwise(moments)]
    assert sum(gap >= 30 for gap in gaps) == 1
    limiter.pause(10.0)
    limiter.pause(1.0)
    paused = clock.now
    assert limiter.acquire(1, clock)
    assert clock.now >= paused + 10


def test_who_is_stopped_gets_nothing() -> None:
    clock = Clock()
    limiter = RateLimiter(Limits(requests=1), clock=lambda: clock.now)
    assert limiter.acquire(1, clock)
    clock.set()
    assert not limiter.acquire(1, clock)
    assert not RateLimiter(Limits(), clock=lambda: clock.now).acquire(1, clock)
    assert limiter.granted == 1


def test_parts_of_a_limit_make_the_whole() -> None:
    assert Limits(600, 9_000).divided(4) == Limits(150, 2_250)
    assert Limits().divided(4) == Limits()


def test_a_process_has_one_limiter_for_a_provider() -> None:
    limits = Limits(600)
    found = shared_limiter("http://one", limits)
    assert shared_limiter("http://one", Limits(600)) is found
    assert shared_limiter("http://two", limits) is not found
