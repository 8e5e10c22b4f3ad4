"""What `nearest` looks for: every vector of a query, known before its first row.

A query and its parameters come in; a vector for each `nearest` goes out, or none where null, blank
text or a vector of zeros was given: nothing is near to that. Texts that are embedded by the same
model are sent together.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from omnigraph_core.embedding.embedder import Task
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.interruption import aside
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.mentions import iter_terms
from omnigraph_core.query.typed import Aggregate, Nearest, Rrf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.schema.catalog import Catalog

    Request: TypeAlias = tuple[str | None, int]
    """Model, None for the configured one, and dimension."""


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A vector to look for; its numbers are exactly F32, as those of stored vectors are."""

    values: np.ndarray
    """float64."""
    norm: float
    unit: np.ndarray
    """float32, of length 1."""


class QueryVectors:
    """The vectors of one run by the `nearest` that looks for them."""

    __slots__ = ("_vectors",)

    def __init__(self, vectors: Mapping[Nearest, QueryVector | None]) -> None:
        self._vectors = vectors

    @classmethod
    def of(cls, ir: QueryIR, values: Values, catalog: Catalog, embedder: Embedder) -> QueryVectors:
        """Read, or have made, all vectors a query looks for.

        Raises:
            EmbeddingError: the provider failed, or its answer is not what was asked for.
            ConfigError: a text is to be embedded and no usable provider is configured.
        """
        return cls(_resolved(ir, values, catalog, embedder)) if _may_rank(ir) else _NONE

    def vector(self, expr: Nearest) -> QueryVector | None:
        """What it looks for; None if nothing can be near to it."""
        return self._vectors[expr]


_NONE = QueryVectors({})


def query_vector(numbers: np.ndarray) -> QueryVector | None:
    """Numbers as a vector to look for; None if they have no direction."""
    values = numbers.astype(np.float32).astype(np.float64)
    norm = float(np.sqrt(np.vecdot(values, values)))
    if not (0 < norm < float("inf")):
        return None
    return QueryVector(values, norm, (values / norm).astype(np.float32))


def _may_rank(ir: QueryIR) -> bool:
    """Whether to look closer: most queries rank nothing, and this is asked for each of them."""
    return any(isinstance(expr, Nearest | Rrf | Aggregate) for expr in _exprs(ir))


def _exprs(ir: QueryIR) -> tuple[TypedExpr, ...]:
    """Where the checker lets a ranking stand: in sort keys and columns."""
    return (*(key.expr for key in ir.order_by), *(column.expr for column in ir.columns))


def _resolved(
    ir: QueryIR, values: Values, catalog: Catalog, embedder: Embedder
) -> dict[Nearest, QueryVector | None]:
    found: dict[Nearest, QueryVector | None] = {}
    texts: dict[Request, dict[Nearest, str]] = defaultdict(dict)
    for term in _nearest_terms(ir):
        given = values.of(term.query) if is_given(term.query) else None
        if isinstance(given, str):
            found[term] = None
            if given.strip():
                texts[_request(ir, catalog, term)][term] = given
        else:
            found[term] = None if given is None else query_vector(np.array(given))
    for (model, dimension), wanted in texts.items():
        distinct = list(dict.fromkeys(wanted.values()))
        made = aside(
            partial(embedder.embed, distinct, dimension=dimension, task=Task.QUERY, model=model)
        )
        for term, text in wanted.items():
            found[term] = query_vector(made[distinct.index(text)])
    return found


def _nearest_terms(ir: QueryIR) -> tuple[Nearest, ...]:
    """Each `nearest` once."""
    terms = iter_terms(_exprs(ir))
    return tuple(dict.fromkeys(term for term in terms if isinstance(term, Nearest)))


def _request(ir: QueryIR, catalog: Catalog, term: Nearest) -> Request:
    """By which model, and how long, the vectors of the property are."""
    node = catalog.nodes[dict(ir.node_types)[term.field.variable]]
    embedding = node.embeddings.get(term.field.property)
    dimension = term.field.type.dimension
    if dimension is None:
        raise InvariantBroken(f"`nearest` reads a vector, not {term.field.type}")
    return None if embedding is None else embedding.model, dimension
