"""The words of real tables: like Lance's own index, from any version, out of any cache or file."""

from __future__ import annotations

import random
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.constants import Constant
from omnigraph_core.query.typed import TextFunction
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.derived import DerivedFiles
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.topology import postings as finding
from omnigraph_core.topology.dense import DenseTable
from omnigraph_core.topology.memory import ByteCache
from omnigraph_core.topology.postings import Postings, postings_of
from tests.support import text_oracle
from tests.support.parts import LOCATION, new_table, present, rows
from tests.support.table_writes import (
    add_null_column,
    drop_column,
    rename_column,
    stage_delete_keys,
    stage_upsert,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.storage.dataset import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("body", pa.utf8()),
        pa.field("note", pa.utf8()),
    ]
)
BY_WORD = IndexRequest("body", SegmentKind.INVERTED, "body_inverted")
WORDS = (
    *("bolt", "bolts", "Bolted", "nut", "steel", "the", "of", "and", "state", "art", "running"),
    *("naïve", "naive", "Köln", "koln", "x1", "-", "y" * 39, "y" * 41, "caf\u00e9\u2019s"),
)


def texts(count: int, seed: int) -> list[str | None]:
    chance = random.Random(seed)
    return [
        None if chance.random() < 0.1 else " ".join(chance.choices(WORDS, k=chance.randint(0, 9)))
        for _ in range(count)
    ]


def articles(numbers: Iterable[int], seed: int = 1) -> pa.Table:
    listed = list(numbers)
    bodies = texts(len(listed), seed)
    return rows(
        [
            {"id": str(number), "body": body, "note": f"note{number}"}
            for number, body in zip(listed, bodies, strict=True)
        ],
        SCHEMA,
    )


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return present(stage_append(new_table(tmp_path / "graph", SCHEMA), articles(range(40))))


