"""Repeats tests on a busy machine and reports how often each failed: `make test-flaky`.

Every repetition is a run of its own, with services of its own. Beside it one process per processor
does nothing but count, so that the tests get half of the machine at best. The first run finds out
which files have tests that start processes or use a service: with `--processes` only those are
repeated.
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

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).parent.parent.parent
STARTED: Final = "omnigraph.test_process_started"
"""The audit event of processes that another one starts for a test."""
_STARTS: Final = {"subprocess.Popen", "os.fork", "os.posix_spawn", STARTED}
_SERVICES: Final = {"s3_server", "spark", "cluster", "connect_server", "live_platform"}
_PROPERTY: Final = "starts_processes"
_ONLY: Final = "TEST_FLAKY_ONLY"
"""Names a list of the test files that a run repeats; all, where it is empty."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--workers", type=int, default=(os.cpu_count() or 1) + 2)
    parser.add_argument(
        "--processes", action="store_true", help="repeat only files whose tests start processes"
    )
    parser.add_argument("tests", nargs="+", help="paths, node ids and options of pytest")
    given, options = parser.parse_known_args()
    failed: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    only: list[str] = []
    with busy_processors():
        for number in range(1, given.times + 1):
            outcomes, starting = run_once([*given.tests, *options], given.workers, only)
            seen.update(outcomes.keys())
            failures = sorted(test for test, is_good in outcomes.items() if not is_good)
            failed.update(failures)
            headline = f"run {number} of {given.times}: {len(outcomes)} tests"
            print(headline, *failures, sep="\n  ", flush=True)
            if given.processes and number == 1:
                only = starting
                print(f"{len(only)} files have tests that start processes", flush=True)
    for test, count in failed.most_common():
        print(f"{count} of {given.times} runs failed: {test}")
    always = sum(count == given.times for count in seen.values())
    print(f"{always} tests, {given.times} runs each: {len(failed)} tests failed at least once")
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


def run_once(
    arguments: Sequence[str], workers: int, only: Sequence[str]
) -> tuple[dict[str, bool], list[str]]:
    """Whether each test passed, and the files of those that started processes.

    A run that breaks off counts as a failed test of its own.
    """
    with tempfile.TemporaryDirectory() as directory:
        report, listed = Path(directory) / "report.xml", Path(directory) / "only.txt"
        listed.write_text("\n".join(only))
        command = [sys.executable, "-m", "pytest", "-n", str(workers), "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, "-p", __spec__.name, f"--junitxml={report}", *arguments],
            cwd=ROOT,
            env={**os.environ, _ONLY: str(listed)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            print(done.stdout)
        if done.returncode not in (0, 1):
            return {f"pytest ended with {done.returncode}": False}, []
        return _outcomes(report)


def _outcomes(report: Path) -> tuple[dict[str, bool], list[str]]:
    found: dict[str, bool] = {}
    starting: set[str] = set()
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        is_good = case.find("failure") is None and case.find("error") is None
        found[name] = found.get(name, True) and is_good
        given = case.iterfind(f"properties/property[@name='{_PROPERTY}']")
        starting.update(property.get("value", "") for property in given)
    return found, sorted(starting)


# The plugin of the runs

_starts: list[str] = []


def pytest_configure() -> None:
    sys.addaudithook(lambda event, _: _starts.append(event) if event in _STARTS else None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    only = set(Path(os.environ[_ONLY]).read_text().splitlines())
    if only:
        others = [item for item in items if _file(item) not in only]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if _file(item) in only]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    _starts.clear()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    if _starts or _SERVICES & {*getattr(item, "fixturenames", ())}:
        item.user_properties.append((_PROPERTY, _file(item)))


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


if __name__ == "__main__":
    sys.exit(main())
