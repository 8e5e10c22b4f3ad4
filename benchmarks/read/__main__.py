"""Reads against other engines and against plain arrays, on one graph.

Every engine gives every answer it can, and the answers must agree. `--check` exits 1 when a target
is missed, `--quick` uses a tenth of the graph, `--keep` uses graphs again that were made before.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.read import data
from benchmarks.read.answers import Judge
from benchmarks.read.floor import Floor
from benchmarks.read.measure import Row, WrongAnswer, measure
from benchmarks.read.operations import OPERATIONS
from benchmarks.read.worker import ENGINES, Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

PEERS: Final = tuple(name for name in ENGINES if name not in ("ours", "floor"))
ROUNDS: Final = 7


def main() -> int:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as temporary:
        directory = arguments.keep or Path(temporary)
        directory = directory.absolute() / ("quick" if arguments.quick else "full")
        if not (directory / "works_at.parquet").exists():
            data.generate(directory, data.QUICK if arguments.quick else data.FULL)
        try:
            rows = _rows(directory, arguments.peers, arguments.only)
        except WrongAnswer as wrong:
            print(f"engines differ: {wrong}")
            return 1
    missed = [_miss(row) for row in rows if row.is_missed]
    for line in missed:
        print(f"missed: {line}")
    return 1 if arguments.check and missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--quick", action="store_true", help="a tenth of the graph")
    parser.add_argument("--keep", type=Path, help="make the graphs here and leave them")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=_installed())
    parser.add_argument("--only", nargs="*", help="names of operations")
    return parser.parse_args()


def _installed() -> list[str]:
    return [name for name in PEERS if importlib.util.find_spec(name)]


def _rows(directory: Path, peers: Sequence[str], only: Sequence[str] | None) -> list[Row]:
    graph = data.load(directory)
    cases = data.cases(graph)
    judge = Judge(Floor(graph, directory))
    workers = [Worker(name, directory) for name in ("ours", *peers, "floor")]
    print(f"{graph.people.num_rows:,} persons, {graph.knows.num_rows:,} edges; ms, median\n")
    print(_line(["", *(worker.name for worker in workers), "x best peer", "x floor", "target"]))
    print(_line(["---"] * (len(workers) + 4)))
    rows = []
    for operation in OPERATIONS:
        if only is None or operation.name in only:
            rows.append(measure(operation, workers, judge, cases, ROUNDS))
            print(_told(rows[-1], workers), flush=True)
    for worker in workers:
        worker.stop()
    return rows


def _told(row: Row, workers: Sequence[Worker]) -> str:
    times = (row.ms.get(worker.name) for worker in workers)
    peer = f"{row.ours / row.best_peer[1]:.2f}" if row.best_peer else "-"
    floor = f"{row.ours / row.floor:.1f}" if row.floor else "-"
    verdict = f"{_ms(row.target)}{' MISSED' if row.is_missed else ''}"
    return _line([row.operation.title, *map(_ms, times), peer, floor, verdict])


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _line(cells: Sequence[str]) -> str:
    first, *others = cells
    return f"| {first:<40} | " + " | ".join(f"{cell:>11}" for cell in others) + " |"


def _miss(row: Row) -> str:
    peer = f", {row.best_peer[0]} {_ms(row.best_peer[1])}" if row.best_peer else ""
    floor = f", floor {_ms(row.floor)}" if row.floor else ""
    return f"{row.operation.title}: {_ms(row.ours)}, target {_ms(row.target)}{peer}{floor}"


if __name__ == "__main__":
    sys.exit(main())
