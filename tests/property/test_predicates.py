"""Conditions mean the same to the engine and to the oracle, and a filter never loses a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from omnigraph_core.exec.conditions import matches
from omnigraph_core.ir.nodes import Filter
from omnigraph_core.plan.predicates import lance_filter
from omnigraph_core.plan.values import Values
from omnigraph_core.query.typed import TARGET
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.lookup import find_where
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from tests.support import condition_strategies as samples
from tests.support.examples import examples
from tests.support.oracle import NOW, Given, iter_rows
from tests.support.oracle_graph import OracleGraph
from tests.support.parts import present
from tests.support.people import people_catalog

if TYPE_CHECKING:
    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.storage.dataset import Table

ROWS = samples.arrow_rows()
NODES = samples.nodes()
PARAMS = samples.Params()
VALUES = Values(NOW, PARAMS)
GIVEN = Given(OracleGraph(people_catalog(), []), PARAMS, NOW)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Table]:
    """The rows in a table without indexes, and in one that has an index on every plain column."""
    store = open_store(str(tmp_path_factory.mktemp("samples")))
    store.create_root()
    plain = present(stage_append(create_table(store, "nodes/plain", ROWS.schema), ROWS))
    indexed = present(stage_append(create_table(store, "nodes/indexed", ROWS.schema), ROWS))
    for name, type in samples.COLUMNS.items():
        if not type.is_list:
            request = IndexRequest(name, SegmentKind.BTREE, f"{name}_btree")
            indexed = present(stage_index(indexed, request))
    return plain, indexed


def accepted(condition: TypedCondition) -> list[str]:
    """The ids of the rows for which the oracle finds the condition true."""
    return [
        node.id
        for node in NODES
        if any(True for _ in iter_rows((Filter(condition),), {TARGET: node}, GIVEN))
    ]


@settings(max_examples=examples(600))
@given(samples.conditions)
def test_engine_and_oracle_accept_the_same_rows(condition: TypedCondition) -> None:
    truth = matches(condition, ROWS, VALUES)

    assert truth.null_count == 0
    assert ROWS.filter(truth)["id"].to_pylist() == accepted(condition)


@settings(max_examples=examples(1200))
@given(samples.leaves | samples.conditions)
def test_a_filter_lets_every_accepted_row_through(
    tables: tuple[Table, Table], condition: TypedCondition
) -> None:
    where = lance_filter(condition, VALUES)

    for table in tables:
        found = find_where(table, where, ROWS.column_names)
        kept = found.filter(matches(condition, found, VALUES))
        assert sorted(kept["id"].to_pylist()) == accepted(condition)
