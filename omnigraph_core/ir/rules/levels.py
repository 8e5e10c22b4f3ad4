"""A rewrite applied to every pipeline of a query: those inside joins first, then the outer ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.ir.nodes import AntiJoin, Filter, OptionalJoin, anti_join, optional_join
from omnigraph_core.query.typed import All, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.ir.nodes import Op, Pipeline, QueryIR
    from omnigraph_core.schema.catalog import Catalog

TRUE: Final = All(())
FALSE: Final = Any(())


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What a rule may know beside the query itself."""

    catalog: Catalog


def rewrite_levels(ir: QueryIR, change: Callable[[Pipeline], Pipeline]) -> QueryIR:
    """The query with every pipeline changed, innermost first."""
    pipeline = _rewrite(ir.pipeline, change)
    return ir if pipeline == ir.pipeline else replace(ir, pipeline=pipeline)


def _rewrite(pipeline: Pipeline, change: Callable[[Pipeline], Pipeline]) -> Pipeline:
    return change(tuple(new for op in pipeline for new in _rewrite_op(op, change)))


def _rewrite_op(op: Op, change: Callable[[Pipeline], Pipeline]) -> Iterator[Op]:
    match op:
        case AntiJoin(inner=inner):
            yield from _anti_joined(_rewrite(inner, change))
        case OptionalJoin(inner=inner):
            yield from _optionally_joined(_rewrite(inner, change))
        case _:
            yield op


def _anti_joined(inner: Pipeline) -> Iterator[Op]:
    """An inner side that yields its start row drops every row; one that is empty drops none."""
    if not inner:
        yield Filter(FALSE)
    elif Filter(FALSE) not in inner:
        yield anti_join(inner)


def _optionally_joined(inner: Pipeline) -> Iterator[Op]:
    """Without variables of its own the inner side can neither drop nor multiply a row."""
    if inner and (join := optional_join(inner)).introduced:
        yield join
