"""Fenced blocks of the Markdown pages, with their place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    page: str
    line: int
    language: str
    arguments: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Every Markdown page a reader may follow."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def snippets(page: Path) -> list[Snippet]:
    """The fenced blocks of one page, in order."""
    text = page.read_text()
    found = []
    for match in _FENCE.finditer(text):
        language, *arguments = match[1].split() or [""]
        line = text.count("\n", 0, match.start()) + 1
        name = str(page.relative_to(ROOT))
        found.append(Snippet(name, line, language, tuple(arguments), match[2]))
    return found


def all_snippets() -> list[Snippet]:
    return [snippet for page in pages() for snippet in snippets(page)]
