"""What a branch shows is changed in one place: nothing goes around the publisher and its door."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import omnigraph_core
from tests.support.cases import each

PACKAGE = Path(omnigraph_core.__file__).parent


def users_of(module: str, name: str) -> set[str]:
    """The modules that import a name, or the module it is in and then use it."""
    return {
        path
        for path, (imported, used) in imports_and_uses().items()
        if f"{module}.{name}" in imported or (imported.get(module), name) in used
    }


@cache
def imports_and_uses() -> dict[str, tuple[dict[str, str], set[tuple[str, str]]]]:
    """By module: the local name of each import, and the attributes that are taken of names."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        imported = {
            f"{node.module}.{alias.name}": alias.asname or alias.name
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        used = {
            (node.value.id, node.attr)
            for node in nodes
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        found[str(path.relative_to(PACKAGE))] = (imported, used)
    return found


@each(
    ("module", "name", "users"),
    [
        ("omnigraph_core.manifest.publisher", "publish", {"history/door.py"}),
        ("omnigraph_core.storage.image", "try_commit", {"manifest/publisher.py"}),
        ("omnigraph_core.storage.image", "create_image", {"manifest/catalog.py"}),
        ("omnigraph_core.storage.image", "create_own_image", {"manifest/catalog.py"}),
        ("omnigraph_core.manifest.catalog", "create_main_catalog", {"engine/lifecycle.py"}),
        ("omnigraph_core.manifest.catalog", "create_branch_catalog", {"history/branches.py"}),
        (
            "lance.dataset.LanceDataset",
            "commit",
            {"storage/create.py", "storage/detached.py", "storage/image.py", "storage/log.py"},
        ),
    ],
)
def test_who_writes(module: str, name: str, users: set[str]) -> None:
    assert users_of(module, name) == users
