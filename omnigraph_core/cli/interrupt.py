"""Ctrl-C: one line that says what became of the work, and exit code 130."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from omnigraph_core.errors import BranchNotFound, OmnigraphError, PolicyDenied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.engine.omnigraph import Omnigraph

INTERRUPTED: Final = 130


@contextmanager
def interruptible(outcome: Callable[[], str]) -> Iterator[None]:
    """Run the block; if it is interrupted, tell the outcome and leave."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {outcome()}", err=True)
        raise typer.Exit(INTERRUPTED) from None


class Witness:
    """Remembers where a branch stood, to tell afterwards whether anything has landed on it."""

    def __init__(self, graph: Omnigraph, branch: str | None, fork_of: str | None = None) -> None:
        """
        Args:
            branch: None if the actor may not know it.
        """
        self._graph = graph
        self._branch = branch
        self._is_blind = branch is None
        try:
            self._before = self._head()
            if self._before is None and fork_of is not None:
                self._before = graph.head_commit_id_for_branch(fork_of)
        except PolicyDenied:
            self._is_blind = True  # whoever may write need not be one who may read

    def outcome(self, done: str) -> str:
        """What to tell of a write that was to be `done`, as in "nothing was loaded".

        A commit that came meanwhile may be this write's or another one's.
        """
        if self._is_blind:
            return f"cannot tell whether anything was {done}, the branch may not be read"
        try:
            now = self._head()
        except OmnigraphError:
            return f"cannot tell whether anything was {done}, the store does not answer"
        if now in (None, self._before):
            return f"nothing was {done}"
        return f"the write may have landed, {self._branch} is at commit {now} now"

    def _head(self) -> str | None:
        if self._branch is None:
            return None
        try:
            return self._graph.head_commit_id_for_branch(self._branch)
        except BranchNotFound:
            return None
