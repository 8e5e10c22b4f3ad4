"""Repeats tests on a busy machine and reports how often each failed: `make test-flaky`.

A run repeats its tests several times: services of the run start once, fixtures of packages and
modules start for every repetition. The load beside it is one process per processor that does
nothing but count, or with `--beside` further runs, each of which repeats the tests too. With
`--processes` the first run finds the tests that start processes or use a service, and only those
are repeated.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

ROOT: Final = Path(__file__).parent.parent.parent
STARTED: Final = "omnigraph.test_process_started"
"""The audit event of processes that another one starts for a test."""
_STARTS: Final = {"subprocess.Popen", "os.fork", "os.posix_spawn", STARTED}
_STARTING: Final = "starts_processes"
_ONLY: Final = "TEST_FLAKY_ONLY"
"""Names a file that lists the tests which a run repeats; all, where it is empty."""
_ROUNDS: Final = "TEST_FLAKY_ROUNDS"
"""How often a run repeats its tests."""
_ROUND: Final = "_round_of_repetition"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="how often each test is run")
    parser.add_argument(
        "--rounds",
        type=int,
        default=2,
        help="how often a run repeats its tests; each Python worker of Spark that a test kills "
        "leaves 64 MB in its Java process, which ends after some fifteen",
    )
    parser.add_argument(
        "--beside",
        type=int,
        default=0,
        help="runs beside each run, in place of the processes that count; a run with Spark takes "
        "some 7 GB of memory",
    )
    parser.add_argument("--workers", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument(
        "--processes", action="store_true", help="repeat only tests that start processes"
    )
    parser.add_argument("--list", type=Path, help="keeps what `--processes` found for later calls")
    parser.add_argument("tests", nargs="+", help="paths, node ids and options of pytest")
    given, options = parser.parse_known_args()
    failed: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    only: list[str] = []
    if given.list is not None and given.list.exists():
        only = given.list.read_text().splitlines()
    left = given.times
    load = contextlib.nullcontext() if given.beside else busy_processors()
    with load, ThreadPoolExecutor(1 + given.beside) as pool:
        while left > 0:
            is_first = given.processes and not only
            rounds = [1] if is_first else shares(left, given.rounds, 1 + given.beside)
            arguments = (given.tests + options, given.workers, only)
            runs = [one.result() for one in [pool.submit(run_once, *arguments, n) for n in rounds]]
            for run in runs:
                passed.update(run.passed)
                failed.update(run.failed)
            left -= sum(rounds)
            run = runs[0]
            count = len(run.passed.keys() | run.failed.keys())
            headline = f"{count} tests, {sum(rounds)} times each; {left} times left"
            names = sorted({name for run in runs for name in run.failed})
            print(headline, *names, sep="\n  ", flush=True)
            if given.processes and not only:
                only = run.starting
                print(f"{len(only)} tests start processes", flush=True)
                if not only:
                    break
                if given.list is not None:
                    given.list.write_text("\n".join(only))
    for test, count in failed.most_common():
        print(f"{count} of {given.times} repetitions failed: {test}")
    always = sum(count == given.times for count in passed.values())
    print(f"{always} tests passed {given.times} times, {len(failed)} failed at least once")
    return 1 if failed or not always else 0


def shares(left: int, at_most: int, runs: int) -> list[int]:
    """How often each of several runs repeats its tests."""
    found: list[int] = []
    while left > 0 and len(found) < runs:
        found.append(min(at_most, left))
        left -= found[-1]
    return found


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


@dataclass(slots=True)
class Run:
    """How often each test passed and failed, and which tests started processes."""

    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    starting: list[str] = field(default_factory=list)


def run_once(arguments: Sequence[str], workers: int, only: Sequence[str], rounds: int) -> Run:
    """Repeat tests in one run of pytest. One that breaks off counts as a failed test."""
    with tempfile.TemporaryDirectory() as directory:
        report, listed = Path(directory) / "report.xml", Path(directory) / "only.txt"
        listed.write_text("\n".join(only))
        command = [sys.executable, "-m", "pytest", "-n", str(workers), "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, "-p", __spec__.name, f"--junitxml={report}", *arguments],
            cwd=ROOT,
            env={**os.environ, _ONLY: str(listed), _ROUNDS: str(rounds)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            print(done.stdout)
        if done.returncode not in (0, 1):
            return Run(failed=Counter([f"pytest ended with {done.returncode}"]))
        return _read_report(report)


def _read_report(report: Path) -> Run:
    run = Run()
    seen: dict[str, bool] = {}
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        is_good = case.find("failure") is None and case.find("error") is None
        seen[name] = seen.get(name, True) and is_good
        given = case.iterfind(f"properties/property[@name='{_STARTING}']")
        run.starting += [property.get("value", "") for property in given]
    for name, is_good in seen.items():
        (run.passed if is_good else run.failed)[_without_round(name)] += 1
    return run


# The plugin of the runs

_starts: list[str] = []
_starting_fixtures: set[object] = set()


def pytest_configure() -> None:
    sys.addaudithook(lambda event, _: _starts.append(event) if event in _STARTS else None)


@pytest.fixture
def _round_of_repetition(request: pytest.FixtureRequest) -> object:
    return request.param


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    rounds = int(os.environ[_ROUNDS])
    if rounds > 1:
        metafunc.fixturenames.append(_ROUND)
        names = [f"round{number}" for number in range(rounds)]
        metafunc.parametrize(_ROUND, range(rounds), ids=names, indirect=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    only = set(Path(os.environ[_ONLY]).read_text().splitlines())
    if only:
        config.hook.pytest_deselected(items=[item for item in items if _name(item) not in only])
        items[:] = [item for item in items if _name(item) in only]
    items.sort(key=round_of)


def round_of(item: pytest.Item) -> int:
    """The number of the repetition that an item belongs to."""
    return int(item.callspec.params.get(_ROUND, 0)) if hasattr(item, "callspec") else 0


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    before = len(_starts)
    try:
        return (yield)
    finally:
        if len(_starts) > before:
            _starting_fixtures.add(fixturedef)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    _starts.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Note whether a test started processes; a repetition ends with the fixtures of its modules."""
    result = yield
    info = getattr(item, "_fixtureinfo", None)
    used = {one for found in info.name2fixturedefs.values() for one in found} if info else set()
    if _starts or used & _starting_fixtures:
        item.user_properties.append((_STARTING, _name(item)))
    if nextitem is not None and round_of(item) != round_of(nextitem):
        item.session._setupstate.teardown_exact(item.session)
    return result


def _name(item: pytest.Item) -> str:
    return _without_round(item.nodeid)


def _without_round(name: str) -> str:
    return re.sub(r"\[round\d+\]$|(?<=\[)round\d+-|-round\d+(?=[-\]])", "", name)


if __name__ == "__main__":
    sys.exit(main())
