"""tests/corpus/query and the conformance set, carried out: with the tables as loaded, and indexed.

An index, a compaction and rows in several files change no answer.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from tests.support.cases import check_all
from tests.support.corpus import case_files, check_case
from tests.support.query_cases import answer, build_graph, conformance_cases, query_cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.query_cases import QueryCase

Graphs = dict[tuple[str, str, str], "Omnigraph"]


def _indexed(og: Omnigraph) -> None:
    og.ensure_indices()


def _compacted(og: Omnigraph) -> None:
    og.optimize()


STATES: dict[str, Callable[[Omnigraph], None]] = {
    "loaded": lambda _: None,
    "indexed": _indexed,
    "compacted": _compacted,
}


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    """Graphs made so far: cases that share schema and records share one."""
    return {}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("file", case_files("query"))
def test_cases(
    file: str, state: str, graphs: Graphs, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def check(case: QueryCase) -> None:
        og = _graph(case, state, graphs, tmp_path_factory)
        check_case(case.case, answer(og, case.asked))

    check_all([case for case in query_cases() if case.case.file.stem == file], check)


@pytest.mark.parametrize("state", STATES)
def test_conformance(state: str, graphs: Graphs, tmp_path_factory: pytest.TempPathFactory) -> None:
    def check(case: QueryCase) -> None:
        og = _graph(case, state, graphs, tmp_path_factory)
        assert answer(og, case.asked) == case.expected

    check_all(conformance_cases(), check)


def _graph(
    case: QueryCase, state: str, graphs: Graphs, directory: pytest.TempPathFactory
) -> Omnigraph:
    key = (case.schema, case.records, state)
    if key not in graphs:
        name = sha256("\0".join(key).encode()).hexdigest()[:12]
        og = build_graph(str(directory.mktemp(name) / "graph"), case.schema, case.records)
        STATES[state](og)
        graphs[key] = og
    return graphs[key]
