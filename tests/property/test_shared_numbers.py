"""Versions share what is kept by number: each of them reads as if it were alone.

Histories are long and random: rows come, go and are rewritten, two branches go their own ways from
one base, tables are compacted, and older versions are read again in between. Every version is
checked against plain reads of its tables, with all that others have left in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.query.typed import TextFunction
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.topology import (
    columns,
    dense,
    neighbours,
    patches,
    postings,
    row_numbers,
    text_map,
)
from omnigraph_core.topology.dense import DenseTable
from omnigraph_core.topology.memory import ByteCache
from omnigraph_core.topology.postings import postings_of
from tests.support import text_oracle
from tests.support.examples import seeds
from tests.support.linked import EDGE, KNOWS, PEOPLE, check, links
from tests.support.parts import present
from tests.support.table_writes import stage_delete_keys, stage_upsert

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.topology.row_numbers import RowNumbers

STEPS = 45
WORDS = ("bolt", "bolts", "nut", "steel", "the", "state", "of", "art", "running")
TAGS = pa.list_(pa.field("item", pa.utf8()))
PERSON = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("body", pa.utf8()),
        pa.field("age", pa.int64()),
        pa.field("is_new", pa.bool_()),
        pa.field("tags", TAGS),
        pa.field("shape", pa.list_(pa.field("item", pa.float32()), 2)),
    ]
)
SOON = (
    (row_numbers, "_LEAST_GAPS", 6),
    (patches, "_LEAST_MANY", 3),
    (neighbours, "_LEAST_WASTE", 5),
    (text_map, "_LEAST_APART", 2),
    (text_map, "_FEW", 0),
    (postings, "_LEAST_APART", 3),
    (columns, "_FEW", 2),
)
"""What is put in order only when much has changed is so after a few steps."""
LARGE = ((dense, "_SMALL", 0), (dense, "_FEW", 1), (dense, "_FEW_NEW", 3))
"""Few rows are asked for one by one."""


@dataclass(frozen=True)
class Version:
    """The tables at one time, and what is in them."""

    tables: dict[str, Table]
    people: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()


@dataclass
class History:
    """Two branches that follow from a seed, and all their versions."""

    rng: Random
    heads: list[Version]
    past: list[Version] = field(default_factory=list)
    made: int = 0

    def step(self) -> Version:
        """One branch with a change."""
        place = self.rng.randrange(len(self.heads))
        head = self.heads[place]
        change = self.rng.choice(
            [self._more_people, self._more_edges, self._rewritten, self._rewritten,
             self._fewer_people, self._fewer_edges, self._moved_edges, self._compacted]
        )  # fmt: skip
        self.past.append(head)
        self.heads[place] = change(head)
        if len(self.heads) == 1 and self.rng.random() < 0.2:
            self.heads.append(self.heads[0])
        return self.heads[place]

    def _more_people(self, version: Version) -> Version:
        ids = [self._name("p") for _ in range(self.rng.choice([1, 1, 1, 5]))]
        table = stage_append(version.tables[PEOPLE], self._rows(ids))
        return replace(_with(version, PEOPLE, table), people=(*version.people, *ids))

    def _rewritten(self, version: Version) -> Version:
        ids = self._some(version.people)
        return _with(version, PEOPLE, stage_upsert(version.tables[PEOPLE], self._rows(ids)))

    def _fewer_people(self, version: Version) -> Version:
        gone = self._some(version.people)
        table = stage_delete_keys(version.tables[PEOPLE], pa.array(gone, pa.utf8()))
        left = tuple(id for id in version.people if id not in gone)
        return replace(_with(version, PEOPLE, table), people=left)

    def _more_edges(self, version: Version) -> Version:
        ids = [self._name("k") for _ in range(self.rng.choice([1, 1, 4]))]
        table = stage_append(version.tables[KNOWS], self._edges(version, ids))
        return replace(_with(version, KNOWS, table), edges=(*version.edges, *ids))

    def _moved_edges(self, version: Version) -> Version:
        rows = self._edges(version, self._some(version.edges))
        return _with(version, KNOWS, stage_upsert(version.tables[KNOWS], rows))

    def _fewer_edges(self, version: Version) -> Version:
        gone = self._some(version.edges)
        table = stage_delete_keys(version.tables[KNOWS], pa.array(gone, pa.utf8()))
        left = tuple(id for id in version.edges if id not in gone)
        return replace(_with(version, KNOWS, table), edges=left)

    def _compacted(self, version: Version) -> Version:
        location = self.rng.choice([PEOPLE, KNOWS])
        is_due = self.rng.random() < 0.4
        return _with(version, location, compact(version.tables[location]) if is_due else None)

    def _some(self, ids: tuple[str, ...]) -> list[str]:
        return self.rng.sample(ids, min(len(ids), self.rng.choice([1, 1, 2])))

    def _name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def _rows(self, ids: list[str]) -> pa.Table:
        return pa.Table.from_pylist([self._person(id) for id in ids], PERSON)

    def _person(self, id: str) -> dict[str, Any]:
        rng = self.rng
        values = {
            "body": " ".join(rng.choices(WORDS, k=rng.randint(0, 5))),
            "age": rng.randrange(9),
            "is_new": rng.random() < 0.5,
            "tags": rng.choices(["a", "b", None], k=rng.randrange(3)),
            "shape": [rng.randrange(3), 1.0],
        }
        return {"id": id} | {n: None if rng.random() < 0.2 else v for n, v in values.items()}

    def _edges(self, version: Version, ids: list[str]) -> pa.Table:
        """Some lead to nodes that are not there, or not yet."""
        known = [*version.people, f"p{self.made + 1}", f"p{self.made + 2}", "nobody"]
        ends = [(self.rng.choice(known), self.rng.choice(known)) for _ in ids]
        rows = [{"id": id, "src": a, "dst": b} for id, (a, b) in zip(ids, ends, strict=True)]
        return pa.Table.from_pylist(rows, EDGE)


def _with(version: Version, location: str, table: Table | None) -> Version:
    """The version with a table that has changed, if it has."""
    return (
        version if table is None else replace(version, tables={**version.tables, location: table})
    )


def begun(seed: int, root: Path) -> History:
    """Some people and edges, in several fragments."""
    store = open_store(str(root))
    store.create_root()
    tables = {
        PEOPLE: create_table(store, PEOPLE, PERSON),
        KNOWS: create_table(store, KNOWS, EDGE),
    }
    history = History(Random(f"numbers {seed}"), [Version(tables)])
    for change in (history._more_people, history._more_edges) * 4:
        history.heads[0] = change(history.heads[0])
    return history


@pytest.mark.parametrize("seed", seeds(0, 4))
def test_a_version_reads_as_if_it_were_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    for module, name, value in (*(SOON if seed % 2 else ()), *(LARGE if seed % 4 > 1 else ())):
        monkeypatch.setattr(module, name, value)
    history = begun(seed, tmp_path)
    cache = ByteCache(200_000 if seed % 8 == 5 else 2**28)
    rng = Random(f"reads {seed}")
    for _ in range(STEPS):
        version = history.step()
        if rng.random() < 0.7:  # some versions nobody reads
            check_version(version, cache, rng)
        if rng.random() < 0.2:
            check_version(rng.choice(history.past), cache, rng)
    for version in history.heads:
        check_version(version, cache, rng)


def check_version(version: Version, cache: ByteCache, rng: Random) -> None:
    """A part of all there is to ask, so that different things are kept of different versions."""
    table = version.tables[PEOPLE]
    people = DenseTable(table, cache)
    expected = table.read(PERSON.names)
    asked = [_check_rows, _check_columns, _check_ids, _check_texts, _check_words]
    for question in rng.sample(asked, 3):
        question(people, expected, cache, rng)
    if rng.random() < 0.7:
        found = links(version.tables, cache)
        for direction in rng.sample([found.out, found.into, found.both], 1):
            direction()
        check(found, version.tables)


def _check_rows(people: DenseTable, expected: pa.Table, _: ByteCache, rng: Random) -> None:
    numbers = people.live_numbers()
    assert people.count == expected.num_rows == len(numbers)
    assert (np.diff(numbers) > 0).all()
    assert people.numbers_at(people.addresses_of(numbers)).tolist() == numbers.tolist()
    assert people.find_where("`age` >= 4").tolist() == [
        number
        for number, age in zip(numbers.tolist(), expected["age"].to_pylist(), strict=True)
        if age is not None and age >= 4
    ]
    _check_gaps(people.rows, rng)


def _check_gaps(rows: RowNumbers, rng: Random) -> None:
    live = {*rows.live_numbers().tolist()}
    some = np.array([rng.randrange(rows.extent + 3) for _ in range(20)], np.int32)
    assert rows.which_live(some).tolist() == [number in live for number in some.tolist()]
    assert [rows.has(number) for number in some.tolist()] == rows.which_live(some).tolist()
    assert rows.live_mask().tolist() == [number in live for number in range(rows.extent)]
    assert {*rows.spread(5).tolist()} <= live
    assert len(rows.spread(5)) == min(5, len(live))


def _check_columns(people: DenseTable, expected: pa.Table, _: ByteCache, rng: Random) -> None:
    numbers = people.live_numbers()
    for name in rng.sample(PERSON.names, 3):
        whole = expected[name].to_pylist()
        chosen = rng.choices(range(len(whole)), k=4) if whole else []
        few = people.values(name, numbers[chosen])
        assert few.to_pylist() == [whole[place] for place in chosen]
        column = people.column(name)
        assert len(column) == people.extent
        assert column.take(pa.array(numbers)).to_pylist() == whole
        assert people.values(name, None).take(pa.array(numbers)).to_pylist() == whole
        if name in ("age", "is_new") and whole:
            values, valid = people.numpy(name)
            is_there = np.ones(len(numbers), bool) if valid is None else valid[numbers]
            told = zip(values[numbers].tolist(), is_there.tolist(), strict=True)
            assert [value if known else None for value, known in told] == whole


def _check_ids(people: DenseTable, expected: pa.Table, _: ByteCache, rng: Random) -> None:
    numbers = people.live_numbers().tolist()
    known = dict(zip(expected["id"].to_pylist(), numbers, strict=True))
    for _ in range(3):  # also when it was asked so often that the ids are kept
        wanted = [f"p{rng.randrange(120)}" for _ in range(6)]
        assert [people.number_of(id) for id in wanted] == [known.get(id, -1) for id in wanted]
        found = people.numbers_of(pa.array([*wanted, None], pa.utf8())).tolist()
        assert found == [*(known.get(id, -1) for id in wanted), -1]


def _check_texts(people: DenseTable, expected: pa.Table, _: ByteCache, rng: Random) -> None:
    numbers, bodies = people.live_numbers(), expected["body"].to_pylist()
    codes, texts = people.codes("body")
    assert len({*texts.to_pylist()}) == len(texts)
    told = [None if code < 0 else texts[code].as_py() for code in codes[numbers].tolist()]
    assert told == bodies
    if people.extent:
        wanted = rng.choice([*bodies, "none", ""]) or ""
        found = people.text_map("body").numbers_with(people.column("body"), wanted, people.rows)
        places = [place for place, body in enumerate(bodies) if body == wanted]
        assert found.tolist() == numbers[places].tolist()
        sizes = people.derived("size", "body", lambda start: _sizes(people, start))
        assert sizes[numbers].tolist() == [len(body or "") for body in bodies]


def _sizes(people: DenseTable, start: int) -> np.ndarray:
    return np.array([len(body or "") for body in people.column("body").to_pylist()[start:]])


def _check_words(people: DenseTable, expected: pa.Table, cache: ByteCache, rng: Random) -> None:
    numbers, bodies = people.live_numbers(), expected["body"].to_pylist()
    words = postings_of(people, "body", cache, None)
    query = " ".join(rng.choices(WORDS, k=2))
    for function in TextFunction:
        mask = words.matching(function, query, 1)
        told = [text_oracle.is_match(function, body, query, 1) for body in bodies]
        assert mask[numbers].tolist() == told
        assert np.count_nonzero(mask) == sum(told)
    hits, scores = words.bm25(query)
    wanted = text_oracle.bm25(bodies, query)
    assert hits.tolist() == [int(numbers[row]) for row in sorted(wanted)]
    assert scores == pytest.approx([wanted[row] for row in sorted(wanted)], rel=1e-12)


def test_a_hot_row_is_found_among_all_its_former_ones(tmp_path: Path) -> None:
    """One row is rewritten again and again: memory and numbers stay bounded, answers right."""
    history = begun(1, tmp_path)
    version, cache = history.heads[0], ByteCache(2**28)
    id = version.people[0]
    extents = []
    for age in range(60):
        row = pa.Table.from_pylist([{"id": id, "age": age}], PERSON)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_numbers, "_LEAST_GAPS", 20)
            table = present(stage_upsert(version.tables[PEOPLE], row))
            version = replace(version, tables={**version.tables, PEOPLE: table})
            people = DenseTable(table, cache)
            number = people.number_of(id)
            assert people.values("age", np.array([number])).to_pylist() == [age]
            extents.append(people.extent - people.count)
    assert max(extents) <= 20
    assert extents.count(0) >= 2, "now and then rows are numbered anew"
