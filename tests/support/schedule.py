"""How xdist spreads tests over workers: by file, and tests that share a service stay together.

A worker that runs a whole file makes its module's fixtures once. All tests with Spark are one unit,
so that a run starts one session, one cluster and one Connect server. Slow units come first: what a
worker begins last is short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    import pytest

SPARK: Final = (
    "tests/integration/spark/",
    "tests/faults/test_spark.py",
    "tests/integration/platform/test_spark_assets.py",
    "tests/integration/platform/test_io_manager_spark.py",
)
LIVE: Final = ("tests/integration/platform/live/",)
SLOW: Final = (
    *SPARK,
    *LIVE,
    "tests/integration/platform/",
    "tests/faults/",
    "tests/property/",
    "tests/docs/",
    "tests/behaviour/",
)
"""What starts first; everything else follows in the order of collection."""


def unit_of(nodeid: str) -> str:
    """What a worker takes as a whole."""
    for together in (SPARK, LIVE):
        if nodeid.startswith(together):
            return together[0]
    return nodeid.partition("::")[0]


def order(items: list[pytest.Item]) -> None:
    """Put the slow units first, in place."""

    def place(item: pytest.Item) -> int:
        starts = [item.nodeid.startswith(folder) for folder in SLOW]
        return starts.index(True) if any(starts) else len(SLOW)

    items.sort(key=place)


class UnitScheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
