"""What text scores depend on beyond the text: counted over whole columns, a portion per task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from omnigraph_core.query.mentions import iter_terms
from omnigraph_core.query.typed import Bm25
from omnigraph_core.spark.query.searching import SearchedRows
from omnigraph_core.storage.fragment_rows import iter_found
from omnigraph_core.topology.word_search import TextStatistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.spark.query.scan import Place
    from omnigraph_core.spark.query.searching import Sought
    from omnigraph_core.spark.query.tables import Tables
    from omnigraph_core.spark.runner import Runner

_NOTHING = TextStatistics(0, 0, {})


@dataclass(frozen=True, slots=True)
class _Portion:
    place: Place
    fragments: tuple[int, ...]
    search: Bm25
    sought: Sought


def text_statistics(ir: QueryIR, tables: Tables, runner: Runner) -> dict[Bm25, TextStatistics]:
    """The statistics of every column that a query scores, for what it looks for there."""
    exprs = (*(key.expr for key in ir.order_by), *(column.expr for column in ir.columns))
    searches = dict.fromkeys(term for term in iter_terms(exprs) if isinstance(term, Bm25))
    tasks = [task for search in searches for task in _tasks(search, tables)]
    counted = runner.map(_count, tasks, name=f"words for query {ir.name}")
    found = dict.fromkeys(searches, _NOTHING)
    for task, part in zip(tasks, counted, strict=True):
        found[task.search] = found[task.search].plus(part)
    return found


def _tasks(search: Bm25, tables: Tables) -> Sequence[_Portion]:
    place, portions = tables.portions(search.field.variable)
    return [_Portion(place, fragments, search, tables.sought) for fragments in portions]


def _count(task: _Portion) -> TextStatistics:
    batches = iter_found(task.place.open(), [task.search.field.property], task.fragments, None)
    counted = (SearchedRows(batch, task.sought).statistics(task.search) for batch in batches)
    return reduce(TextStatistics.plus, counted, _NOTHING)
