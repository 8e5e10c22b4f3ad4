"""The page on omnigraph.yaml shows every member the file may have, and none that means nothing."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from omnigraph_core.config.load import load_config
from omnigraph_core.config.reader import Section

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "config.md"


def test_the_example_is_a_whole_configuration(tmp_path: Path) -> None:
    (example,) = re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "omnigraph.yaml"
    path.write_text(example)
    assert load_config(path).warnings == ()
    asked = _members_asked_for(path)
    shown = {name for name in _names(yaml.safe_load(example)) if name in asked}
    assert asked - {"targets"} == shown


def _members_asked_for(path: Path) -> set[str]:
    """Every name the loader looks for, wherever it looks."""
    asked: set[str] = set()
    value = Section._value

    def noting(section: Section, name: str) -> object:
        if section.path not in ("graphs", "targets", "aliases"):
            asked.add(name)
        return value(section, name)

    Section._value = noting  # type: ignore[method-assign, assignment]
    try:
        load_config(path)
    finally:
        Section._value = value  # type: ignore[method-assign]
    return asked


def _names(document: object) -> set[str]:
    if not isinstance(document, dict):
        return set()
    return {*document, *(name for inner in document.values() for name in _names(inner))}
