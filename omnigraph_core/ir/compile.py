"""From query text to something that can be planned: parse, check, lower, optimise.

A `CompiledQuery` is immutable and depends only on the text and the catalog, so it can be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Source
from omnigraph_core.ir.lower import lower_query
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.ir.rules import optimize
from omnigraph_core.query.ast import QueryFile
from omnigraph_core.query.check import check_queries, check_query, select_query
from omnigraph_core.query.checked import CheckedRead
from omnigraph_core.query.descriptor import describe_columns
from omnigraph_core.query.parse import parse_queries

if TYPE_CHECKING:
    from omnigraph_core.ir.nodes import MutationIR
    from omnigraph_core.query.checked import CheckedQuery
    from omnigraph_core.query.descriptor import ResultColumn
    from omnigraph_core.schema.catalog import Catalog


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A checked query, its optimised form, and the columns it returns (none for a mutation)."""

    checked: CheckedQuery
    ir: QueryIR | MutationIR
    columns: tuple[ResultColumn, ...]


def compile_file(text: str, catalog: Catalog, name: str = "<query>") -> tuple[CompiledQuery, ...]:
    """Every query of a text, in written order.

    Raises:
        CompileError: every problem of every query.
    """
    checked = check_queries(parse_queries(text, name), catalog, Source(text, name))
    return tuple(compile_checked(query, catalog) for query in checked.require())


def compile_one(
    text: str, catalog: Catalog, query_name: str | None = None, *, name: str = "<query>"
) -> CompiledQuery:
    """One query of a text; the name may be left out when there is only one.

    The whole text must parse and the name must be unique in it, but only the chosen query is
    checked.

    Raises:
        CompileError: every problem of that query.
        QueryNotFound: no query of that name, or several to choose from and no name.
    """
    file, source = parse_queries(text, name), Source(text, name)
    query = select_query(file, query_name)
    namesakes = tuple(other for other in file.queries if other.name == query.name)
    if len(namesakes) > 1:
        check_queries(QueryFile(namesakes), catalog, source).require()
    return compile_checked(check_query(query, catalog, source), catalog)


def compile_checked(checked: CheckedQuery, catalog: Catalog) -> CompiledQuery:
    """The compiled form of a query that has passed the checker."""
    ir = lower_query(checked)
    if isinstance(ir, QueryIR):
        ir = optimize(ir, catalog)
    body = checked.body
    return CompiledQuery(
        checked, ir, describe_columns(body) if isinstance(body, CheckedRead) else ()
    )
