"""What a branch shows is changed in one place: nothing goes around the publisher and its door."""

from __future__ import annotations

import ast
from pathlib import Path

import omnigraph_core
from tests.support.cases import each

PACKAGE = Path(omnigraph_core.__file__).parent


def users_of(module: str, name: str) -> set[str]:
    """The modules that import a name, or the module it is in and then use it."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        imported = {
            f"{node.module}.{alias.name}": alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        holder = imported.get(module)
        is_used = any(
            isinstance(node, ast.Attribute)
            and node.attr == name
            and isinstance(node.value, ast.Name)
            and node.value.id == holder
            for node in ast.walk(tree)
        )
        if f"{module}.{name}" in imported or is_used:
            found.add(str(path.relative_to(PACKAGE)))
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
