"""Arrays with items replaced, and neighbours with lists replaced, against plain ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.topology import neighbours as neighbours_module
from omnigraph_core.topology import patches
from omnigraph_core.topology.adjacency import Entries, build_neighbours, without_parallels
from omnigraph_core.topology.patches import PatchedArray
from omnigraph_core.topology.touched import for_nodes, touched_lists, with_lists
from tests.support.examples import examples

if TYPE_CHECKING:
    from omnigraph_core.topology.neighbours import Neighbours

Pair = tuple[int, int]
changes = st.lists(
    st.tuples(st.dictionaries(st.integers(0, 250), st.integers(-1, 9)), st.integers(0, 60)),
    max_size=6,
)


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int32)


@settings(max_examples=examples(80))
@given(st.lists(st.integers(-1, 9), max_size=200), changes, st.booleans())
def test_items_replaced_again_and_again(
    base: list[int], steps: list[tuple[dict[int, int], int]], is_folded: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patches, "_LEAST_MANY", 3 if is_folded else 1_000)
        array, plain = PatchedArray.of(ints(base)), list(base)
        seen = [(array, plain)]
        for replaced, more in steps:
            plain = [*plain, *[-1] * more]
            inside = {key: value for key, value in replaced.items() if key < len(plain)}
            for key, value in inside.items():
                plain[key] = value
            keys = sorted(inside)
            array = array.patched(ints(keys), ints([inside[key] for key in keys]), len(plain))
            seen.append((array, list(plain)))
        for array, expected in seen:  # those before are as they were
            assert array.whole().tolist() == expected
            numbers = np.random.default_rng(len(expected)).permutation(len(expected))
            assert array.take(numbers).tolist() == [expected[n] for n in numbers]
            for wanted in range(10):
                found = [n for n, value in enumerate(expected) if value == wanted]
                assert array.where(wanted).tolist() == found


def listed(neighbours: Neighbours) -> list[list[Pair]]:
    """Target and edge of every entry, by source."""
    starts, counts = neighbours.slices(np.arange(neighbours.node_count))
    return [
        [
            (int(neighbours.targets[place]), int(neighbours.edges[place]))
            for place in range(start, start + count)
        ]
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True)
    ]


def entries(triples: list[tuple[int, int, int]]) -> Entries:
    return Entries(*(ints([triple[at] for triple in triples]) for at in range(3)))


@settings(max_examples=examples(80))
@given(st.data(), st.booleans())
def test_lists_replaced_again_and_again(data: st.DataObject, is_folded: bool) -> None:
    """Entries go and come, nodes come: what is shared with those before does not change them."""
    nodes = data.draw(st.integers(1, 6))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, 4))
    pairs = data.draw(st.lists(ends, max_size=20))
    with pytest.MonkeyPatch.context() as patch:
        if is_folded:
            patch.setattr(neighbours_module, "_LEAST_WASTE", 4)
            patch.setattr(patches, "_LEAST_MANY", 3)
        present = {(s, edge): t for edge, (s, t) in enumerate(pairs)}
        found = build_neighbours(ints([s for s, _ in pairs]), ints([t for _, t in pairs]), nodes)
        single = without_parallels(found)
        seen = [(found, single, _expected(present, nodes))]
        for step in range(data.draw(st.integers(0, 5))):
            nodes += data.draw(st.integers(0, 70))
            gone = data.draw(
                st.lists(st.sampled_from(sorted(present)), unique=True) if present else st.just([])
            )
            came = data.draw(
                st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, 4)), max_size=6)
            )
            removed = entries([(s, present.pop((s, e)), e) for s, e in gone])
            added = {(s, 1_000 * (step + 1) + n): t for n, (s, t) in enumerate(came)}
            present |= added
            found = for_nodes(found, nodes)
            lists = touched_lists(
                found, removed, entries([(s, t, e) for (s, e), t in added.items()])
            )
            found = with_lists(found, lists)
            single = with_lists(for_nodes(single, nodes), lists.without_parallels())
            seen.append((found, single, _expected(present, nodes)))
        for found, single, expected in seen:
            check(found, single, expected)
            check(found.packed(), single.packed(), expected)


def _expected(present: dict[Pair, int], nodes: int) -> list[list[Pair]]:
    found: list[list[Pair]] = [[] for _ in range(nodes)]
    for (source, edge), target in present.items():
        found[source].append((target, edge))
    return [sorted(items) for items in found]


def check(found: Neighbours, single: Neighbours, expected: list[list[Pair]]) -> None:
    assert listed(found) == expected
    assert found.node_count == single.node_count == len(expected)
    assert found.entry_count == sum(map(len, expected))
    assert found.degrees().tolist() == [len(items) for items in expected]
    is_simple = all(len({t for t, _ in items}) == len(items) for items in expected)
    assert is_simple or not found.is_simple
    assert single.is_simple
    once = [sorted({target for target, _ in items}) for items in expected]
    assert [[target for target, _ in items] for items in listed(single)] == once
    for mine, items in zip(listed(single), expected, strict=True):
        assert {*mine} <= {*items}


def test_a_small_change_copies_little() -> None:
    """The offsets are shared, and after the first time the entries are, too."""
    rng = np.random.default_rng(3)
    sources, targets = rng.integers(0, 50_000, (2, 200_000)).astype(np.int32)
    base = build_neighbours(sources, targets, 50_000)
    first = with_lists(base, touched_lists(base, entries([]), entries([(7, 9, 200_000)])))
    second = with_lists(first, touched_lists(first, entries([]), entries([(8, 9, 200_001)])))
    assert second.offsets is base.offsets
    assert np.shares_memory(first.targets, second.targets)
    assert np.shares_memory(first.edges, second.edges)
    assert second.changed is not None
    assert second.changed.nbytes < 5_000
