"""Something that happens at the worst moment, in between two steps of something else."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.failpoints import Failpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def meanwhile(act: Callable[[], object], *, at: str = "publish.before_image") -> Iterator[None]:
    """Does something, once, when a failpoint is reached: by default when all of the next commit is
    staged and nothing is published."""
    is_done = False

    def interfere(point: Failpoint) -> None:
        nonlocal is_done
        if point.name == at:
            patch.undo()
            act()
            is_done = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Failpoint, "hit", interfere)
        yield
    assert is_done, f"nobody came to {at}"
