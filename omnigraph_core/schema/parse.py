"""Schema text to AST, or every reason why not.

The text is read whole before anything is raised; an AST that leaves here has no problem of grammar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import SchemaSyntaxError
from omnigraph_core.schema.read import read_schema

if TYPE_CHECKING:
    from omnigraph_core.schema import ast


def parse_schema(text: str, name: str = "<schema>") -> ast.Schema:
    """The AST of a schema text.

    Raises:
        SchemaSyntaxError: with every syntax problem found.
    """
    parsed = read_schema(text, name)
    if parsed.problems or not parsed.is_complete:
        raise SchemaSyntaxError(parsed.problems.found)
    return parsed.schema
