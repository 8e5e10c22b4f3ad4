"""Which snapshot a command reads: options come in, what the engine takes as a target goes out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph_core.cli.options import MAIN
from omnigraph_core.ids import is_ulid

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.manifest.snapshot import Snapshot

BranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="Branch to read.  [default: main]")
]
SnapshotOption = Annotated[
    str | None, typer.Option("--snapshot", metavar="ID", help="Commit to read, in place of a head.")
]
TagOption = Annotated[str | None, typer.Option("--tag", metavar="NAME", help="Tag to read.")]
VersionOption = Annotated[
    int | None,
    typer.Option("--version", metavar="N", help="The branch at this manifest version."),
]
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="The branch as it was then: 2031-05-02T10:00:00Z."),
]


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
        from omnigraph_core.history.snapshots import ReadTarget  # beside the engine, open by now

        if self.snapshot is not None:
            return ReadTarget(snapshot_id=self.snapshot)
        if self.tag is not None:
            return ReadTarget(tag=self.tag)
        if self.version is not None:
            return graph.snapshot_at_version(self.version, branch=self.branch)
        if self.moment is not None:
            return graph.snapshot_at_time(self.moment, branch=self.branch)
        return self.branch


def which_snapshot(
    branch: str | None,
    snapshot: str | None,
    tag: str | None,
    version: int | None,
    at: str | None,
    *,
    usual: str = MAIN,
) -> Which:
    """
    Args:
        usual: the branch if none is named.

    Raises:
        typer.BadParameter: options that exclude each other, or no moment.
    """
    given = {"--snapshot": snapshot, "--tag": tag, "--version": version, "--at": at}
    named = [name for name, value in given.items() if value is not None]
    # A version or a moment is one of a branch; a commit or a tag stands for itself.
    if branch is not None and (snapshot is not None or tag is not None):
        named.insert(0, "--branch")
    if len(named) > 1:
        raise typer.BadParameter(f"{' and '.join(named)} exclude each other")
    return Which(branch or usual, snapshot, tag, version, None if at is None else _moment(at))


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as problem:
        raise typer.BadParameter(
            f"--at {text!r}: expected a moment as 2031-05-02T10:00:00Z"
        ) from problem


def named_target(text: str) -> ReadTarget:
    """What a text names: `tag:NAME`, a commit id, or a branch; `branch:NAME` for one that looks
    like either.

    Raises:
        typer.BadParameter: it names nothing.
    """
    from omnigraph_core.history.snapshots import ReadTarget  # slow: beside the storage code

    name = text.strip()
    kind, colon, rest = name.partition(":")
    if not name or (colon and not rest):
        raise typer.BadParameter(f"{text!r}: expected a branch, a commit id or tag:NAME")
    if colon and kind in ("tag", "branch"):
        return ReadTarget(tag=rest) if kind == "tag" else ReadTarget(branch=rest)
    return ReadTarget(snapshot_id=name) if is_ulid(name) else ReadTarget(branch=name)
