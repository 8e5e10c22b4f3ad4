"""Text cases under tests/corpus: `=== title`, sections split by `---`, the last one expected.

Run pytest with CORPUS_UPDATE=1 to rewrite expectations, then read the diff.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "corpus"


@dataclass(frozen=True)
class Case:
    file: Path
    title: str
    sections: tuple[str, ...]

    @property
    def expected(self) -> str:
        return self.sections[-1]

    def __str__(self) -> str:
        return f"{self.file.stem}: {self.title}"


def case_files(stage: str) -> list[str]:
    """Names of the files of a stage: a test of slower cases takes one file at a time."""
    return sorted(path.stem for path in (CORPUS / stage).glob("*.case"))


def load_cases(stage: str) -> list[Case]:
    """Every case of a stage, in file and line order; a stage without cases is a mistake."""
    cases = [case for path in sorted((CORPUS / stage).glob("*.case")) for case in _read(path)]
    assert cases, f"no cases in {CORPUS / stage}"
    return cases


def check_case(case: Case, actual: str) -> None:
    """Compare with the expectation, or rewrite it when CORPUS_UPDATE=1."""
    actual = actual.rstrip()
    if os.environ.get("CORPUS_UPDATE") == "1" and actual != case.expected:
        _rewrite(case, actual)
        return
    assert actual == case.expected


def _read(path: Path) -> list[Case]:
    cases: list[Case] = []
    title, lines = "", list[str]()
    for line in [*path.read_text().split("\n"), "=== "]:
        if line.startswith("=== "):
            if title:
                cases.append(Case(path, title, _sections(lines)))
            title, lines = line[4:].strip(), []
        else:
            lines.append(line)
    titles = [case.title for case in cases]
    assert len(titles) == len(set(titles)), f"{path.name}: titles repeat"
    return cases


def _sections(lines: list[str]) -> tuple[str, ...]:
    sections: list[list[str]] = [[]]
    for line in lines:
        if line == "---":
            sections.append([])
        else:
            sections[-1].append(line)
    return tuple("\n".join(part).strip("\n") for part in sections)


def _rewrite(case: Case, actual: str) -> None:
    blocks = []
    for other in _read(case.file):
        last = actual if other.title == case.title else other.expected
        body = "\n---\n".join([*other.sections[:-1], last])
        blocks.append(f"=== {other.title}\n{body}\n")
    case.file.write_text("\n".join(blocks))
