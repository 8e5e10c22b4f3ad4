"""Branches, commits, snapshots, tags and the schema of a graph behind a server.

Some values are made by modules that load the storage: those are imported where they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.client.decode.commits import decode_commit, decode_snapshot
from omnigraph_core.client.decode.reading import understood
from omnigraph_core.client.pages import iter_pages
from omnigraph_core.client.places import check_version, place_of, refuse_actor, text_of
from omnigraph_core.client.requests import get, moment, segment, write
from omnigraph_core.errors import ConfigError
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.snapshot import Snapshot

if TYPE_CHECKING:
    from datetime import datetime

    from omnigraph_core.client.transport import Transport
    from omnigraph_core.evolve.report import SchemaApplyResult, SchemaPlanReport
    from omnigraph_core.history.refs import BranchRef, Tag
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.manifest.image import AcceptedSchema, GraphCommit


class Branches:
    """What a graph consists of over time."""

    _http: Transport

    def branch_create(
        self, name: str, *, source: str | ReadTarget = MAIN, actor: str | None = None
    ) -> BranchRef:
        """Fork a branch from another one, or from a commit or tag."""
        from omnigraph_core.client.decode.refs import decode_branch

        refuse_actor(actor)
        call = write("POST", "/branches", {"name": name, "from": text_of(source)})
        return understood(decode_branch, self._http.fetch(call))

    def branch_list(self) -> tuple[str, ...]:
        """The names of all branches, main first."""
        names = [str(name) for name in iter_pages(self._http, "/branches", "branches")]
        return tuple(sorted(names, key=lambda name: (name != MAIN, name)))

    def branch_get(self, name: str) -> BranchRef:
        """
        Raises:
            BranchNotFound: there is none of that name.
        """
        from omnigraph_core.client.decode.refs import decode_branch

        return understood(decode_branch, self._http.fetch(get(f"/branches/{segment(name)}")))

    def branch_delete(self, name: str, *, actor: str | None = None) -> None:
        """Remove a branch. Its commits stay readable by id until cleanup takes them."""
        refuse_actor(actor)
        self._http.fetch(write("DELETE", f"/branches/{segment(name)}"))

    # Commits

    def list_commits(
        self, branch: str | None = None, *, limit: int | None = None
    ) -> tuple[GraphCommit, ...]:
        """Every commit a branch contains, newest first; without a name those of main."""
        if limit is not None and limit < 0:
            raise ConfigError(f"`limit` is {limit}, give 0 or more")
        # None at all cannot be asked for, and a branch that is not there is told even so.
        most = None if limit is None else max(1, limit)
        found = iter_pages(self._http, "/commits", "commits", limit=most, branch=branch)
        return tuple(understood(decode_commit, item) for item in found)[:limit]

    def get_commit(self, commit_id: str) -> GraphCommit:
        """
        Raises:
            CommitNotFound: no branch has it.
        """
        return understood(decode_commit, self._http.fetch(get(f"/commits/{segment(commit_id)}")))

    def head_commit_id_for_branch(self, branch: str = MAIN) -> str:
        """
        Raises:
            BranchNotFound: there is none of that name.
        """
        document = self._http.fetch(get(f"/branches/{segment(branch)}"))
        return understood(lambda found: str(found["commit_id"]), document)

    # Snapshots

    def snapshot(self, branch: str = MAIN) -> Snapshot:
        """A branch as it is now."""
        return self._snapshot(branch=branch)

    def snapshot_of(self, target: str | ReadTarget) -> Snapshot:
        """The snapshot a branch, commit or tag names."""
        return self._snapshot(**place_of(target))

    def snapshot_at_version(self, version: int, *, branch: str = MAIN) -> Snapshot:
        """A branch at one of its manifest versions."""
        return self._snapshot(branch=branch, version=check_version(version, branch))

    def snapshot_at_time(self, moment: datetime, *, branch: str = MAIN) -> Snapshot:
        """A branch as it was at a moment; without a zone it is UTC."""
        return self._snapshot(branch=branch, at=_at(moment))

    def entity_at(
        self, table_key: str, id: str, *, version: int, branch: str = MAIN
    ) -> dict[str, object] | None:
        """One row as JSON at a manifest version of a branch; None if it was not there."""
        at = check_version(version, branch)
        call = get("/entity", table_key=table_key, id=id, version=at, branch=branch)
        found: dict[str, object] | None = understood(
            lambda document: document["entity"], self._http.fetch(call)
        )
        return found

    # Tags

    def tag_create(
        self, name: str, target: str | ReadTarget = MAIN, *, actor: str | None = None
    ) -> Tag:
        """Name a commit for good: cleanup spares what is tagged."""
        from omnigraph_core.client.decode.refs import decode_tag

        refuse_actor(actor)
        call = write("POST", "/tags", {"name": name, "target": place_of(target)})
        return understood(decode_tag, self._http.fetch(call))

    def tag_list(self) -> tuple[Tag, ...]:
        """All tags, by name."""
        from omnigraph_core.client.decode.refs import decode_tag

        return tuple(
            understood(decode_tag, item) for item in iter_pages(self._http, "/tags", "tags")
        )

    def tag_delete(self, name: str) -> None:
        """
        Raises:
            TagNotFound: there is none of that name.
        """
        self._http.fetch(write("DELETE", f"/tags/{segment(name)}"))

    # Schema

    def schema_show(self, target: str | ReadTarget | Snapshot = MAIN) -> AcceptedSchema:
        """The schema in force: its source as it was given, and its compiled document."""
        if isinstance(target, Snapshot):
            return target.schema
        return self._schema(**place_of(target))

    def schema_plan(
        self, source: str, *, branch: str = MAIN, allow_data_loss: bool = False
    ) -> SchemaPlanReport:
        """The steps from the schema of a branch to another, and what they take; reads no rows."""
        from omnigraph_core.client.decode.schemas import decode_schema_plan
        from omnigraph_core.client.requests import ask

        given = {"branch": branch, "allow_data_loss": allow_data_loss}
        call = ask("/schema/plan", schema_source=source, **given)
        return understood(decode_schema_plan, self._http.fetch(call))

    def schema_apply(
        self,
        source: str,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> SchemaApplyResult:
        """Bring a schema into force on a branch with one commit; other branches keep theirs."""
        from omnigraph_core.client.decode.schemas import decode_applied

        refuse_actor(actor)
        given: dict[str, object] = {
            "schema_source": source,
            "branch": branch,
            "allow_data_loss": allow_data_loss,
            "dry_run": dry_run,
        }
        document = self._http.fetch(write("POST", "/schema/apply", given))
        return understood(lambda found: decode_applied(found, self.get_commit), document)

    def _snapshot(self, **place: object) -> Snapshot:
        document = self._http.fetch(get("/snapshot", **place))
        return understood(
            lambda found: decode_snapshot(found, lambda id: self._schema(snapshot=id)), document
        )

    def _schema(self, **place: object) -> AcceptedSchema:
        from omnigraph_core.client.decode.schemas import decode_schema

        return understood(decode_schema, self._http.fetch(get("/schema", **place)))


def _at(value: datetime) -> str:
    return moment(value)
