"""Which state of a graph a request is about: its words come in, what the engine takes goes out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from omnigraph_core.errors import ConfigError
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.ids import is_ulid
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph


@dataclass(frozen=True, slots=True)
class Which:
    """A branch, now or as it was; or what a commit or a tag names."""

    branch: str
    snapshot: str | None = None
    tag: str | None = None
    version: int | None = None
    moment: datetime | None = None

    @property
    def is_head(self) -> bool:
        given = (self.snapshot, self.tag, self.version, self.moment)
        return all(item is None for item in given)

    def target(self, graph: Omnigraph) -> str | ReadTarget | Snapshot:
        """
        Raises:
            NotFoundError: there is no such thing.
        """
        if self.snapshot is not None:
            return ReadTarget(snapshot_id=self.snapshot)
        if self.tag is not None:
            return ReadTarget(tag=self.tag)
        if self.version is not None:
            return graph.snapshot_at_version(self.version, branch=self.branch)
        if self.moment is not None:
            return graph.snapshot_at_time(self.moment, branch=self.branch)
        return self.branch

    @property
    def read_target(self) -> ReadTarget:
        """The same for a branch, a commit or a tag as it is now."""
        if self.snapshot is None and self.tag is None:
            return ReadTarget(branch=self.branch)
        return ReadTarget(snapshot_id=self.snapshot, tag=self.tag)

    def found(self, graph: Omnigraph) -> Snapshot:
        """
        Raises:
            NotFoundError: there is no such thing.
        """
        target = self.target(graph)
        return target if isinstance(target, Snapshot) else graph.snapshot_of(target)


def which(
    branch: str | None = None,
    snapshot: str | None = None,
    tag: str | None = None,
    version: int | None = None,
    at: str | None = None,
) -> Which:
    """
    Raises:
        ConfigError: places that exclude each other, or no moment.
    """
    given = {"snapshot": snapshot, "tag": tag, "version": version, "at": at}
    named = [name for name, value in given.items() if value is not None]
    # A version or a moment is one of a branch; a commit or a tag stands for itself.
    if branch is not None and (snapshot is not None or tag is not None):
        named.insert(0, "branch")
    if len(named) > 1:
        raise ConfigError(f"{' and '.join(named)} exclude each other")
    moment = None if at is None else _moment(at)
    return Which(MAIN if branch is None else branch, snapshot, tag, version, moment)


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as problem:
        raise ConfigError(f"at: {text!r} is no moment", hint="as 2031-05-02T10:00:00Z") from problem


def named_target(text: str) -> ReadTarget:
    """What a text names: `tag:NAME`, a commit id, or a branch; `branch:NAME` for one that looks
    like either.

    Raises:
        ConfigError: it names nothing.
    """
    name = text.strip()
    kind, colon, rest = name.partition(":")
    if not name or (colon and not rest):
        raise ConfigError(f"{text!r} names nothing", hint="give a branch, a commit id or tag:NAME")
    if colon and kind in ("tag", "branch"):
        return ReadTarget(tag=rest) if kind == "tag" else ReadTarget(branch=rest)
    return ReadTarget(snapshot_id=name) if is_ulid(name) else ReadTarget(branch=name)
