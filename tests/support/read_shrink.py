"""Smaller queries that go wrong in the same way: clauses, columns and keys are left out in turn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from omnigraph_core.query import ast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.read_queries import Sample

T = TypeVar("T")
_PLAINEST = (ast.Column(ast.Literal(1)),)


def shrunk(sample: Sample, is_wrong: Callable[[Sample], bool], tries: int = 400) -> Sample:
    """The smallest query found that is still wrong."""
    waiting = _smaller(sample)
    for _ in range(tries):
        candidate = next(waiting, None)
        if candidate is None:
            return sample
        if is_wrong(candidate):
            sample, waiting = candidate, _smaller(candidate)
    return sample


def _smaller(sample: Sample) -> Iterator[Sample]:
    read = sample.query.body
    assert isinstance(read, ast.Read)
    for body in _reads(read):
        yield replace(sample, query=replace(sample.query, body=body))


def _reads(read: ast.Read) -> Iterator[ast.Read]:
    if read.limit is not None:
        yield replace(read, limit=None, offset=None)
    if read.offset is not None:
        yield replace(read, offset=None)
    if read.is_distinct:
        yield replace(read, is_distinct=False)
    for place in range(len(read.having)):
        yield replace(read, having=_without(read.having, place))
    for place in range(len(read.order)):
        yield replace(read, order=_without(read.order, place))
    for place in range(len(read.columns)):
        if len(read.columns) > 1:
            yield replace(read, columns=_without(read.columns, place))
    if read.columns != _PLAINEST:
        yield replace(read, columns=_PLAINEST)
    for clauses in _clause_lists(read.match):
        yield replace(read, match=clauses)


def _without(items: tuple[T, ...], place: int) -> tuple[T, ...]:
    return items[:place] + items[place + 1 :]


def _clause_lists(clauses: tuple[ast.Clause, ...]) -> Iterator[tuple[ast.Clause, ...]]:
    for place in range(len(clauses)):
        if len(clauses) > 1:
            yield _without(clauses, place)
    for place, clause in enumerate(clauses):
        for simpler in _simpler(clause):
            yield (*clauses[:place], simpler, *clauses[place + 1 :])


def _simpler(clause: ast.Clause) -> Iterator[ast.Clause]:
    match clause:
        case ast.Binding() if clause.fields:
            yield replace(clause, fields=())
        case ast.Traversal():
            if clause.bounds is not None:
                yield replace(clause, bounds=None)
            if clause.edge_binding is not None:
                yield replace(clause, edge_binding=None)
            if clause.is_undirected:
                yield replace(clause, is_undirected=False)
        case ast.Negation() | ast.OptionalMatch():
            for clauses in _clause_lists(clause.clauses):
                yield replace(clause, clauses=clauses)
        case ast.Filter():
            for condition in _conditions(clause.condition):
                yield replace(clause, condition=condition)
        case _:
            pass


def _conditions(condition: ast.Condition) -> Iterator[ast.Condition]:
    if not isinstance(condition, ast.And | ast.Or):
        return
    yield from condition.operands
    for place, part in enumerate(condition.operands):
        for simpler in _conditions(part):
            operands = (*condition.operands[:place], simpler, *condition.operands[place + 1 :])
            yield replace(condition, operands=operands)
