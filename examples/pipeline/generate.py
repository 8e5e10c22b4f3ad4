"""Makes what the pipeline starts from: the Parquet file of a shipping office, and an empty graph.

python -m examples.pipeline.generate [FOLDER]

The folder is by default that of the variable `PIPELINE_FOLDER`, as for the definitions, or `build`.
"""

from __future__ import annotations

import os
import random
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import polars as pl

from omnigraph_core.engine.omnigraph import Omnigraph

FOLDER: Final = Path(os.environ.get("PIPELINE_FOLDER", Path(__file__).parent / "build"))
PORTS: Final = {"Alder": "Norland", "Birk": "Norland", "Cove": "Sudland", "Dune": "Sudland"}
SHIPS: Final = {"Gannet": 900.0, "Heron": 1200.0, "Ibis": 400.0}
_FIRST: Final = date(2031, 3, 1)


def write_sailings(path: Path, *, count: int = 200, seed: int = 7) -> None:
    """Write sailings as the office exports them: names in any case, some twice, some cancelled."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        start, end = draw.sample(sorted(PORTS), 2)
        ship = draw.choice(sorted(SHIPS))
        row = {
            "number": number,
            "ship": draw.choice([ship, ship.upper(), f" {ship}"]),
            "capacity": SHIPS[ship],
            "start": draw.choice([start, start.lower()]),
            "start_country": PORTS[start],
            "end": end,
            "end_country": PORTS[end],
            "day": _FIRST + timedelta(days=number // 4),
            "tonnes": round(draw.uniform(0.1, 1.0) * SHIPS[ship], 1),
            "cancelled": draw.random() < 0.1,
        }
        rows += [row] * draw.choice([1, 1, 1, 2])
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows).write_parquet(path)


def make_graph(uri: str) -> None:
    """Make an empty graph with the schema of this folder."""
    schema = (Path(__file__).parent / "schema.pg").read_text()
    Omnigraph.init(uri, schema).close()


def main(folder: Path) -> None:
    write_sailings(folder / "sailings.parquet")
    if not (folder / "graph").exists():
        make_graph(str(folder / "graph"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
