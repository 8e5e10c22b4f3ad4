"""Single inserts and an upsert beside the Lance calls they consist of.

Inserts run on graphs of two sizes whose indexes are complete. The bare side looks up the ids the
insert has to look up, writes the row, and replaces the catalog's image with itself.
"""

from __future__ import annotations

import itertools
import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

import lance
import numpy as np
import pyarrow as pa
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

from benchmarks.ratios import Figure, Repetitions, compared, in_turns, settled
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.ids import new_ulid
from omnigraph_core.storage.dataset import DATA_STORAGE_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FULL: Final = Repetitions(rounds=6, per_round=16, processes=1)
QUICK: Final = Repetitions(rounds=2, per_round=8, processes=1)
SMALL: Final = 10_000
LARGE: Final = 1_000_000
BASE: Final = 100_000
UPSERTED: Final = 10_000

SCHEMA: Final = """
node Part { sku: String @key  name: String?  stock: I64? }
edge Fits: Part -> Part { note: String? }
"""
NODE: Final = 'query add($sku: String) { insert Part { sku: $sku, name: "new", stock: 1 } }'
EDGE: Final = 'query link($a: String, $b: String) { insert Fits { from: $a, to: $b, note: "new" } }'


def measure(directory: Path, often: Repetitions, *, large: int = LARGE) -> list[Figure]:
    """Every figure, on graphs made below a directory."""
    shelf = _Shelf(directory)
    return [
        settled(lambda: _against_bare(shelf, "node", SMALL, often)),
        settled(lambda: _against_bare(shelf, "edge", SMALL, often)),
        settled(lambda: _against_bare(shelf, "node", large, often)),
        settled(lambda: _against_bare(shelf, "edge", large, often)),
        settled(lambda: _flat(shelf, "node", large, often)),
        settled(lambda: _flat(shelf, "edge", large, often)),
        settled(lambda: _upsert(shelf, often)),
    ]


class _Shelf:
    """Copies of a graph of so many parts and edges, with complete indexes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = itertools.count()

    def take(self, rows: int) -> Omnigraph:
        original = self._directory / f"rows-{rows}"
        if not original.exists():
            og = Omnigraph.init(str(original), SCHEMA)
            og.load(parts(range(rows)), type="Part", mode="append")
            og.load(fits(rows), type="Fits", mode="append")
            og.optimize()
        copy = self._directory / f"copy-{next(self._numbers)}"
        shutil.copytree(original, copy)
        return Omnigraph.open(str(copy))


def parts(numbers: Sequence[int], name: str = "part") -> pa.Table:
    skus = pa.array([f"sku-{number:07d}" for number in numbers])
    stock = pa.array(np.arange(len(skus)))
    return pa.table({"sku": skus, "name": pa.array([name] * len(skus)), "stock": stock})


def fits(rows: int) -> pa.Table:
    chance = np.random.default_rng(1)
    ends = (chance.integers(0, rows, rows) for _ in range(2))
    src, dst = ([f"sku-{number:07d}" for number in end] for end in ends)
    return pa.table({"from": src, "to": dst, "note": ["edge"] * rows})


def _insert(og: Omnigraph, kind: str) -> None:
    if kind == "node":
        og.mutate(NODE, {"sku": new_ulid()})
    else:
        og.mutate(EDGE, {"a": "sku-0000007", "b": "sku-0000011"})


def _against_bare(shelf: _Shelf, kind: str, rows: int, often: Repetitions) -> Figure:
    pairs = []
    for _ in range(often.rounds):
        ours, bare = shelf.take(rows), BareInserts(shelf.take(rows))
        _insert(ours, kind)
        bare.insert(kind)
        pairs += in_turns(partial(_insert, ours, kind), partial(bare.insert, kind), often)
    return compared(
        f"insert one {kind} beside {rows:,}", "its Lance calls alone", pairs, budget=2.0
    )


def _flat(shelf: _Shelf, kind: str, large: int, often: Repetitions) -> Figure:
    pairs = []
    for _ in range(often.rounds):
        much, little = shelf.take(large), shelf.take(SMALL)
        _insert(much, kind)
        _insert(little, kind)
        pairs += in_turns(partial(_insert, much, kind), partial(_insert, little, kind), often)
    return compared(f"insert one {kind} beside {large:,}", f"beside {SMALL:,}", pairs, budget=1.3)


def _upsert(shelf: _Shelf, often: Repetitions) -> Figure:
    changes = parts(range(BASE - UPSERTED // 2, BASE + UPSERTED // 2), name="changed")
    pairs = []
    for _ in range(often.rounds):
        ours, bare = shelf.take(BASE), BareInserts(shelf.take(BASE))
        once = Repetitions(1, 2, 1)
        pairs += in_turns(
            lambda ours=ours: ours.load(changes, type="Part"),
            lambda bare=bare: bare.upsert(changes),
            once,
        )
    return compared(f"upsert {UPSERTED:,} into {BASE:,}", "bare merge_insert", pairs, budget=2.0)


class BareInserts:
    """The datasets of a graph; from here on only this writes them."""

    def __init__(self, og: Omnigraph) -> None:
        self._root = og.uri
        self._session = lance.Session()
        snapshot = og.snapshot()
        self._places = {
            key: (snapshot.table(key).location, snapshot.table(key).physical_version)
            for key in ("node:Part", "edge:Fits")
        }

    def insert(self, kind: str) -> None:
        if kind == "node":
            sku = new_ulid()
            self._look_up([sku])
            row = {"id": [sku], "sku": [sku], "name": ["new"], "stock": [1]}
            self._append("node:Part", row)
        else:
            ends = ["sku-0000007", "sku-0000011"]
            self._look_up(ends)
            row = {"id": [new_ulid()], "src": ends[:1], "dst": ends[1:], "note": ["new"]}
            self._append("edge:Fits", row)
        self._rewrite_image()

    def upsert(self, rows: pa.Table) -> None:
        dataset = self._open("node:Part")
        rows = rows.add_column(0, "id", rows["sku"]).cast(dataset.schema)
        merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        transaction, _ = merge.execute_uncommitted(rows)
        self._commit("node:Part", dataset, transaction.operation)

    def _open(self, key: str) -> LanceDataset:
        location, version = self._places[key]
        return lance.dataset(f"{self._root}/{location}", version=version, session=self._session)

    def _look_up(self, ids: list[str]) -> None:
        listed = ", ".join(f"'{id}'" for id in ids)
        self._open("node:Part").to_table(columns=["id"], filter=f"`id` IN ({listed})")

    def _append(self, key: str, row: dict[str, list[object]]) -> None:
        dataset = self._open(key)
        written = write_fragments(pa.table(row, schema=dataset.schema), dataset, mode="append")
        self._commit(key, dataset, LanceOperation.Append(written))

    def _commit(self, key: str, dataset: LanceDataset, operation: LanceOperation) -> None:
        transaction = Transaction(dataset.version, operation)
        done = LanceDataset.commit(dataset, transaction, detached=True)
        self._places[key] = (self._places[key][0], done.version)

    def _rewrite_image(self) -> None:
        newest = lance.dataset(f"{self._root}/__manifest")
        image = newest.to_table()
        written = write_fragments(
            image, newest, mode="overwrite", data_storage_version=DATA_STORAGE_VERSION
        )
        operation = LanceOperation.Overwrite(image.schema, list(written))
        LanceDataset.commit(newest, Transaction(newest.version, operation), max_retries=0)
