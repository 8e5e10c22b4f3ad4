"""Indexes on a chain of detached versions answer as a scan would, whatever happened before.

If one of these falls, results would depend on which indexes exist: then that kind of index, or
more than one segment of it, or detached commits as such, cannot be used.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import lance
import numpy as np
import pyarrow as pa
from lance.query import FullTextOperator, MatchQuery, PhraseQuery

from tests.guards.lance import chain
from tests.support.cases import each
from tests.support.examples import LONG

if TYPE_CHECKING:
    from pathlib import Path

    from lance.dataset import LanceDataset

SEEDS: Final = (1, 2, 3, 4, 5) if LONG else (1,)
STEPS: Final = 40
NEIGHBOURS: Final = 10
DIMENSION: Final = 8
ROWS_FOR_PQ: Final = 256
WORDS: Final = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")
VECTOR: Final = pa.list_(pa.float32(), DIMENSION)
SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("kind", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("body", pa.string()),
        ("exact", VECTOR),
        ("coded", VECTOR),
    ]
)
INDEXES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "id": ("BTREE", {}),
    "kind": ("BITMAP", {}),
    "tags": ("LABEL_LIST", {}),
    "body": ("INVERTED", {"with_position": True, "stem": False, "remove_stop_words": False}),
    "exact": ("IVF_FLAT", {"metric": "L2", "num_partitions": 3}),
    "coded": ("IVF_PQ", {"metric": "L2", "num_partitions": 1, "num_sub_vectors": 4}),
}
LEAST_ROWS: Final = {"IVF_FLAT": 3, "IVF_PQ": ROWS_FOR_PQ}
"""What a segment needs to be built at all; fewer rows stay uncovered and are scanned."""

Row = dict[str, Any]


@dataclass(slots=True)
class Run:
    """A table beside what it should hold."""

    random: random.Random
    dataset: LanceDataset
    rows: dict[str, Row] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)

    def new_rows(self, ids: list[str]) -> list[Row]:
        return [
            {
                "id": key,
                "kind": self.random.choice("abc"),
                "tags": self.random.sample("xyz", self.random.randrange(3)),
                "body": " ".join(self.random.choices(WORDS, k=3)),
                "exact": [self.random.gauss(0, 1) for _ in range(DIMENSION)],
                "coded": [self.random.gauss(0, 1) for _ in range(DIMENSION)],
            }
            for key in ids
        ]

    def unused_ids(self, count: int) -> list[str]:
        start = len(self.taken)
        self.taken += [f"part-{number:05}" for number in range(start, start + count)]
        return self.taken[start:]

    def some_ids(self, count: int) -> list[str]:
        return self.random.sample(sorted(self.rows), min(count, len(self.rows)))


@each("seed", SEEDS)
def test_indexes_agree_with_a_scan(seed: int, tmp_path: Path) -> None:
    """Results may not depend on which indexes exist: the executor uses them without a check."""
    run = Run(random.Random(seed), chain.create(tmp_path / "parts", SCHEMA))
    for _ in range(2):
        append(run, ROWS_FOR_PQ + 50)
        for column in INDEXES:
            extend(run, column)
    assert {
        column: len(chain.segments(run.dataset, column)) for column in INDEXES
    } == dict.fromkeys(INDEXES, 2)
    steps = [append, append, upsert, upsert, upsert, delete, delete, extend, extend, rebuild]
    for number in range(STEPS):
        step = run.random.choice([*steps, compact])
        step(run)
        check(run, f"seed {seed}, step {number}: {step.__name__}")
    assert lance.dataset(str(tmp_path / "parts")).version == 1


def append(run: Run, count: int | None = None) -> None:
    rows = run.new_rows(run.unused_ids(count or run.random.choice([1, 5, 40, ROWS_FOR_PQ])))
    run.dataset = chain.append(run.dataset, pa.Table.from_pylist(rows, SCHEMA))
    run.rows |= {row["id"]: row for row in rows}


def upsert(run: Run) -> None:
    ids = run.some_ids(run.random.randint(1, 30)) + run.unused_ids(run.random.randrange(5))
    rows = run.new_rows(ids)
    run.dataset = chain.upsert(run.dataset, pa.Table.from_pylist(rows, SCHEMA))
    run.rows |= {row["id"]: row for row in rows}


def delete(run: Run) -> None:
    ids = run.some_ids(run.random.randint(1, 20))
    run.dataset = chain.delete(run.dataset, ids)
    run.rows = {key: row for key, row in run.rows.items() if key not in ids}


def compact(run: Run) -> None:
    run.dataset = chain.compact(run.dataset)


def extend(run: Run, column: str | None = None) -> None:
    """One more segment, over what no segment covers yet."""
    column = column or run.random.choice(list(INDEXES))
    kind, options = INDEXES[column]
    fragments = chain.uncovered(run.dataset, column)
    rows = sum(run.dataset.get_fragment(number).count_rows() for number in fragments)
    if not fragments or rows < LEAST_ROWS.get(kind, 0):
        return
    run.dataset = chain.index(run.dataset, column, kind, fragments, **options)


def rebuild(run: Run) -> None:
    """One segment in place of all."""
    column = run.random.choice(list(INDEXES))
    kind, options = INDEXES[column]
    run.dataset = chain.reindex(run.dataset, column, kind, **options)


def check(run: Run, where: str) -> None:
    assert chain.ids_of(run.dataset) == sorted(run.rows), where
    check_filters(run, where)
    check_texts(run, where)
    for column in ("exact", "coded"):
        check_neighbours(run, column, where)


def check_filters(run: Run, where: str) -> None:
    pivot, *several = run.some_ids(5)
    listed = ", ".join(f"'{key}'" for key in several)
    kind, tag = run.random.choice("abc"), run.random.choice("xyz")
    claims = {
        f"id = '{pivot}'": lambda row: row["id"] == pivot,
        f"id IN ({listed})": lambda row: row["id"] in several,
        f"id < '{pivot}'": lambda row: row["id"] < pivot,
        f"kind = '{kind}'": lambda row: row["kind"] == kind,
        f"kind != '{kind}'": lambda row: row["kind"] != kind,
        f"array_has_any(tags, ['{tag}'])": lambda row: tag in row["tags"],
    }
    for text, claim in claims.items():
        found = run.dataset.to_table(columns=["id"], filter=text)["id"].to_pylist()
        assert sorted(found) == matching(run, claim), f"{where}: {text}"


def check_texts(run: Run, where: str) -> None:
    first, second = run.random.sample(WORDS, 2)
    claims = [
        (MatchQuery(first, "body"), lambda row: first in row["body"]),
        (
            MatchQuery(f"{first} {second}", "body", operator=FullTextOperator.AND),
            lambda row: first in row["body"] and second in row["body"],
        ),
        (PhraseQuery(f"{first} {second}", "body"), lambda row: f"{first} {second}" in row["body"]),
    ]
    for query, claim in claims:
        found = run.dataset.to_table(columns=["id", "_score"], full_text_query=query)
        assert sorted(found["id"].to_pylist()) == matching(run, claim), f"{where}: {query}"


def check_neighbours(run: Run, column: str, where: str) -> None:
    """Every partition is probed and every candidate re-ranked: then the answer is exact."""
    target = np.array([run.random.gauss(0, 1) for _ in range(DIMENSION)], dtype=np.float32)
    kind = run.random.choice("abc")
    for text, claim in ((None, lambda _: True), (f"kind = '{kind}'", lambda r: r["kind"] == kind)):
        wanted = {
            "column": column,
            "q": target,
            "k": NEIGHBOURS,
            "metric": "L2",
            "nprobes": 100,
            "refine_factor": 500,
        }
        found = run.dataset.to_table(
            columns=["id", "_distance"], nearest=wanted, filter=text, prefilter=True
        )
        expected = nearest(run, column, target, matching(run, claim))
        assert found["id"].to_pylist() == expected, f"{where}: neighbours by {column}, {text}"


def matching(run: Run, claim: Any) -> list[str]:
    return sorted(key for key, row in run.rows.items() if claim(row))


def nearest(run: Run, column: str, target: np.ndarray, ids: list[str]) -> list[str]:
    vectors = np.array([run.rows[key][column] for key in ids], dtype=np.float32)
    order = np.argsort(((vectors - target) ** 2).sum(axis=1), kind="stable")
    return [ids[position] for position in order[:NEIGHBOURS]]
