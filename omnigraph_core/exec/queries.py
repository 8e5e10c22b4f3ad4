"""Compiled queries, kept: compiling costs more than many a query does.

A kept one counts only for the very catalog it was compiled against.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from omnigraph_core.constants import MAX_STEPS
from omnigraph_core.errors import ConfigError
from omnigraph_core.exec.context import ReadPlan, variable_types
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.plan.build import plan_query
from omnigraph_core.plan.least_values import least_values
from omnigraph_core.plan.steps import AntiJoinStep, OptionalStep
from omnigraph_core.query.result_schema import result_schema

if TYPE_CHECKING:
    from omnigraph_core.ir.compile import CompiledQuery
    from omnigraph_core.plan.steps import Steps
    from omnigraph_core.schema.catalog import Catalog

_MAX_QUERIES: Final = 512
_MAX_LENGTH: Final = 32_768
"""Characters of a text that is kept: longer ones are written by programs, for one time."""


class _Kept:
    """A compiled query, and its plan once it was asked for."""

    __slots__ = ("catalog", "query", "read")

    def __init__(self, catalog: Catalog, query: CompiledQuery) -> None:
        self.catalog = catalog
        self.query = query
        self.read: ReadPlan | None = None


class QueryCache:
    """The queries compiled last. Safe to share between threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str | None], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def compiled(self, text: str, name: str | None, catalog: Catalog) -> CompiledQuery:
        """One query of a text; the name may be left out when there is only one.

        Raises:
            CompileError: every problem of that query.
            QueryNotFound: no query of that name, or several to choose from and no name.
        """
        return self._found(text, name, catalog).query

    def read(self, text: str, name: str | None, catalog: Catalog) -> ReadPlan:
        """The same for a query that reads, with its plan.

        Raises:
            CompileError: every problem of that query.
            QueryNotFound: no query of that name, or several to choose from and no name.
            ConfigError: it is a mutation.
        """
        kept = self._found(text, name, catalog)
        if kept.read is None:
            kept.read = plan_read(kept.query, catalog)
        return kept.read

    def _found(self, text: str, name: str | None, catalog: Catalog) -> _Kept:
        key = (text, name)
        kept = self._kept.get(key)
        if kept is not None and kept.catalog is catalog:
            return kept
        kept = _Kept(catalog, compile_one(text, catalog, name))
        if len(text) > _MAX_LENGTH:
            return kept
        with self._lock:
            self._kept[key] = kept
            self._kept.move_to_end(key)
            if len(self._kept) > _MAX_QUERIES:
                self._kept.popitem(last=False)
        return kept


def plan_read(query: CompiledQuery, catalog: Catalog) -> ReadPlan:
    """How a read is carried out, for any snapshot of its schema.

    Raises:
        ConfigError: it is a mutation, or has too many steps.
    """
    if not isinstance(query.ir, QueryIR):
        raise ConfigError(
            f"query `{query.ir.name}` changes the graph", hint="run it as a mutation, not as a read"
        )
    plan = plan_query(query.ir, catalog)
    steps = _count_steps(plan.steps)
    if steps > MAX_STEPS.value:
        raise ConfigError(
            f"query `{plan.ir.name}` takes {steps} steps, and {MAX_STEPS.value} are the most",
            hint="split it into several queries",
        )
    return ReadPlan(
        plan=plan,
        columns=query.columns,
        schema=result_schema(query.columns, catalog),
        types=variable_types(query.ir.pipeline),
        least=least_values(query.ir),
    )


def _count_steps(steps: Steps) -> int:
    return sum(
        1 + (_count_steps(step.inner) if isinstance(step, AntiJoinStep | OptionalStep) else 0)
        for step in steps
    )
