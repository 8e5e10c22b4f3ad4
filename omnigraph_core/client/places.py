"""What to read from, as requests say it: a branch, a commit, a tag or a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import ConfigError, SnapshotNotFound
from omnigraph_core.ids import is_ulid
from omnigraph_core.manifest.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph_core.history.snapshots import ReadTarget


def place_of(target: str | ReadTarget | Snapshot) -> dict[str, object]:
    """The parameters that name a target; text is a branch.

    >>> place_of("review")
    {'branch': 'review'}
    """
    if isinstance(target, str):
        return {"branch": target}
    if isinstance(target, Snapshot):
        return {"snapshot": target.commit.graph_commit_id}
    given = {"branch": target.branch, "snapshot": target.snapshot_id, "tag": target.tag}
    return {name: value for name, value in given.items() if value is not None}


def text_of(target: str | ReadTarget) -> str:
    """A target as one text: a branch, a commit id, or `tag:` and a name.

    >>> text_of("review"), text_of("01M7HCRA2YB7TR5DXVE32ATFRJ")
    ('review', 'branch:01M7HCRA2YB7TR5DXVE32ATFRJ')
    """
    ((kind, name),) = place_of(target).items()
    if kind == "snapshot":
        return str(name)
    is_plain = kind == "branch" and not is_ulid(str(name)) and ":" not in str(name)
    return str(name) if is_plain else f"{kind}:{name}"


def check_version(version: int, branch: str) -> int:
    """A manifest version that can be asked for.

    Raises:
        SnapshotNotFound: no branch ever has it, which a server would not even look for.
    """
    if 0 <= version < 2**63:
        return version
    raise SnapshotNotFound(
        f"no version {version} on {branch}",
        hint="not published yet, or removed by cleanup; `list_commits` shows the versions",
    )


def refuse_actor(actor: str | None) -> None:
    """
    Raises:
        ConfigError: an actor is named; a server knows whom a token stands for.
    """
    if actor is not None:
        raise ConfigError(
            f"`actor` is {actor!r}, but the token says who acts on a graph behind a server",
            hint="leave it out, and connect with the token of that actor",
        )


def refuse_engine(engine: str) -> None:
    """
    Raises:
        ConfigError: an engine is asked for, which is for the server to choose.
    """
    if engine != "auto":
        raise ConfigError(
            f"the engine `{engine}` was asked for, but the server chooses it",
            hint="leave it out, or open the graph where it is kept",
        )
