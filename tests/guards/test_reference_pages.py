"""Reference pages list exactly what the code has."""

from __future__ import annotations

import re
from pathlib import Path

from omnigraph_core.constants import CONSTANTS
from omnigraph_core.errors import OmnigraphError
from omnigraph_core.query.codes import QUERY_CODES
from omnigraph_core.schema.codes import SCHEMA_CODES
from omnigraph_core.schema.migrate import MIGRATION_CODES
from omnigraph_core.settings import SETTINGS

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"


def table(page: str, heading: str) -> dict[str, tuple[str, ...]]:
    """Rows of the first table under a heading: first cell → the others, backticks removed."""
    text = (REFERENCE / page).read_text()
    section = re.split(r"^## ", text.split(f"## {heading}\n", 1)[1], flags=re.MULTILINE)[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    cells = [tuple(re.sub(r"^`([^`]*)`$", r"\1", cell.strip()) for cell in row) for row in rows[2:]]
    return {row[0]: row[1:] for row in cells}


def subclasses(root: type[OmnigraphError]) -> list[type[OmnigraphError]]:
    return [root, *(item for child in root.__subclasses__() for item in subclasses(child))]


def summary(cls: type[OmnigraphError]) -> str:
    assert cls.__doc__ is not None
    return " ".join(cls.__doc__.split())


def test_errors_page_lists_every_class() -> None:
    expected = {
        cls.code: (cls.__name__, str(cls.kind), "yes" if cls.retryable else "no", summary(cls))
        for cls in subclasses(OmnigraphError)
    }
    assert table("errors.md", "Error classes") == expected


def test_errors_page_lists_every_schema_code() -> None:
    assert table("errors.md", "Schema codes") == {c: (t,) for c, t in SCHEMA_CODES.items()}


def test_errors_page_lists_every_migration_code() -> None:
    assert table("errors.md", "Migration codes") == {c: (t,) for c, t in MIGRATION_CODES.items()}


def test_errors_page_lists_every_query_code() -> None:
    assert table("errors.md", "Query codes") == {c: (t,) for c, t in QUERY_CODES.items()}


def test_settings_page_lists_every_variable() -> None:
    expected = {
        s.name: ("unset" if s.default in (None, {}) else repr(s.default), s.about) for s in SETTINGS
    }
    found = table("settings.md", "Environment variables")
    assert {name: (row[0], row[1]) for name, row in found.items()} == expected


def test_settings_page_lists_every_constant() -> None:
    expected = {c.name: (str(c.value), c.about) for c in CONSTANTS}
    assert table("settings.md", "Constants") == expected
