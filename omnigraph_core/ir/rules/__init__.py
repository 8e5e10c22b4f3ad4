"""Rewrites of a read: each rule is a plain function that keeps the multiset of result rows.

A rule sees one level of pipeline at a time, inner ones first. Costs, indexes and statistics are the
planner's matter; what stands here is right for every graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.ir.rules.fold import fold_constants
from omnigraph_core.ir.rules.levels import RuleContext
from omnigraph_core.ir.rules.push import push_filters
from omnigraph_core.ir.rules.reroot import choose_roots
from omnigraph_core.ir.rules.split import split_conjunctions
from omnigraph_core.ir.rules.unique import unique_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.schema.catalog import Catalog

    Rule = Callable[[QueryIR, RuleContext], QueryIR]

RULES: Final[tuple[Rule, ...]] = (
    split_conjunctions,
    fold_constants,
    choose_roots,
    push_filters,
    unique_names,
)
"""In order: conditions made small, then judged, then used to choose a start, then put in place; at
last a name for each variable."""


def optimize(ir: QueryIR, catalog: Catalog) -> QueryIR:
    """The same rows by a better pipeline."""
    context = RuleContext(catalog)
    for rule in RULES:
        ir = rule(ir, context)
    return ir
