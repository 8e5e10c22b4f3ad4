"""Pages about the storage say what the code says, and lead to what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph_core
from omnigraph_core.history.log import COMMITS_SCHEMA
from omnigraph_core.history.runs import RUNS_SCHEMA
from omnigraph_core.manifest import layout
from omnigraph_core.manifest.rows import IMAGE_SCHEMA, RowKind
from tests.docs.snippets import pages
from tests.support.cases import each

ROOT = Path(__file__).parent.parent.parent
INTERNALS = ROOT / "docs" / "internals"
STORAGE_FORMAT = (INTERNALS / "storage-format.md").read_text()

_ROWS = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_DECLARED = re.compile(r'declare\(\s*"([^"]+)",\s*"([^"]+)"')
_LINK = re.compile(r"\]\(([^)#\s:]*)(?:#([^)\s]+))?\)")
_TEST = re.compile(r"`(tests/[\w/.]+)(?:::(\w+))?`")


def tables(text: str) -> list[list[list[str]]]:
    """The rows of every table of a page, without their heads."""
    found = _ROWS.findall(text)
    return [
        [[cell.strip().strip("`") for cell in row.strip("| ").split(" | ")] for row in rows]
        for rows in (table.splitlines()[2:] for table in found)
    ]


def columns(schema: pa.Schema) -> list[str]:
    return [
        f"{field.name} {_spelling(field.type)}{'' if field.nullable else ', not null'}"
        for field in schema
    ]


def _spelling(type: pa.DataType) -> str:
    return f"list of {type.value_type}" if pa.types.is_list(type) else str(type)


@pytest.mark.parametrize("schema", [IMAGE_SCHEMA, COMMITS_SCHEMA, RUNS_SCHEMA])
def test_the_storage_format_lists_the_columns(schema: pa.Schema) -> None:
    documented = [[f"{row[0]} {row[1]}" for row in table] for table in tables(STORAGE_FORMAT)]
    assert columns(schema) in documented


def test_the_storage_format_lists_the_kinds_of_rows() -> None:
    assert list(RowKind) in [[row[0] for row in table] for table in tables(STORAGE_FORMAT)]


def test_the_storage_format_lists_every_place() -> None:
    places = {value for value in vars(layout).values() if isinstance(value, str)}
    places = {place for place in places if re.fullmatch(r"_[\w/.]+", place)}
    assert layout.MANIFEST in places
    drawing = STORAGE_FORMAT.split("```")[1]
    assert [place for place in sorted(places) if f"  {place}/" not in drawing] == []


def test_the_write_path_tells_what_a_crash_leaves_at_every_failpoint() -> None:
    package = Path(omnigraph_core.__file__).parent
    sources = [path.read_text() for path in package.rglob("*.py")]
    declared = dict(found for source in sources for found in _DECLARED.findall(source))
    section = (INTERNALS / "write-path.md").read_text().split("## Killed here\n")[1]
    documented = {row[0]: row[1] for row in tables(section.split("\n## ")[0])[0]}
    assert documented == declared


def test_every_invariant_is_guarded_by_tests_that_exist() -> None:
    text = (INTERNALS / "invariants.md").read_text()
    numbered = re.split(r"^\*\*I(\d+)\. ", text, flags=re.MULTILINE)[1:]
    assert [int(number) for number in numbered[::2]] == list(range(1, len(numbered) // 2 + 1))
    for invariant in numbered[1::2]:
        guards = _TEST.findall(invariant)
        assert guards, invariant
        for path, test in guards:
            assert (ROOT / path).exists(), path
            assert not test or f"def {test}(" in (ROOT / path).read_text(), f"{path}::{test}"


@each("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for path, heading in _LINK.findall(page.read_text()):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if heading:
            assert heading in headings(target), f"{path}#{heading}"


def headings(page: Path) -> set[str]:
    """The anchors of a page, as they are derived from its headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
