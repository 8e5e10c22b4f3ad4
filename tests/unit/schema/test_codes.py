"""The code table: shape and order."""

from __future__ import annotations

import re
from pathlib import Path

from omnigraph_core.schema.codes import SCHEMA_CODES


def test_codes_are_numbered_without_gaps() -> None:
    numbers: dict[str, list[int]] = {"P": [], "C": []}
    for code in SCHEMA_CODES:
        numbers[code[0]].append(int(code[1:]))
    assert numbers == {"P": list(range(1, 27)), "C": list(range(1, 5))}


def test_titles_are_one_line_without_a_full_stop() -> None:
    for title in SCHEMA_CODES.values():
        assert re.fullmatch(r"[^\n]{10,100}(?<!\.)", title), title


def test_the_reference_lists_exactly_these_codes() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "schema-language.md"
    rows = re.findall(r"^\| ([PC]\d+) \| (.+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows) == SCHEMA_CODES
    assert len(rows) == len(SCHEMA_CODES)
