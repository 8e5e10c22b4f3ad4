"""Writes against bare Lance: the bulk load, single inserts, an upsert.

Rates and times are compared only with others of the same run. `--check` exits 1 when a budget is
exceeded, `--quick` uses a tenth of the rows and fewer repetitions.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.ratios import report
from benchmarks.write import small
from benchmarks.write.data import FULL, QUICK, generate

LEAST_SHARE: Final = 0.5
"""Of the floor's rows per second."""
MOST_MEMORY: Final = 1.5e9
ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Run:
    seconds: float
    peak_bytes: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is exceeded")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        broken = _bulk(directory, is_quick=arguments.quick)
        often = small.QUICK if arguments.quick else small.FULL
        large = small.LARGE // 10 if arguments.quick else small.LARGE
        print("\nmilliseconds, median")
        broken += report(small.measure(directory, often, large=large))
    for problem in broken:
        print(f"over budget: {problem}")
    return 1 if arguments.check and broken else 0


def _bulk(directory: Path, *, is_quick: bool) -> list[str]:
    scale = QUICK if is_quick else FULL
    data = directory / "data"
    generate(data, scale)
    runs: dict[str, list[Run]] = {"floor": [], "load": []}
    for number in range(ROUNDS):
        for work in ("floor", "load") if number % 2 else ("load", "floor"):
            runs[work].append(_run(work, data, directory / "target"))
    ours = statistics.median(run.seconds for run in runs["load"])
    bare = statistics.median(run.seconds for run in runs["floor"])
    share, peak = bare / ours, max(run.peak_bytes for run in runs["load"])
    print(f"bulk load of {scale.rows:,} rows: {scale.rows / ours:,.0f} rows/s, {ours:.2f} s")
    print(f"  pyarrow + Lance alone: {scale.rows / bare:,.0f} rows/s, {bare:.2f} s")
    print(f"  share of that: {share:.2f} (at least {LEAST_SHARE})")
    print(f"  peak memory: {peak / 1e6:,.0f} MB (at most {MOST_MEMORY / 1e6:,.0f} MB)")
    broken = []
    if share < LEAST_SHARE and not is_quick:  # below that, starting up counts most
        broken.append(f"bulk load at {share:.2f} of bare Lance")
    if peak > MOST_MEMORY:
        broken.append(f"bulk load with {peak / 1e6:.0f} MB")
    return broken


def _run(work: str, data: Path, target: Path) -> Run:
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.write.bulk", work, str(data), str(target)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Run(**json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())
