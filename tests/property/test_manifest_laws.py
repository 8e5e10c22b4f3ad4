"""Laws of catalog images: reading back, folding, changes and requirements, on random images."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omnigraph_core.errors import ConfigError, StorageError, VersionConflict
from omnigraph_core.manifest.changes import (
    AcceptSchema,
    AdoptTable,
    RegisterTable,
    RenameTable,
    TombstoneTable,
    UpdateTable,
    add_commit,
    apply_changes,
    touched,
)
from omnigraph_core.manifest.fold import PublishedVersion, Registration, Tombstone, fold_tables
from omnigraph_core.manifest.image import (
    AcceptedSchema,
    GraphCommit,
    Image,
    TableEntry,
    TableOperation,
)
from omnigraph_core.manifest.layout import escape_name, unescape_name
from omnigraph_core.manifest.migrations import upgrade_rows
from omnigraph_core.manifest.requirements import PublishState, check_all, requirements_of
from omnigraph_core.manifest.rows import IMAGE_SCHEMA, decode_image, encode_image
from omnigraph_core.manifest.snapshot import Snapshot
from tests.support.examples import examples

if TYPE_CHECKING:
    from omnigraph_core.manifest.changes import Change

KEYS = tuple(f"{kind}:{name}" for kind in ("node", "edge") for name in ("A", "B", "C", "D"))
BRANCHES = st.sampled_from([None, "b", "a/b"])

keys = st.sampled_from(KEYS)
texts = st.text(max_size=8)
counters = st.integers(1, 2**40)
physicals = st.one_of(st.integers(1, 9), st.integers(2**63, 2**64 - 1))
sizes = st.integers(0, 2**40)
operations = st.sampled_from(TableOperation)
schemas = st.builds(AcceptedSchema, texts, texts, texts)


def entries(table_key: str, least: int = 1) -> st.SearchStrategy[TableEntry]:
    return st.builds(
        TableEntry,
        st.just(table_key),
        st.text(min_size=1, max_size=8),
        st.integers(least, least + 2**40),
        physicals,
        BRANCHES,
        sizes,
        sizes,
        operations,
    )


@st.composite
def commit_lists(draw: st.DrawFn) -> tuple[GraphCommit, ...]:
    ids = draw(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=5, unique=True))
    optional = st.none() | texts
    return tuple(
        GraphCommit(
            graph_commit_id=id,
            manifest_branch=draw(BRANCHES),
            incarnation=draw(texts),
            manifest_version=draw(counters),
            parent_commit_id=draw(optional),
            merged_parent_commit_id=draw(optional),
            actor_id=draw(optional),
            created_at=draw(st.integers(0, 2**53)),
            operation=draw(texts),
        )
        for id in ids
    )


@st.composite
def images(draw: st.DrawFn) -> Image:
    tombstones = draw(st.dictionaries(keys, counters, max_size=4))
    present = sorted(draw(st.sets(keys, max_size=5)))
    tables = {key: draw(entries(key, tombstones.get(key, 0) + 1)) for key in present}
    return Image(tables, tombstones, draw(schemas), draw(commit_lists()))


@st.composite
def batches(draw: st.DrawFn, image: Image) -> list[Change]:
    """Changes that fit the image, each table at most once."""
    changes: list[Change] = [AcceptSchema(draw(schemas))] if draw(st.booleans()) else []
    free = [key for key in KEYS if key not in image.tables]
    for key in draw(st.lists(keys, unique=True)):
        if key in touched(changes):
            continue
        if key in image.tables:
            targets = [other for other in free if other not in touched(changes)]
            changes.append(draw(_changes_of(key, targets)))
        else:
            changes.append(draw(_creations_of(key)))
    return changes


def _changes_of(key: str, targets: list[str]) -> st.SearchStrategy[Change]:
    choices: list[st.SearchStrategy[Change]] = [
        st.builds(UpdateTable, st.just(key), physicals, sizes, sizes, operations),
        st.just(TombstoneTable(key)),
        st.builds(AdoptTable, entries(key)),
    ]
    if targets:
        choices.append(st.builds(RenameTable, st.just(key), st.sampled_from(targets)))
    return st.one_of(choices)


def _creations_of(key: str) -> st.SearchStrategy[Change]:
    return st.one_of(
        st.builds(RegisterTable, st.just(key), texts, physicals, sizes, sizes),
        st.builds(AdoptTable, entries(key)),
    )


def snapshot_of(image: Image) -> Snapshot:
    return Snapshot("main", "main", 1, image)


@settings(max_examples=examples(200))
@given(images(), st.data())
def test_an_image_reads_back_whatever_the_order_of_its_rows(
    image: Image, data: st.DataObject
) -> None:
    rows = encode_image(image)
    assert decode_image(rows, where="here") == image
    order = data.draw(st.permutations(range(len(rows))))
    shuffled = decode_image(rows.take(order), where="here")
    assert shuffled == image
    assert list(shuffled.tables) == sorted(image.tables)


@settings(max_examples=examples(50))
@given(images())
def test_an_upgraded_image_reads_back(image: Image) -> None:
    rows = encode_image(image)
    schema = pa.schema([field.remove_metadata() for field in rows.schema])
    upgraded = upgrade_rows(pa.Table.from_arrays(rows.columns, schema=schema), where="here")
    assert upgraded.schema.equals(IMAGE_SCHEMA, check_metadata=True)
    assert decode_image(upgraded, where="here") == image


@settings(max_examples=examples(200))
@given(images(), st.data())
def test_losing_a_row_never_goes_unseen(image: Image, data: st.DataObject) -> None:
    """Except a tombstone: it only keeps the counter of a table that is gone."""
    rows = encode_image(image).to_pylist()
    lost = data.draw(st.sampled_from(rows))
    assume(lost["object_type"] != "table_tombstone")
    rest = pa.Table.from_pylist([row for row in rows if row is not lost], schema=IMAGE_SCHEMA)
    with pytest.raises(StorageError):
        decode_image(rest, where="here")


@settings(max_examples=examples(200))
@given(st.data())
def test_folding_follows_its_rule_in_any_order(data: st.DataObject) -> None:
    pairs = st.tuples(keys, st.integers(1, 6))
    numbers = data.draw(st.lists(pairs, unique=True, max_size=12))
    versions = [
        PublishedVersion(key, number, 1, None, number, 1, TableOperation.APPEND)
        for key, number in numbers
    ]
    stones = [Tombstone(*pair) for pair in data.draw(st.lists(pairs, max_size=6))]
    registered = [Registration(key, key) for key in {key for key, _ in numbers}]

    expected = {}
    for key in sorted({key for key, _ in numbers}):
        newest = max(number for other, number in numbers if other == key)
        if not any(stone.table_key == key and stone.version >= newest for stone in stones):
            expected[key] = newest

    for _ in range(2):
        folded = fold_tables(
            data.draw(st.permutations(registered)),
            data.draw(st.permutations(versions)),
            data.draw(st.permutations(stones)),
            where="here",
        )
        found = {key: entry.table_version for key, entry in folded.tables.items()}
        assert list(found.items()) == list(expected.items())


@settings(max_examples=examples(120))
@given(images(), BRANCHES, st.data())
def test_changes(image: Image, branch: str | None, data: st.DataObject) -> None:
    changes = data.draw(batches(image))
    after = apply_changes(image, changes, branch=branch)
    written = touched(changes)

    assert apply_changes(image, data.draw(st.permutations(changes)), branch=branch) == after
    assert list(after.tables) == sorted(after.tables)
    assert after.commits == image.commits
    for key in KEYS:
        if key in written:
            assert after.version_of(key) == image.version_of(key) + 1
        else:
            assert after.tables.get(key) == image.tables.get(key)
            assert after.tombstones.get(key) == image.tombstones.get(key)
    for change in changes:
        if isinstance(change, TombstoneTable):
            assert change.table_key not in after.tables
        if isinstance(change, RenameTable):
            moved, old = after.tables[change.new_key], image.tables[change.old_key]
            assert change.old_key not in after.tables
            assert (moved.location, moved.physical_version) == (old.location, old.physical_version)
    assert decode_image(encode_image(after), where="here") == after


@settings(max_examples=examples(40))
@given(images(), st.data())
def test_a_version_number_never_means_two_things(image: Image, data: st.DataObject) -> None:
    """However often tables are removed, renamed and made again."""
    seen = {(key, image.version_of(key)): image.tables.get(key) for key in KEYS}
    for _ in range(5):
        image = apply_changes(image, data.draw(batches(image)), branch=None)
        for key in KEYS:
            state = image.tables.get(key)
            assert seen.setdefault((key, image.version_of(key)), state) == state


@settings(max_examples=examples(100))
@given(images(), st.integers(1, 6), st.data())
def test_the_newest_commits_stay_in_order(image: Image, keep: int, data: st.DataObject) -> None:
    made = list(image.commits)
    for number in range(data.draw(st.integers(1, 5))):
        parent = image.head.graph_commit_id
        new = replace(image.head, graph_commit_id=f"new commit {number}", parent_commit_id=parent)
        image = add_commit(image, new, keep)
        made.append(new)
        assert image.commits == tuple(made[-keep:])
        assert decode_image(encode_image(image), where="here") == image


@settings(max_examples=examples(150))
@given(images(), st.data())
def test_requirements_fail_exactly_when_something_moved(image: Image, data: st.DataObject) -> None:
    writes, reads = data.draw(st.sets(keys, max_size=2)), data.draw(st.sets(keys, max_size=2))
    needed = requirements_of(snapshot_of(image), touched=writes, read=reads)
    now = time.time()
    check_all(needed, PublishState(snapshot_of(image), now))

    others = [c for c in data.draw(batches(image)) if not isinstance(c, AcceptSchema)]
    state = PublishState(snapshot_of(apply_changes(image, others, branch=None)), now)
    moved = touched(others) & (writes | reads)
    if not moved:
        check_all(needed, state)
        return
    with pytest.raises(VersionConflict) as caught:
        check_all(needed, state)
    assert caught.value.table_key in moved
    assert caught.value.actual == state.snapshot.image.version_of(caught.value.table_key)


@settings(max_examples=examples(300))
@given(st.text(), st.text())
def test_names_become_segments_of_their_own(one: str, other: str) -> None:
    try:
        segments = [escape_name(one), escape_name(other)]
    except ConfigError:
        assume(False)
    assert (segments[0] == segments[1]) is (one == other)
    for name, segment in zip((one, other), segments, strict=True):
        assert segment.isascii()
        assert "/" not in segment
        assert not segment.startswith(".")
        assert unescape_name(segment) == name


@settings(max_examples=examples(300))
@given(st.text(alphabet="a.%2FEe/é", max_size=6))
def test_a_segment_stands_for_at_most_one_name(segment: str) -> None:
    try:
        name = unescape_name(segment)
    except StorageError:
        return
    assert escape_name(name) == segment
