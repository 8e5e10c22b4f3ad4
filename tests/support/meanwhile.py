"""Something that happens at the worst moment of a write: all is staged, nothing is published."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.failpoints import Failpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def meanwhile(act: Callable[[], object]) -> Iterator[None]:
    """Does something, once, when the next commit is about to be published."""
    is_done = False

    def interfere(at: Failpoint) -> None:
        nonlocal is_done
        if at.name == "publish.before_image":
            patch.undo()
            act()
            is_done = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Failpoint, "hit", interfere)
        yield
    assert is_done, "nothing was about to be published"
