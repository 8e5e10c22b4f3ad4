"""Histories as short text, to be drawn."""

from __future__ import annotations

from omnigraph_core.manifest.image import GraphCommit


def history(text: str) -> list[GraphCommit]:
    """Commits from oldest to newest: `a b:a c:a d:b+c` names each with its parents."""
    found = []
    for age, word in enumerate(text.split()):
        name, _, parents = word.partition(":")
        first, _, merged = parents.partition("+")
        commit = GraphCommit(name, None, "i", age, first or None, merged or None, None, age, "load")
        found.append(commit)
    return found
