"""The comparing half of a graph behind a server: diffs, and the feed of changes.

Diffs that are read one by one arrive as lines: the first sums up, each other is a change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.client.decode.changes import decode_change, decode_changes, decode_page
from omnigraph_core.client.decode.reading import understood
from omnigraph_core.client.places import place_of, refuse_engine
from omnigraph_core.client.requests import NDJSON, ask, get, segment
from omnigraph_core.client.streams import Lines, iter_documents
from omnigraph_core.diff.model import EVERYTHING
from omnigraph_core.errors import ConfigError
from omnigraph_core.manifest.image import MAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.client.requests import Call
    from omnigraph_core.client.transport import Transport
    from omnigraph_core.diff.model import ChangeFilter, ChangePage, ChangeSet, EntityChange
    from omnigraph_core.history.snapshots import ReadTarget

_AUTO: Final = "auto"
_MOST_COMMITS: Final = 128
_MOST_CHANGES: Final = 1_000
"""The bounds of a page that a graph at hand has; a test compares them."""
_COMMITS_PER_PAGE: Final = 10_000
_CHANGES_PER_PAGE: Final = 100_000
"""What a server gives at most; the next page has the rest."""


@dataclass(frozen=True, slots=True)
class RemoteDiff:
    """Two states compared: how much differs where, and the changes as they are asked for."""

    summary: ChangeSet
    """With the counts of all, and none of the changes."""
    _http: Transport
    _call: Callable[[bool, int | None], Call]

    def iter_changes(
        self, *, has_values: bool = True, limit: int | None = None
    ) -> Iterator[EntityChange]:
        """The changes, `limit` of them at most."""
        return iter_changes(self._http, self._call(has_values, limit))


class Diffs:
    """What differs between states of a graph."""

    _http: Transport

    def diff_between(
        self,
        source: str | ReadTarget,
        target: str | ReadTarget,
        filter: ChangeFilter | None = None,
        *,
        has_values: bool = True,
        limit: int | None = None,
        engine: str = _AUTO,
    ) -> ChangeSet:
        """What has to change for `source` to be as `target` is: branches, commits or tags."""
        refuse_engine(engine)
        call = _diff(place_of(source), place_of(target), filter, has_values, limit)
        return understood(decode_changes, self._http.fetch(call))

    def diff_commits(
        self,
        from_commit_id: str,
        to_commit_id: str,
        filter: ChangeFilter | None = None,
        *,
        has_values: bool = True,
        limit: int | None = None,
        engine: str = _AUTO,
    ) -> ChangeSet:
        """What differs between the states of two commits, of any branches."""
        refuse_engine(engine)
        call = _diff(
            {"snapshot": from_commit_id}, {"snapshot": to_commit_id}, filter, has_values, limit
        )
        return understood(decode_changes, self._http.fetch(call))

    def commit_changes(
        self,
        commit_id: str,
        filter: ChangeFilter | None = None,
        *,
        has_values: bool = True,
        limit: int | None = None,
        engine: str = _AUTO,
    ) -> ChangeSet:
        """What a commit changed on its branch: against its first parent."""
        refuse_engine(engine)
        call = _changes_of(commit_id, filter, has_values, limit)
        return understood(decode_changes, self._http.fetch(call))

    def iter_diff(
        self,
        source: str | ReadTarget,
        target: str | ReadTarget,
        filter: ChangeFilter | None = None,
        *,
        has_values: bool = True,
        engine: str = _AUTO,
    ) -> Iterator[EntityChange]:
        """The changes of `diff_between` one by one, read as they are asked for."""
        refuse_engine(engine)
        call = _diff(place_of(source), place_of(target), filter, has_values, None)
        return iter_changes(self._http, call)

    def open_diff(
        self,
        source: str | ReadTarget,
        target: str | ReadTarget,
        filter: ChangeFilter | None = None,
        *,
        engine: str = _AUTO,
    ) -> RemoteDiff:
        """What `diff_between` gives, for more changes than fit into memory."""
        summary = self.diff_between(
            source, target, filter, has_values=False, limit=0, engine=engine
        )
        # By their commits: the branches may move before the changes are asked for.
        before, after = {"snapshot": summary.from_commit_id}, {"snapshot": summary.to_commit_id}
        return RemoteDiff(
            summary,
            self._http,
            lambda has_values, limit: _diff(before, after, filter, has_values, limit),
        )

    def open_commit_changes(
        self, commit_id: str, filter: ChangeFilter | None = None, *, engine: str = _AUTO
    ) -> RemoteDiff:
        """What `commit_changes` gives, for more changes than fit into memory."""
        return RemoteDiff(
            self.commit_changes(commit_id, filter, has_values=False, limit=0, engine=engine),
            self._http,
            lambda has_values, limit: _changes_of(commit_id, filter, has_values, limit),
        )

    def cursor_at(
        self,
        commit_id: str | None = None,
        *,
        branch: str = MAIN,
        filter: ChangeFilter | None = None,
    ) -> str:
        """The cursor of whoever has read a branch as it was at a commit; its head without one."""
        call = get("/changes/cursor", commit=commit_id, branch=branch, **_wanted(filter))
        return understood(lambda found: str(found["cursor"]), self._http.fetch(call))

    def poll(
        self,
        cursor: str | None = None,
        *,
        branch: str = MAIN,
        filter: ChangeFilter | None = None,
        has_values: bool = True,
        most_commits: int = _MOST_COMMITS,
        most_changes: int = _MOST_CHANGES,
    ) -> ChangePage:
        """What was committed on a branch after a cursor, oldest first, one block per commit."""
        call = get(
            "/changes",
            cursor=cursor,
            branch=branch,
            values=has_values,
            max_commits=_bounded("most_commits", most_commits, _COMMITS_PER_PAGE),
            max_changes=_bounded("most_changes", most_changes, _CHANGES_PER_PAGE),
            **_wanted(filter),
        )
        return understood(decode_page, self._http.fetch(call))


def iter_changes(http: Transport, call: Call) -> Iterator[EntityChange]:
    """The changes of an answer in lines; whatever is wrong with the call is raised now."""
    asked = call.accepting(NDJSON)
    return _decoded(Lines(asked, http.url, http.open(asked)))


def _decoded(lines: Lines) -> Iterator[EntityChange]:
    documents = iter_documents(lines)
    next(documents, None)  # what sums up
    for document in documents:
        yield understood(decode_change, document)


def _diff(
    source: object,
    target: object,
    filter: ChangeFilter | None,
    has_values: bool,
    limit: int | None,
) -> Call:
    wanted = filter or EVERYTHING
    return ask(
        "/branches/diff",
        from_=source,
        to=target,
        kinds=sorted(wanted.kinds),
        type_names=sorted(wanted.type_names),
        ops=sorted(wanted.ops),
        values=has_values,
        limit=_checked(limit),
    )


def _changes_of(
    commit_id: str,
    filter: ChangeFilter | None,
    has_values: bool,
    limit: int | None,
) -> Call:
    path = f"/commits/{segment(commit_id)}/changes"
    return get(path, values=has_values, limit=_checked(limit), **_wanted(filter))


def _wanted(filter: ChangeFilter | None) -> dict[str, object]:
    wanted = filter or EVERYTHING
    parts = {"kind": wanted.kinds, "type": wanted.type_names, "op": wanted.ops}
    return {name: sorted(values) for name, values in parts.items() if values}


def _bounded(name: str, wanted: int, most: int) -> int:
    if wanted < 1:
        raise ConfigError(f"`{name}` is {wanted}, give 1 or more")
    return min(wanted, most)


def _checked(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise ConfigError(f"`limit` is {limit}, give 0 or more")
    return limit
