"""The merge bases of random graphs of commits equal what trying every commit finds."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.history.ancestry import (
    ancestors,
    first_parents,
    is_ancestor,
    merge_base,
    merge_bases,
)
from omnigraph_core.history.bases import Join, MergeBase, commits_of, find_base, nearest
from omnigraph_core.history.junctions import junctions
from omnigraph_core.manifest.image import GraphCommit
from tests.support.examples import examples
from tests.unit.history.commits import make_commit

Graph = dict[str, GraphCommit]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, list[str]]:
    """Commits with up to two older parents each, some reclaimed, and every id that ever was."""
    size = draw(st.integers(3, 12))
    names = [f"c{at:02}" for at in range(size)]
    commits = {}
    for at, name in enumerate(names):
        recent = st.sampled_from(names[max(0, at - 4) : at] or names[:1])
        parents = draw(st.lists(recent, min_size=1, max_size=2)) if at else []
        # Clocks that agree on little, or on nothing: a parent may be younger than its child.
        version, time = draw(st.integers(1, 3)), draw(st.integers(0, 2) | st.integers(0, size))
        commits[name] = make_commit(name, *parents, version=version, at=time)
    for reclaimed in draw(st.just(()) | st.sets(st.sampled_from(names), max_size=2)):
        del commits[reclaimed]
    return commits, names


def distances(graph: Graph, head: str) -> dict[str, int]:
    """By relaxing every link until nothing changes: slow, and nothing like a walk."""
    found = {head: 0} if head in graph else {}
    for _ in graph:
        for commit_id, commit in graph.items():
            if commit_id in found:
                for parent in commit.parents:
                    if parent in graph:
                        far = found[commit_id] + 1
                        found[parent] = min(found.get(parent, far), far)
    return found


def best_bases(graph: Graph, source: str, target: str) -> tuple[str, ...]:
    from_source, from_target = distances(graph, source), distances(graph, target)
    common = from_source.keys() & from_target.keys()
    older = {id for other in common for id in distances(graph, other) if id != other}

    def rank(commit_id: str) -> tuple[int, int, int, str]:
        commit = graph[commit_id]
        far = from_source[commit_id] + from_target[commit_id]
        return (-far, commit.manifest_version, commit.created_at, commit_id)

    return tuple(sorted(common - older, key=rank, reverse=True))


@settings(max_examples=examples(500))
@given(graphs(), st.data())
def test_merge_bases_are_the_best_of_all(
    made: tuple[Graph, list[str]], data: st.DataObject
) -> None:
    graph, names = made
    source, target = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
    expected = best_bases(graph, source, target)
    assert merge_bases(source, target, graph.get) == expected
    assert merge_bases(target, source, graph.get) == expected
    assert merge_base(source, target, graph.get) == next(iter(expected), None)


@settings(max_examples=examples(300))
@given(graphs(), st.data())
def test_a_base_is_made_of_all_of_them(made: tuple[Graph, list[str]], data: st.DataObject) -> None:
    """And each join is compared with what both of its parts have in common."""
    graph, names = made
    source, target = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
    expected = best_bases(graph, source, target)
    found = find_base(source, target, graph.get)
    assert parts_of(found) == expected
    assert commits_of(found) <= graph.keys()
    if found is not None:
        assert nearest(found) == expected[0]
    check_roots(graph, found)


def parts_of(base: MergeBase | None) -> tuple[str, ...]:
    if isinstance(base, Join):
        return (*parts_of(base.ours), base.theirs)
    return () if base is None else (base,)


def check_roots(graph: Graph, base: MergeBase | None) -> None:
    if not isinstance(base, Join):
        return
    inside = {id for part in parts_of(base.ours) for id in distances(graph, part)}
    common = inside & distances(graph, base.theirs).keys()
    older = {id for other in common for id in distances(graph, other) if id != other}
    assert set(parts_of(base.root)) == common - older
    check_roots(graph, base.ours)
    check_roots(graph, base.root)


@settings(max_examples=examples(100))
@given(graphs(), st.data())
def test_ancestors_are_what_is_reachable_nearest_first(
    made: tuple[Graph, list[str]], data: st.DataObject
) -> None:
    graph, names = made
    head = data.draw(st.sampled_from(names))
    far = distances(graph, head)
    walked = [commit.graph_commit_id for commit in ancestors(head, graph.get)]
    assert sorted(walked) == sorted(far)
    assert [far[commit_id] for commit_id in walked] == sorted(far.values())
    for commit_id in graph:
        assert is_ancestor(commit_id, head, graph.get) == (commit_id in far or commit_id == head)


@settings(max_examples=examples(100))
@given(graphs(), st.data())
def test_first_parents_are_a_chain(made: tuple[Graph, list[str]], data: st.DataObject) -> None:
    graph, names = made
    line = list(first_parents(data.draw(st.sampled_from(names)), graph.get))
    for newer, older in pairwise(line):
        assert newer.parent_commit_id == older.graph_commit_id
    assert not line or line[-1].parent_commit_id not in graph


@settings(max_examples=examples(300))
@given(graphs(), st.data())
def test_junctions_are_what_merges_of_any_two_heads_need(
    made: tuple[Graph, list[str]], data: st.DataObject
) -> None:
    graph, names = made
    heads = data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=5, unique=True))
    found = junctions(heads, graph)
    for one in heads:
        for other in heads:
            needed = commits_of(find_base(one, other, graph.get))
            assert needed <= found | set(heads)
    related = found | (set(heads) & graph.keys())
    bases = {base for one in related for other in related for base in best_bases(graph, one, other)}
    assert found <= bases
