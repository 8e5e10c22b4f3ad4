"""What to read from, as requests say it: a branch, a commit, a tag or a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import ConfigError
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


def only_branch(target: str | ReadTarget | Snapshot, method: str) -> str:
    """The branch a target names.

    Raises:
        ConfigError: it names something else; a server tells this of branches alone.
    """
    place = place_of(target)
    if "branch" not in place:
        raise ConfigError(f"behind a server `{method}` takes a branch, no commit, tag or snapshot")
    return str(place["branch"])


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
