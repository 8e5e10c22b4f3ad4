"""Repeats tests on a busy machine and reports how often each failed: `make test-flaky`.

Every repetition is a run of its own, with services of its own. Beside it one process per processor
does nothing but count, so that the tests get half of the machine at best.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).parent.parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--workers", type=int, default=(os.cpu_count() or 1) + 2)
    parser.add_argument("tests", nargs="+", help="paths, node ids and options of pytest")
    given, options = parser.parse_known_args()
    failed: Counter[str] = Counter()
    seen: set[str] = set()
    with busy_processors():
        for number in range(1, given.times + 1):
            outcomes = run_once([*given.tests, *options], given.workers)
            seen |= outcomes.keys()
            failures = sorted(test for test, is_good in outcomes.items() if not is_good)
            failed.update(failures)
            print(f"run {number} of {given.times}: {len(outcomes)} tests", *failures, sep="\n  ")
    for test, count in failed.most_common():
        print(f"{count} of {given.times} runs failed: {test}")
    print(f"{len(seen)} tests, {given.times} runs each: {len(failed)} tests failed at least once")
    return 1 if failed or not seen else 0


@contextlib.contextmanager
def busy_processors() -> Iterator[None]:
    """Keep every processor busy."""
    spinners = [
        multiprocessing.Process(target=_spin, daemon=True) for _ in range(os.cpu_count() or 1)
    ]
    for spinner in spinners:
        spinner.start()
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.join()


def _spin() -> None:
    while True:
        pass


def run_once(arguments: Sequence[str], workers: int) -> dict[str, bool]:
    """Whether each test passed. A run that breaks off counts as a failed test of its own."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-n", str(workers), "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, f"--junitxml={report}", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            print(done.stdout)
        if done.returncode not in (0, 1):
            return {f"pytest ended with {done.returncode}": False}
        return _outcomes(report)


def _outcomes(report: Path) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        is_good = case.find("failure") is None and case.find("error") is None
        found[name] = found.get(name, True) and is_good
    return found


if __name__ == "__main__":
    sys.exit(main())
