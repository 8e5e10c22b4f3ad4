"""How a command starts: without pandas, which Arrow looks for as soon as it is used.

Where pandas is installed, for Spark or by chance, loading it takes as long as everything else that
a command loads. So commands hide it, and who needs it after all reveals it. Arrow looks once and
remembers the answer; when pandas is loaded after all, Arrow is made to look again. A library hides
nothing from the program it is part of.
"""

from __future__ import annotations

import importlib.machinery
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

_PANDAS: Final = "pandas"


def hide_pandas() -> None:
    """Let this process load no pandas, unless it has done so already."""
    if _REVEALED in sys.meta_path:
        sys.meta_path.remove(_REVEALED)
    if _HIDDEN not in sys.meta_path:
        sys.meta_path.insert(0, _HIDDEN)


def reveal_pandas() -> None:
    """Let it be loaded again, and Arrow use it from then on."""
    if _HIDDEN in sys.meta_path:
        sys.meta_path[sys.meta_path.index(_HIDDEN)] = _REVEALED


@contextmanager
def without_pandas() -> Iterator[None]:
    """Hide pandas from the imports of a block, for which Arrow looks in vain; others find it later.

    Until somebody loads it, Arrow goes on without it.
    """
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


class _Revealed:
    """Finds pandas where it is, and has Arrow look for it again once it is loaded.

    Asking whether it is there changes nothing: many packages ask, and Arrow would load it.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _PANDAS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                _have_arrow_look_again()
                execute(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _have_arrow_look_again() -> None:
    """Forget that Arrow has found no pandas; else its NaN would be no null, and much more."""
    arrow = sys.modules.get("pyarrow.lib")
    if arrow is not None:
        arrow._pandas_api.__init__()


_HIDDEN: Final = _Hidden()
_REVEALED: Final = _Revealed()
