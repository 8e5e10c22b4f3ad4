"""Loads on Spark: against a bare Spark job, a load in one process, and one processor.

The bare job only parses the same rows, kept by type, and writes them as Parquet. Everything runs in
processes of its own, in turns, on a session that has done something before. A tenth of the rows
shows whether the driver's memory grows with them; and with a third of the edges at one node,
whether such a node holds up a load. `--check` exits 1 when a budget is exceeded, `--quick` uses a
tenth of the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.write.data import FULL, Scale, generate

LARGE: Final = Scale(1_000_000, 50_000, 10_000_000, 1_000_000)
"""Ten times the rows of the benchmark of writes."""

LEAST_SHARE: Final = 2.0
"""Of the rows per second of the bare job."""
MOST_MEMORY_GROWTH: Final = 1.3
"""Of the driver, from a tenth of the rows to all."""
MOST_OF_A_HUB: Final = 1.5
"""Times the seconds of an even input, with so many edges at one node."""
HUB_SHARE: Final = 0.33
LEAST_SPEEDUP: Final = 1.6
"""By the second processor."""
ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Run:
    start_seconds: float
    """Until there is a session whose workers have begun."""
    seconds: float
    peak_bytes: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is exceeded")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often all are run")
    arguments = parser.parse_args()
    scale = FULL if arguments.quick else LARGE
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        tenth = Scale(*(number // 10 for number in astuple(scale)[:4]))
        generate(directory / "all", scale)
        generate(directory / "tenth", tenth)
        generate(directory / "hub", replace(tenth, hub_share=HUB_SHARE))
        broken = _compare(directory, scale, arguments.rounds)
    for problem in broken:
        print(f"over budget: {problem}")
    return 1 if arguments.check and broken else 0


def _compare(directory: Path, scale: Scale, rounds: int) -> list[str]:
    works = {
        "in one process": ("local", 0, "all"),
        "bare Spark, 2 processors": ("bare", 2, "all"),
        "on Spark, 2 processors": ("spark", 2, "all"),
        "on Spark, 1 processor": ("spark", 1, "all"),
        "a tenth": ("spark", 2, "tenth"),
        "a tenth, with a hub": ("spark", 2, "hub"),
    }
    runs: dict[str, list[Run]] = {name: [] for name in works}
    for number in range(rounds):
        order = list(works.items())
        for name, (work, cores, data) in order if number % 2 == 0 else reversed(order):
            runs[name].append(_run(work, cores, directory, data))
    seconds = {
        name: statistics.median(run.seconds for run in found) for name, found in runs.items()
    }
    peak = max(run.peak_bytes for run in runs["on Spark, 2 processors"])
    print(f"{scale.rows:,} rows, medians of {rounds}")
    for name, taken in seconds.items():
        rows = scale.rows if works[name][2] == "all" else scale.rows // 10
        print(f"{name:<28} {taken:>8.1f} s {rows / taken:>12,.0f} rows/s")
    share = seconds["bare Spark, 2 processors"] / seconds["on Spark, 2 processors"]
    speedup = seconds["on Spark, 1 processor"] / seconds["on Spark, 2 processors"]
    overtake = seconds["in one process"] / seconds["on Spark, 2 processors"]
    print(f"of the bare job's rows per second: {share:.2f}")
    print(f"the second processor makes it faster by: {speedup:.2f}")
    print(f"beside a load in one process: {overtake:.2f} of its rows per second")
    begin = statistics.median(run.start_seconds for run in runs["on Spark, 2 processors"])
    print(f"it overtakes a load in one process {_crossover(scale.rows, seconds, begin)}")
    growth = peak / max(run.peak_bytes for run in runs["a tenth"])
    hub = seconds["a tenth, with a hub"] / seconds["a tenth"]
    print(f"peak memory of the driver: {peak / 1e6:,.0f} MB, {growth:.2f} of that for a tenth")
    print(f"a third of the edges at one node: {hub:.2f} of the seconds")
    broken = []
    if share < LEAST_SHARE:
        broken.append(f"{share:.2f} of the bare job, at least {LEAST_SHARE}")
    if speedup < LEAST_SPEEDUP and (os.cpu_count() or 1) > 1:
        broken.append(f"{speedup:.2f} times faster on two processors, at least {LEAST_SPEEDUP}")
    if growth > MOST_MEMORY_GROWTH:
        broken.append(f"the driver grows by {growth:.2f}, at most {MOST_MEMORY_GROWTH}")
    if hub > MOST_OF_A_HUB:
        broken.append(f"{hub:.2f} of the seconds with a hub, at most {MOST_OF_A_HUB}")
    return broken


def _crossover(rows: int, seconds: dict[str, float], begin: float) -> str:
    """From how many rows on Spark is faster, its own start included, if rows cost what they did."""
    gained = (seconds["in one process"] - seconds["on Spark, 2 processors"]) / rows
    if gained <= 0:
        return "never on this machine"
    millions = begin / gained / 1e6
    return f"from about {millions:,.1f} million rows on; it takes {begin:.1f} s to begin"


def _run(work: str, cores: int, directory: Path, data: str) -> Run:
    target = directory / "target"
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.spark.work", work, str(cores)]
    done = subprocess.run(
        [*command, str(directory / data), str(target)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Run(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    sys.exit(main())
