"""Every method of a graph is called by the tests of behaviour, which run on every way to reach it.

A method is called there on something that is a graph by its name: `graph`, `at_hand`, an actor.
"""

from __future__ import annotations

import ast
from pathlib import Path

from omnigraph_core.client.remote import RemoteGraph
from omnigraph_core.engine.omnigraph import Omnigraph

TESTS = Path(__file__).parent.parent / "behaviour"
GRAPHS = {"graph", "at_hand", "place.graph", "place.at_hand", "Omnigraph", "opened", "ada", "bob"}
BY_WITH = {"close"}
"""Called at the end of a `with` block, as every graph of these tests is."""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def used() -> set[str]:
    trees = (ast.parse(path.read_text()) for path in TESTS.glob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {node.attr for node in nodes if ast.unparse(node.value) in GRAPHS}


def test_every_method_is_called() -> None:
    methods = public(Omnigraph) | public(RemoteGraph)
    assert sorted(methods - used() - BY_WITH) == []
