"""Requests per operation on an S3 store, and ratios of times on local disk.

Requests are exact. Times are medians, compared only with others of the same run. `--check` exits 1
when a budget is exceeded, `--quick` measures less deep and less often.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.commit import requests, timings
from benchmarks.ratios import report
from tests.support.s3 import S3Server

DEPTHS = (10, 100, 1_000)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is exceeded")
    parser.add_argument("--quick", action="store_true", help="depths 10 and 100, fewer repetitions")
    arguments = parser.parse_args()
    broken = [
        *count_requests(DEPTHS[:-1] if arguments.quick else DEPTHS),
        *compare_times(timings.QUICK if arguments.quick else timings.FULL),
    ]
    for problem in broken:
        print(f"over budget: {problem}")
    return 1 if arguments.check and broken else 0


def count_requests(depths: tuple[int, ...]) -> list[str]:
    with tempfile.TemporaryDirectory() as directory, S3Server(Path(directory)) as server:
        measured = requests.measure(server, depths)
    print(f"{'requests':<42} {'depth':>6}", *(f"{kind:>6}" for kind in requests.KINDS), "   all")
    for name in measured[depths[0]]:
        for depth, counts in measured.items():
            label = name if depth == depths[0] else ""
            numbers = (*counts[name].by_kind, counts[name].total)
            print(f"{label:<42} {depth:>6}", *(f"{number:>6}" for number in numbers))
    for depth, counts in measured.items():
        print(f"{requests.AMORTISED:<42} {depth:>6} {requests.amortised(counts):>41.1f}")
    return requests.broken_budgets(measured)


def compare_times(often: timings.Repetitions) -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        figures = timings.measure(Path(directory), often)
    print("\nmilliseconds, median")
    return report(figures)


if __name__ == "__main__":
    sys.exit(main())
