"""Compiled queries, kept: compiling costs more than many a query does.

A kept one counts only for the very catalog it was compiled against.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from omnigraph_core.ir.compile import compile_one

if TYPE_CHECKING:
    from omnigraph_core.ir.compile import CompiledQuery
    from omnigraph_core.schema.catalog import Catalog

_MAX_QUERIES: Final = 512
_MAX_LENGTH: Final = 32_768
"""Characters of a text that is kept: longer ones are written by programs, for one time."""


class QueryCache:
    """The queries compiled last. Safe to share between threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str | None], tuple[Catalog, CompiledQuery]] = (
            OrderedDict()
        )
        self._lock = threading.Lock()

    def compiled(self, text: str, name: str | None, catalog: Catalog) -> CompiledQuery:
        """One query of a text; the name may be left out when there is only one.

        Raises:
            CompileError: every problem of that query.
            QueryNotFound: no query of that name, or several to choose from and no name.
        """
        key = (text, name)
        kept = self._kept.get(key)
        if kept is not None and kept[0] is catalog:
            return kept[1]
        query = compile_one(text, catalog, name)
        if len(text) > _MAX_LENGTH:
            return query
        with self._lock:
            self._kept[key] = (catalog, query)
            self._kept.move_to_end(key)
            if len(self._kept) > _MAX_QUERIES:
                self._kept.popitem(last=False)
        return query
