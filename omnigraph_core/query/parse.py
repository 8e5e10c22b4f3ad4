"""Query text to AST.

One pass of an LALR parser over the whole text; when that fails, every query is parsed on its own,
so each broken one is reported. No lark exception leaves this module.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final, cast

from lark import Lark, TextSlice, UnexpectedInput

from omnigraph_core.constants import MAX_NESTING
from omnigraph_core.diagnostics import Diagnostics, Source, Span
from omnigraph_core.errors import QuerySyntaxError
from omnigraph_core.query.syntax_errors import describe
from omnigraph_core.query.tree import CODE, PROBLEMS, TreeBuilder
from omnigraph_core.syntax import chunks, lone_surrogate, nested_deeper_than

if TYPE_CHECKING:
    from omnigraph_core.query import ast

_QUERY_START: Final = re.compile(r"(?<![\w$.@])query\s+[a-z_]\w*\s*\(")


def parse_queries(text: str, name: str = "<query>") -> ast.QueryFile:
    """The AST of a query file.

    Raises:
        QuerySyntaxError: with every syntax problem found.
    """
    problems = Diagnostics(Source(text, name))
    if broken := lone_surrogate(text):
        problems.add(CODE, "half of a surrogate pair", broken, hint="send the text as UTF-8")
        raise QuerySyntaxError(problems.found)
    try:
        file = _parse(text, Span(0, len(text)), problems)
    except UnexpectedInput:
        raise QuerySyntaxError(_problems_by_query(problems.source).found) from None
    # After the parse: brackets are known to match, and one query's do not count for the next.
    if deep := nested_deeper_than(MAX_NESTING.value, text):
        problems.add(CODE, f"nested more than {MAX_NESTING.value} levels deep", deep)
    if problems:
        raise QuerySyntaxError(problems.found)
    return file


def _parse(text: str, part: Span, problems: Diagnostics) -> ast.QueryFile:
    token = PROBLEMS.set(problems)
    try:
        # Lark's signature promises a tree; with a transformer it returns what the start rule built.
        return cast("ast.QueryFile", _parser().parse(TextSlice(text, part.start, part.end)))
    finally:
        PROBLEMS.reset(token)


@cache
def _parser() -> Lark:
    grammar = resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        transformer=TreeBuilder(),
        keep_all_tokens=True,
        maybe_placeholders=False,
    )


def _problems_by_query(source: Source) -> Diagnostics:
    problems = Diagnostics(source)
    for part in chunks(source.text, _QUERY_START):
        try:
            _parse(source.text, part, problems)
        except UnexpectedInput as error:
            found = describe(error, source.text, part)
            problems.add(CODE, found.message, found.span, hint=found.hint)
    return problems
