"""What a live platform takes: drop to publish, CPU while it is idle, storage for each publish.

Starts the platform as `make up` does, in a directory and on ports of its own, and drops small
files. Parts of a publish are taken from Dagster's records of its run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.support.live_platform import LivePlatform

if TYPE_CHECKING:
    from collections.abc import Callable

DROPS: Final = 5
PUBLISH_SECONDS: Final = 10.0
IDLE_CORES: Final = 0.10
KILOBYTES_FOR_EACH: Final = 200.0
_DAGSTER: Final = ("daemon", "code-server", "webserver")
_PATIENCE: Final = 120.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_RUN: Final = """{ runsOrError(limit: 1, filter: {pipelineName: "river_load_job"}) {
  ... on Runs { results { runId status creationTime startTime endTime } } } }"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is exceeded")
    parser.add_argument("--idle", type=float, default=300.0, help="seconds to measure the idle CPU")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        LivePlatform(Path(directory)) as platform,
    ):
        settle(platform)
        files, size = run_files(platform), stored(platform)
        seconds = statistics.median(publish_when_idle(platform, number) for number in range(DROPS))
        files, size = run_files(platform) - files, stored(platform) - size
        kilobytes = size / DROPS / 1000
        print(f"drop to publish, median of {DROPS}: {seconds:.1f} s, budget {PUBLISH_SECONDS} s")
        print(f"instance storage: {kilobytes:.0f} KB a publish, budget {KILOBYTES_FOR_EACH:.0f} KB")
        print(f"  {files / DROPS:.1f} runs a publish, each with a file of its own")
        crowded = [publish(platform, number) for number in range(DROPS, 2 * DROPS)]
        print(f"one drop after the other, median of {DROPS}: {statistics.median(crowded):.1f} s")
        settle(platform)
        cores = idle_cores(platform, arguments.idle)
        for name, share in cores.items():
            print(f"  idle {name}: {share:.3f} cores")
        idle = sum(cores[name] for name in _DAGSTER)
        print(f"idle Dagster over {arguments.idle:.0f} s: {idle:.3f} cores, budget {IDLE_CORES}")
    is_over = seconds > PUBLISH_SECONDS or idle > IDLE_CORES or kilobytes > KILOBYTES_FOR_EACH
    return 1 if arguments.check and is_over else 0


def publish_when_idle(platform: LivePlatform, number: int) -> float:
    """Publish while no run is alive: what follows from a publish is over before the next drop."""
    seconds = publish(platform, number)
    settle(platform)
    return seconds


def publish(platform: LivePlatform, number: int) -> float:
    """Drop a file and wait until it can be read; the seconds it took, and where they went."""
    name = f"bench-{number}"
    record = {
        "type": "Note",
        "data": {
            "number": name,
            "title": "At the weir",
            "text": "Clear water.",
            "recordedAt": "2031-05-01T00:00:00Z",
        },
    }
    begun = time.time()
    platform.drop(f"{name}.jsonl", record)
    loaded = platform.directory / "drops" / "_loaded" / "main" / f"{name}.jsonl"
    wait(loaded.exists)
    seconds = time.time() - begun
    run = last_run(platform)
    parts = {
        "seen by the sensor": run["creationTime"] - begun,
        "queued and started": run["startTime"] - run["creationTime"],
        "executed until it is archived": begun + seconds - run["startTime"],
    }
    text = ", ".join(f"{part} {value:.1f} s" for part, value in parts.items())
    print(f"  {name}: {seconds:.1f} s ({text})")
    return seconds


def last_run(platform: LivePlatform) -> Any:
    return platform.graphql(_RUN)["runsOrError"]["results"][0]


def settle(platform: LivePlatform) -> None:
    """Wait until no run has been alive for a while: derived assets follow the loads."""
    quiet = 0.0
    while quiet < 20.0:
        quiet = 0.0 if platform.live_runs() else quiet + 1.0
        time.sleep(1.0)


def stored(platform: LivePlatform) -> int:
    """Bytes of Dagster's databases."""
    files = (platform.directory / "dagster").rglob("*.db*")
    return sum(file.stat().st_size for file in files)


def run_files(platform: LivePlatform) -> int:
    """How many runs Dagster keeps the events of; SQLite takes 110 KB for a run without any."""
    return len(list((platform.directory / "dagster" / "history" / "runs").glob("?*-*.db")))


def idle_cores(platform: LivePlatform, seconds: float) -> dict[str, float]:
    """By service the processors it has used, with all that it has started."""
    before = cpu_seconds(platform)
    time.sleep(seconds)
    after = cpu_seconds(platform)
    return {name: (after[name] - before.get(name, 0.0)) / seconds for name in after}


def cpu_seconds(platform: LivePlatform) -> dict[str, float]:
    folder = platform.directory / "processes"
    return {file.name: _of_session(int(file.read_text())) for file in sorted(folder.iterdir())}


def _of_session(leader: int) -> float:
    ticks = 0
    for place in Path("/proc").iterdir():
        if not place.name.isdecimal():
            continue
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == leader:  # its session
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS


def wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"nothing was published in {_PATIENCE:.0f} s")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
