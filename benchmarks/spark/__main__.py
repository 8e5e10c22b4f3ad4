"""Loads on Spark: against a bare Spark job, a load in one process, and one processor.

The bare job only parses the same rows, kept by type, and writes them as Parquet. Everything runs in
processes of its own, in turns, on a session that has done something before. `--check` exits 1 when
a budget is exceeded, `--quick` uses a tenth of the rows.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.write.data import FULL, Scale, generate

LARGE: Final = Scale(1_000_000, 50_000, 10_000_000, 1_000_000)
"""Ten times the rows of the benchmark of writes."""

LEAST_SHARE: Final = 0.5
"""Of the rows per second of the bare job."""
MOST_DRIVER_MEMORY: Final = 1e9
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
        generate(directory / "data", scale)
        broken = _compare(directory, scale, arguments.rounds)
    for problem in broken:
        print(f"over budget: {problem}")
    return 1 if arguments.check and broken else 0


def _compare(directory: Path, scale: Scale, rounds: int) -> list[str]:
    works = {
        "in one process": ("local", 0),
        "bare Spark, 2 processors": ("bare", 2),
        "on Spark, 2 processors": ("spark", 2),
        "on Spark, 1 processor": ("spark", 1),
    }
    runs: dict[str, list[Run]] = {name: [] for name in works}
    for number in range(rounds):
        order = list(works.items())
        for name, (work, cores) in order if number % 2 == 0 else reversed(order):
            runs[name].append(_run(work, cores, directory))
    seconds = {
        name: statistics.median(run.seconds for run in found) for name, found in runs.items()
    }
    peak = max(run.peak_bytes for run in runs["on Spark, 2 processors"])
    print(f"{scale.rows:,} rows, medians of {rounds}")
    for name, taken in seconds.items():
        print(f"{name:<28} {taken:>8.1f} s {scale.rows / taken:>12,.0f} rows/s")
    share = seconds["bare Spark, 2 processors"] / seconds["on Spark, 2 processors"]
    speedup = seconds["on Spark, 1 processor"] / seconds["on Spark, 2 processors"]
    overtake = seconds["in one process"] / seconds["on Spark, 2 processors"]
    print(f"of the bare job's rows per second: {share:.2f}")
    print(f"the second processor makes it faster by: {speedup:.2f}")
    print(f"beside a load in one process: {overtake:.2f} of its rows per second")
    begin = statistics.median(run.start_seconds for run in runs["on Spark, 2 processors"])
    print(f"it overtakes a load in one process {_crossover(scale.rows, seconds, begin)}")
    print(f"peak memory of the driver: {peak / 1e6:,.0f} MB")
    broken = []
    if share < LEAST_SHARE:
        broken.append(f"{share:.2f} of the bare job, at least {LEAST_SHARE}")
    if speedup < LEAST_SPEEDUP and (os.cpu_count() or 1) > 1:
        broken.append(f"{speedup:.2f} times faster on two processors, at least {LEAST_SPEEDUP}")
    if peak > MOST_DRIVER_MEMORY:
        broken.append(
            f"{peak / 1e6:,.0f} MB in the driver, at most {MOST_DRIVER_MEMORY / 1e6:,.0f}"
        )
    return broken


def _crossover(rows: int, seconds: dict[str, float], begin: float) -> str:
    """From how many rows on Spark is faster, its own start included, if rows cost what they did."""
    gained = (seconds["in one process"] - seconds["on Spark, 2 processors"]) / rows
    if gained <= 0:
        return "never on this machine"
    millions = begin / gained / 1e6
    return f"from about {millions:,.1f} million rows on; it takes {begin:.1f} s to begin"


def _run(work: str, cores: int, directory: Path) -> Run:
    target = directory / "target"
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.spark.work", work, str(cores)]
    done = subprocess.run(
        [*command, str(directory / "data"), str(target)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Run(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    sys.exit(main())
