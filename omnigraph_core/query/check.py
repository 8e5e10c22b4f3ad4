"""The query checker: a parsed file and a catalog in, typed queries or every problem out.

Each query is checked on its own, so a mistake in one leaves the others usable. A query with a
problem has no checked form: what follows the checker never sees half of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import Diagnostics, did_you_mean
from omnigraph_core.errors import QueryNotFound, QueryTypeError
from omnigraph_core.query.ast import Read
from omnigraph_core.query.check_mutation import check_mutation
from omnigraph_core.query.check_params import check_annotations, check_params
from omnigraph_core.query.check_read import check_read
from omnigraph_core.query.checked import CheckedQuery
from omnigraph_core.query.scope import Context
from omnigraph_core.query.typed import EntityKind

if TYPE_CHECKING:
    from omnigraph_core.diagnostics import Diagnostic, Source
    from omnigraph_core.query.ast import Query, QueryFile
    from omnigraph_core.query.checked import CheckedMutation, CheckedRead
    from omnigraph_core.query.scope import Scope
    from omnigraph_core.schema.catalog import Catalog


_LISTED: Final = 12
"""Names a hint lists at most."""


@dataclass(frozen=True, slots=True)
class QueryCheck:
    """One query of a file: its checked form, or why it has none."""

    query: Query
    checked: CheckedQuery | None
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    results: tuple[QueryCheck, ...]

    def require(self) -> tuple[CheckedQuery, ...]:
        """Every query of the file.

        Raises:
            QueryTypeError: at least one query is wrong; carries the problems of all.
        """
        problems = [item for result in self.results for item in result.diagnostics]
        if problems:
            raise QueryTypeError(problems)
        return tuple(result.checked for result in self.results if result.checked is not None)


def check_queries(file: QueryFile, catalog: Catalog, source: Source) -> CheckedFile:
    """Check every query of a file against a schema; mistakes are in the results, never raised."""
    seen: set[str] = set()
    results = []
    for query in file.queries:
        problems = Diagnostics(source)
        if query.name in seen:
            message = f"the file has a query `{query.name}` already"
            problems.add("T40", message, query.name.span, hint="rename one of them")
        seen.add(query.name)
        results.append(_check(query, catalog, problems))
    return CheckedFile(tuple(results))


def check_query(query: Query, catalog: Catalog, source: Source) -> CheckedQuery:
    """One query checked against a schema.

    Raises:
        QueryTypeError: the query is wrong; carries every problem.
    """
    result = _check(query, catalog, Diagnostics(source))
    if result.checked is None:
        raise QueryTypeError(result.diagnostics)
    return result.checked


def select_query(file: QueryFile, name: str | None) -> Query:
    """The query of that name; without a name, the only one of the file.

    Raises:
        QueryNotFound: no query of that name, or a name is needed to choose.
    """
    names = [str(query.name) for query in file.queries]
    if name is None:
        if len(names) == 1:
            return file.queries[0]
        if not names:
            raise QueryNotFound("the file holds no query")
        raise QueryNotFound("the file holds multiple queries", hint=f"name one of {_list(names)}")
    for query in file.queries:
        if query.name == name:
            return query
    near = did_you_mean(name, names)
    hint = " ".join(part for part in (near, f"the file holds {_list(names)}") if part)
    raise QueryNotFound(f"query '{name}' not found", hint=hint if names else None)


def _list(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"


def _check(query: Query, catalog: Catalog, problems: Diagnostics) -> QueryCheck:
    ctx = Context(catalog, problems)
    params = check_params(ctx, query.params)
    texts = check_annotations(ctx, query.annotations)
    body: CheckedRead | CheckedMutation
    node_types: tuple[tuple[str, str], ...] = ()
    if isinstance(query.body, Read):
        body, scope = check_read(ctx, query.body)
        node_types = _node_types(scope)
    else:
        body = check_mutation(ctx, query.body)
    if problems:
        return QueryCheck(query, None, problems.found)
    description, instruction = texts.get("description"), texts.get("instruction")
    name = str(query.name)
    checked = CheckedQuery(name, params, body, description, instruction, node_types)
    return QueryCheck(query, checked, ())


def _node_types(scope: Scope) -> tuple[tuple[str, str], ...]:
    """The node variables of the rows; those local to a `not` block are in no row."""
    return tuple(
        sorted(
            (bound.name, bound.type_name)
            for bound in scope.variables.values()
            if bound.kind is EntityKind.NODE and bound.type_name is not None
        )
    )
