"""Every hint can be had: each is the answer to some refused case of the corpus."""

from __future__ import annotations

import re

from omnigraph_core.query.syntax_hints import _HINTS, _NAME
from tests.support.cases import each
from tests.support.corpus import load_cases

EXPECTATIONS = "\n".join(case.expected for case in load_cases("parse_query"))


@each("hint", sorted({hint.text for hint in _HINTS}))
def test_a_refused_case_shows_the_hint(hint: str) -> None:
    shown = r"@?\w+".join(map(re.escape, hint.split(_NAME)))
    assert re.search(f"hint: {shown}$", EXPECTATIONS, re.MULTILINE)


def test_messages_never_name_a_terminal() -> None:
    said = re.findall(r"error Q000: expected (.*), found", EXPECTATIONS)
    assert said
    assert not [text for text in said if re.search(r"(?<!`)\b[A-Z]{2,}\b", text)]
