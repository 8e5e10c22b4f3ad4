"""Loads on Spark far beyond this machine: what the driver sends, holds and leaves beside a graph.

A load is planned and put together for inputs of 100 GB, 1 TB and 10 TB. The input is a file with
one record and nothing behind it. One part of real records is read by the real task, and what it
returns stands for every part. Everything the driver does is done: it packs all tasks, keeps all
descriptions, stages all files and commits. `--rows` loads so many rows in earnest, which Spark
makes up while it goes. `--check` exits 1 when a budget is exceeded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

SIZES: Final = {"100 GB": 100 * 10**9, "1 TB": 10**12, "10 TB": 10**13}
_MOST_PAYLOAD: Final = 100e6
"""Bytes of all tasks of a load of 1 TB."""
_MOST_MEMORY: Final = 1e9
"""Of the driver at 1 TB."""
_MOST_GROWTH: Final = 1.1
"""Of objects per GB of input, from 1 TB to 10 TB."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is exceeded")
    parser.add_argument("--rows", type=int, default=0, help="load so many rows in earnest")
    arguments = parser.parse_args()
    if arguments.rows:
        _print_load(_done("load", arguments.rows))
        return 0
    found = {name: _done("plan", size) for name, size in SIZES.items()}
    print("input       parts        tasks   closures     driver  objects/GB")
    for name, plan in found.items():
        print(
            f"{name:<8} {plan['parts']:>8,} {plan['payload'] / 1e6:>9,.1f} MB"
            f" {plan['closures'] / 1e3:>7,.1f} KB {plan['memory'] / 1e6:>7,.0f} MB"
            f" {plan['objects_per_gb']:>11.2f}"
        )
    broken = list(_broken(found["1 TB"], found["10 TB"]))
    for problem in broken:
        print(f"over budget: {problem}")
    return 1 if arguments.check and broken else 0


def _broken(large: dict[str, float], larger: dict[str, float]) -> list[str]:
    broken = []
    if large["payload"] + large["closures"] > _MOST_PAYLOAD:
        broken.append(f"{large['payload'] / 1e6:,.0f} MB are sent to tasks at 1 TB")
    if large["memory"] > _MOST_MEMORY:
        broken.append(f"the driver holds {large['memory'] / 1e6:,.0f} MB at 1 TB")
    growth = larger["objects_per_gb"] / large["objects_per_gb"]
    if growth > _MOST_GROWTH:
        broken.append(f"objects per GB grow by {growth:.2f} from 1 TB to 10 TB")
    return broken


def _print_load(measured: dict[str, float]) -> None:
    rows, seconds = measured["rows"], measured["seconds"]
    print(f"{rows:,} rows in {seconds:,.0f} s: {rows / seconds:,.0f} rows/s")
    print(f"peak memory of the driver's Python: {measured['driver'] / 1e6:,.0f} MB")
    print(
        f"peak memory of the driver, its Java and all its workers: {measured['tree'] / 1e6:,.0f} MB"
    )


def _done(work: str, amount: int) -> dict[str, float]:
    """What a process of its own has measured: its memory is that of one load."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.spark_scale.work", work, str(amount), directory],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent.parent,
        )
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


if __name__ == "__main__":
    sys.exit(main())