@pytest.fixture
def kept_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are kept for tables of any size."""
    monkeypatch.setattr(finding, "DERIVED_MIN_ROWS", Constant("derived_min_rows", 1, "any"))


def words(table: Table, cache: ByteCache, column: str = "body") -> Postings:
    return postings_of(DenseTable(table, cache), column, cache, DerivedFiles(table.store))


def new_cache() -> ByteCache:
    return ByteCache(1 << 26)


def check_answers(found: Postings, table: Table, column: str = "body") -> None:
    """Every kind of search, against the texts that the table has."""
    bodies = table.read([column]).column(column).to_pylist()
    check_answers_to(found, bodies)


def check_answers_to(found: Postings, bodies: list[str | None]) -> None:
    numbers = found.rows.live_numbers().tolist()
    for query in ("bolts of steel", "state of the art", "naive", "kolm", "y" * 39, "note7", "the"):
        for function in TextFunction:
            told = [text_oracle.is_match(function, body, query, 1) for body in bodies]
            mask = found.matching(function, query, 1)
            assert mask[numbers].tolist() == told
            assert not mask[found.rows.gaps].any()
        expected = text_oracle.bm25(bodies, query)
        hits, scores = found.bm25(query)
        assert hits.tolist() == [numbers[row] for row in sorted(expected)]
        assert scores == pytest.approx([expected[row] for row in sorted(expected)], rel=1e-12)
        assert astuple(found.statistics(query)) == text_oracle.statistics(bodies, query)


def remove_data(table: Table) -> list[Path]:
    """Take the rows of a table away; what is still known of them must come from elsewhere."""
    files = list(Path(table.store.root.text, LOCATION, "data").rglob("*.lance"))
    for file in files:
        file.unlink()
    return files


def derived_files(table: Table) -> list[Path]:
    return sorted(Path(table.store.root.text, "_derived").rglob("*.arrays"))


def test_hits_are_those_of_lance(table: Table) -> None:
    """The index covers a part of the rows, Lance scans the others."""
    table = present(stage_index(table, BY_WORD))
    table = present(stage_append(table, articles(range(100, 130), seed=2)))
    found = words(table, new_cache())
    ids = np.array(table.read(["id"]).column("id").to_pylist())
    chance = random.Random(3)
    for _ in range(40):
        query = " ".join(chance.choices(WORDS, k=chance.randint(1, 4)))
        hits = table.dataset.to_table(
            columns=["id", "_score"], full_text_query={"columns": ["body"], "query": query}
        )
        mine = ids[found.matching(TextFunction.SEARCH, query, 0)].tolist()
        assert sorted(mine) == sorted(hits.column("id").to_pylist())


def test_scores_are_those_of_lance_where_it_has_indexed_all_texts(tmp_path: Path) -> None:
    """Lance does not count texts without words as documents: here each has one."""
    bodies = [f"{body} hinge" for body in texts(80, 5)]
    listed = [{"id": str(place), "body": body} for place, body in enumerate(bodies)]
    table = present(stage_append(new_table(tmp_path / "graph", SCHEMA), rows(listed, SCHEMA)))
    table = present(stage_index(table, BY_WORD))
    found = words(table, new_cache())
    for query in ("bolt", "steel nut", "state running koln"):
        hits = table.dataset.to_table(
            columns=["id", "_score"], full_text_query={"columns": ["body"], "query": query}
        )
        theirs = dict(zip(hits.column(0).to_pylist(), hits.column(1).to_pylist(), strict=True))
        mine = {str(row): score for row, score in zip(*found.bm25(query), strict=True)}
        assert mine == pytest.approx(theirs, rel=1e-5)


@pytest.mark.usefixtures("kept_files")
@pytest.mark.parametrize("is_warm", [True, False], ids=["one process", "a new process each time"])
def test_words_follow_a_changing_table(table: Table, *, is_warm: bool) -> None:
    cache = new_cache()
    steps = (
        lambda table: table,
        lambda table: stage_append(table, articles(range(50, 55), seed=2)),
        lambda table: stage_delete_keys(table, pa.array(["0", "7", "51"])),
        lambda table: stage_upsert(table, articles([3, 9, 60], seed=4)),
        lambda table: stage_delete_keys(table, pa.array(["60", "8"])),
        lambda table: compact(table),
        lambda table: stage_append(table, articles(range(70, 90), seed=5)),
    )
    for step in steps:
        table = present(step(table))
        check_answers(words(table, cache if is_warm else new_cache()), table)


def test_an_older_version_is_still_found(table: Table) -> None:
    """Words of a newer version lack rows that the older one has."""
    cache = new_cache()
    newer = present(stage_delete_keys(table, pa.array(["0", "7"])))
    check_answers(words(newer, cache), newer)
    check_answers(words(table, cache), table)


def test_only_new_rows_are_read_after_an_append(table: Table) -> None:
    cache = new_cache()
    words(table, cache)
    bodies = table.read(["body"]).column(0).to_pylist()
    remove_data(table)
    grown = present(stage_append(table, articles(range(50, 60), seed=2)))
    check_answers_to(
        words(grown, cache), [*bodies, *articles(range(50, 60), 2)["body"].to_pylist()]
    )


def test_no_text_is_read_after_deletions(table: Table) -> None:
    cache = new_cache()
    words(table, cache)
    fewer = present(stage_delete_keys(table, pa.array(["2", "5"])))
    bodies = fewer.read(["body"]).column(0).to_pylist()
    dense = DenseTable(fewer, cache)
    dense.addresses_of(np.arange(dense.count))  # which rows are left is read beforehand
    remove_data(table)
    check_answers_to(words(fewer, cache), bodies)


@pytest.mark.usefixtures("kept_files")
def test_a_new_process_reads_the_file(table: Table) -> None:
    words(table, new_cache())
    assert len(derived_files(table)) == 1
    bodies = table.read(["body"]).column(0).to_pylist()
    remove_data(table)
    check_answers_to(words(table, new_cache()), bodies)
    grown = present(stage_append(table, articles(range(50, 52), seed=2)))
    bodies += articles(range(50, 52), 2)["body"].to_pylist()
    check_answers_to(words(grown, new_cache()), bodies)


@pytest.mark.usefixtures("kept_files")
def test_a_file_is_written_again_when_enough_has_changed(table: Table) -> None:
    cache = new_cache()
    words(table, cache)
    for number in range(4):
        table = present(stage_append(table, articles(range(100 + 5 * number, 105 + 5 * number))))
        words(table, cache)
    # 45, 50 and 55 rows: 15 of 55 are in no file, more than a quarter; 5 of 60 are not.
    assert len(derived_files(table)) == 2


@pytest.mark.usefixtures("kept_files")
@pytest.mark.parametrize("damage", ["cut", "emptied", "other arrays"])
def test_a_file_that_does_not_fit_is_passed_over(table: Table, damage: str) -> None:
    words(table, new_cache())
    (file,) = derived_files(table)
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "emptied":
        file.write_bytes(b"")
    else:
        none = np.empty(0, np.int32)
        DerivedFiles(table.store).save(finding.KIND, file.stem, {"stream": none}, {})
    check_answers(words(table, new_cache()), table)


def test_small_tables_have_no_files(table: Table) -> None:
    words(table, new_cache())
    assert derived_files(table) == []


@pytest.mark.usefixtures("kept_files")
def test_a_column_under_another_name_is_not_taken_for_it(table: Table) -> None:
    """Files of rows stay the same when columns are renamed: names do not tell what they hold."""
    cache = new_cache()
    check_answers(words(table, cache), table)
    swapped = rename_column(table, "body", "text")
    swapped = rename_column(swapped, "note", "body")
    check_answers(words(swapped, cache), swapped)
    check_answers(words(swapped, cache, "text"), swapped, "text")
    empty = add_null_column(drop_column(swapped, "body"), pa.field("body", pa.utf8()))
    check_answers(words(empty, cache), empty)
    check_answers(words(empty, new_cache()), empty)


def test_an_empty_table_has_no_words(tmp_path: Path) -> None:
    table = new_table(tmp_path / "graph", SCHEMA)
    check_answers(words(table, new_cache()), table)


def test_a_table_in_memory_is_not_read_again(table: Table) -> None:
    cache = new_cache()
    bodies = DenseTable(table, cache).column("body").to_pylist()
    remove_data(table)
    check_answers_to(words(table, cache), bodies)
