"""How a command starts: without pandas, which Arrow looks for as soon as it is used.

Where pandas is installed, for Spark or by chance, loading it takes as long as everything else that
a command loads. So commands hide it, and who needs it after all reveals it. A library hides nothing
from the program it is part of.
"""

from __future__ import annotations

import importlib.machinery
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_PANDAS: Final = "pandas"


def hide_pandas() -> None:
    """Let this process load no pandas, unless it has done so already."""
    if _HIDDEN not in sys.meta_path:
        sys.meta_path.insert(0, _HIDDEN)


def reveal_pandas() -> None:
    """Let it be loaded again."""
    if _HIDDEN in sys.meta_path:
        sys.meta_path.remove(_HIDDEN)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Hide pandas from the imports of a block: Arrow looks for it once, others find it later."""
    was_hidden = _HIDDEN in sys.meta_path
    hide_pandas()
    try:
        yield
    finally:
        if not was_hidden:
            reveal_pandas()


class _Hidden:
    """Finds pandas and does not load it: those who ask only whether it is there are told so.

    A finder and loader by its methods; the classes for that take longer to load than all of this.
    """

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _PANDAS:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> NoReturn:
        raise ModuleNotFoundError(f"{spec.name} is hidden from commands", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Never comes to this."""


_HIDDEN: Final = _Hidden()
