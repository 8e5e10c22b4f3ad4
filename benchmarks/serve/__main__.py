"""A real server under load: what HTTP adds to a read, 16 clients that read and write, two workers.

Times are compared only with others of the same run. `--check` exits 1 when a budget is exceeded,
`--quick` uses a small graph and a few seconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.serve.report import FULL, QUICK, broken_budgets, measure, show


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is exceeded")
    parser.add_argument("--quick", action="store_true", help="a small graph, a few seconds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        report = measure(Path(directory), QUICK if arguments.quick else FULL)
    show(report)
    broken = broken_budgets(report)
    for problem in broken:
        print(f"over budget: {problem}")
    return 1 if arguments.check and broken else 0


if __name__ == "__main__":
    sys.exit(main())
