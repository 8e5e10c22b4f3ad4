"""A policy kept in a file: whoever changes the file changes what is allowed, without a restart.

A new version that is wrong changes nothing and is logged; the policy before it stays in force.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.errors import ConfigError
from omnigraph_core.policy.authorize import Policy
from omnigraph_core.policy.load import load_policy

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.policy.model import Decision, PolicyDocument, Request

_LOG: Final = logging.getLogger("omnigraph.policy")
_EVERY: Final = 1.0
"""Seconds between two looks at the file."""

_Stamp: TypeAlias = tuple[int, int, int] | None
"""What changes with the file; None if it is not there."""


class PolicyFile:
    """A judge by a file. Safe to share between threads."""

    def __init__(self, path: Path, resource: str, *, look_every: float = _EVERY) -> None:
        """
        Raises:
            ConfigError: the file is missing or wrong; tells every problem.
        """
        self.path = path
        self._resource = resource
        self._every = look_every
        self._lock = threading.Lock()
        self._stamp = _stamp(path)
        self._policy = self._loaded()
        self._looked = time.monotonic()

    @property
    def document(self) -> PolicyDocument:
        """What is in force."""
        return self._current().document

    def decide(self, request: Request) -> Decision:
        return self._current().decide(request)

    def _current(self) -> Policy:
        is_due = time.monotonic() - self._looked >= self._every
        # One thread looks; the others go on with what is known.
        if is_due and self._lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._lock.release()
        return self._policy

    def _look(self) -> None:
        stamp = _stamp(self.path)
        if stamp != self._stamp:
            self._reload(stamp)
        self._looked = time.monotonic()

    def _reload(self, stamp: _Stamp) -> None:
        self._stamp = stamp  # taken before reading: what is written meanwhile is seen next time
        try:
            self._policy = self._loaded()
        except ConfigError as problem:
            _LOG.error("the policy before stays in force: %s", problem)
            return
        _LOG.info("policy loaded anew from %s", self.path)

    def _loaded(self) -> Policy:
        document = load_policy(self.path)
        for warning in document.warnings:
            _LOG.warning("%s", warning)
        return Policy(document, self._resource)


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
