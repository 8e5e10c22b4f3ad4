"""Every production of both grammars is reached by an accepted text case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lark import Lark, UnexpectedInput

import omnigraph_core
from tests.support.corpus import load_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PACKAGE = Path(omnigraph_core.__file__).parent


def unreached(grammar: Path, start: str, texts: Iterable[str]) -> list[str]:
    """Productions no text makes use of, as `rule: expansion`."""
    parser = Lark(grammar.read_text(), parser="lalr", lexer="contextual", start=start)
    callbacks = parser.parser.parser.parser.callbacks
    missing = set(callbacks)

    def noting(rule: object, build: Callable[[object], object]) -> Callable[[object], object]:
        def noted(children: object) -> object:
            seen.add(rule)
            return build(children)

        return noted

    for rule, build in list(callbacks.items()):
        callbacks[rule] = noting(rule, build)
    for text in texts:
        seen: set[object] = set()
        try:
            parser.parse(text)
        except UnexpectedInput:
            continue  # a refused text reaches productions by accident
        missing -= seen
    return sorted(
        f"{rule.origin.name}: {' '.join(symbol.name for symbol in rule.expansion)}"
        for rule in missing
    )


@pytest.mark.parametrize(
    ("language", "start", "stage"),
    [("schema", "schema", "parse_schema"), ("query", "start", "parse_query")],
)
def test_every_production_has_a_case(language: str, start: str, stage: str) -> None:
    texts = [case.sections[0] for case in load_cases(stage)]
    assert unreached(PACKAGE / language / "grammar.lark", start, texts) == []
