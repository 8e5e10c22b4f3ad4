"""A write with an idempotency key asks no more of a store than one without, at any depth."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING
from unittest import mock

from benchmarks.commit.depth import deepen, step_over_flush
from omnigraph_core.constants import LOG_FLUSH_INTERVAL, RECENT_COMMITS
from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.write.appends import append, opened
from tests.support.counting_proxy import CountingProxy
from tests.support.graphs import new_graph
from tests.support.stores import new_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.s3 import S3Server

WINDOW, INTERVAL = RECENT_COMMITS.value, LOG_FLUSH_INTERVAL.value
DEPTHS = (10, WINDOW + 10, 3 * WINDOW + 10)


@contextlib.contextmanager
def counted(server: S3Server) -> Iterator[Callable[[Callable[[], object]], int]]:
    """Counts the requests of a call; handles must be opened inside the block."""
    with CountingProxy(server.port) as proxy:

        def count(act: Callable[[], object]) -> int:
            proxy.clear()
            act()
            return len(proxy.requests)

        with mock.patch.dict(os.environ, server.environment(endpoint=proxy.endpoint)):
            yield count


def test_a_key_costs_nothing_at_any_depth(s3_server: S3Server) -> None:
    address = new_prefix(s3_server.bucket)
    costs: dict[int, tuple[int, int, int]] = {}
    with counted(s3_server) as count:
        og = new_graph(address)
        for depth in DEPTHS:
            with mock.patch.dict(os.environ, s3_server.environment()):
                deepen(Omnigraph.open(address), depth)
            step_over_flush(og)
            context = opened(address)
            append(context, f"warm-{depth}", key=f"warm-{depth}")  # the log is read once
            step_over_flush(og)
            context.head("main")
            plain = count(partial(append, context, f"plain-{depth}"))
            step_over_flush(og)
            context.head("main")
            send = partial(append, context, f"keyed-{depth}", key=f"keyed-{depth}")
            keyed, repeat = count(send), count(send)
            costs[depth] = (plain, keyed, repeat)
    for plain, keyed, repeat in costs.values():
        assert keyed <= plain
        assert repeat == 0, "a repeat is answered from what is known"
    assert len({keyed for _, keyed, _ in costs.values()}) == 1, costs


def test_the_log_is_asked_once_in_many_commits(s3_server: S3Server) -> None:
    """Others commit, so that nothing this handle does tells it what the log holds."""
    address = new_prefix(s3_server.bucket)
    with mock.patch.dict(os.environ, s3_server.environment()):
        other = new_graph(address)
        deepen(other, WINDOW + INTERVAL)
    with counted(s3_server) as count:
        context = opened(address)
        looks = []
        for number in range(0, 2 * WINDOW, 4):
            deepen(other, WINDOW + INTERVAL + number)
            looks.append(count(partial(context.commits.find_keyed, *context.head("main"), "k")))
    assert looks[0] > 0
    assert sum(cost > 0 for cost in looks) == 2, looks
