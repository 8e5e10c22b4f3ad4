"""Requests and bytes of merges and diffs on an S3 store, for a small and a large graph.

Everything is counted, nothing is timed. `--check` exits 1 when a budget is exceeded, `--quick` uses
a tenth of the rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.merge.data import FULL, QUICK, SMALL
from benchmarks.merge.reads import CELLS, Measured, broken_budgets, measure
from tests.support.s3 import S3Server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is exceeded")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, S3Server(Path(directory)) as server:
        measured = measure(server, (SMALL, QUICK if arguments.quick else FULL))
    show(measured)
    broken = broken_budgets(measured)
    for problem in broken:
        print(f"over budget: {problem}")
    return 1 if arguments.check and broken else 0


def show(measured: Measured) -> None:
    print(f"{'':<44} {'rows':>9} {'requests':>9} {'data KiB':>9} {'share':>7} {'other KiB':>9}")
    for name in next(iter(measured.values())):
        for number, (rows, readings) in enumerate(measured.items()):
            reading = readings[name]
            print(
                f"{'' if number else name:<44} {rows:>9,} {reading.requests:>9,} "
                f"{reading.data_bytes / 1024:>9,.1f} {reading.share:>7.2%} "
                f"{reading.other_bytes / 1024:>9,.1f}"
            )
    largest = measured[max(measured)]
    for name, cells in CELLS.items():
        print(f"{name}: {largest[name].requests:,} requests for {cells:,} values far apart")


if __name__ == "__main__":
    sys.exit(main())
