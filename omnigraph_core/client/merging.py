"""Merging and runs of a graph behind a server.

Records of runs are made by a module that loads the storage, which is imported where it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.client.branches import Branches
from omnigraph_core.client.decode.changes import decode_merge
from omnigraph_core.client.decode.commits import decode_commit
from omnigraph_core.client.decode.reading import understood
from omnigraph_core.client.pages import iter_pages
from omnigraph_core.client.places import place_of, refuse_actor, refuse_engine
from omnigraph_core.client.requests import ask, get, segment, write
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.merge.model import MergeStrategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.client.requests import Call
    from omnigraph_core.history.runs import RunRecord, RunStatus
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.merge.model import MergeResult, MergeSide


class Merging(Branches):
    """What brings the work of one branch, one commit or one run to another branch."""

    def branch_merge(
        self,
        source: str,
        *,
        into: str = MAIN,
        strategy: MergeStrategy | str = MergeStrategy.ROW,
        resolve: MergeSide | str | None = None,
        choices: Mapping[tuple[str, str], str] | None = None,
        dry_run: bool = False,
        delete_branch: bool = False,
        if_commit: str | None = None,
        engine: str = "auto",
        actor: str | None = None,
    ) -> MergeResult:
        """Bring what a branch has and another lacks to the other, with one commit."""
        refuse_actor(actor)
        refuse_engine(engine)
        call = write(
            "POST",
            "/branches/merge",
            {
                "source": source,
                "target": into,
                "dry_run": dry_run,
                "delete_branch": delete_branch,
                **_decided(strategy, resolve, choices),
            },
            if_commit=if_commit,
        )
        return self._merged(call)

    def cherry_pick(
        self,
        commit_id: str,
        *,
        into: str = MAIN,
        strategy: MergeStrategy | str = MergeStrategy.ROW,
        resolve: MergeSide | str | None = None,
        choices: Mapping[tuple[str, str], str] | None = None,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> MergeResult:
        """Bring what one commit changed to a branch; of a merge, what it changed on its own."""
        refuse_actor(actor)
        path = f"/commits/{segment(commit_id)}/pick"
        decided = _decided(strategy, resolve, choices)
        return self._merged(write("POST", path, {"into": into, "dry_run": dry_run, **decided}))

    def revert(
        self,
        commit_id: str,
        *,
        branch: str = MAIN,
        strategy: MergeStrategy | str = MergeStrategy.ROW,
        resolve: MergeSide | str | None = None,
        choices: Mapping[tuple[str, str], str] | None = None,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> MergeResult:
        """Take back what one commit changed, and nothing that came after it."""
        refuse_actor(actor)
        path = f"/commits/{segment(commit_id)}/revert"
        decided = _decided(strategy, resolve, choices)
        return self._merged(write("POST", path, {"branch": branch, "dry_run": dry_run, **decided}))

    def branch_reset(
        self,
        branch: str,
        target: str | ReadTarget,
        *,
        confirm: bool = False,
        actor: str | None = None,
    ) -> GraphCommit:
        """Give a branch the state of a commit, tag or other branch; its history stays."""
        refuse_actor(actor)
        to = {"snapshot": target} if isinstance(target, str) else place_of(target)
        given = {"branch": branch, "to": to, "confirm": confirm}
        document = self._http.fetch(write("POST", "/branches/reset", given))
        return understood(lambda found: decode_commit(found["commit"]), document)

    # Runs

    def begin_run(
        self,
        target_branch: str = MAIN,
        *,
        operation_hash: str | None = None,
        actor: str | None = None,
    ) -> RunRecord:
        """Begin work on a branch of its own, out of sight of the target."""
        refuse_actor(actor)
        given = {"target_branch": target_branch, "operation_hash": operation_hash}
        return self._run(write("POST", "/runs", given))

    def publish_run(
        self,
        run_id: str,
        *,
        strategy: MergeStrategy | str = MergeStrategy.ROW,
        resolve: MergeSide | str | None = None,
        choices: Mapping[tuple[str, str], str] | None = None,
        actor: str | None = None,
    ) -> RunRecord:
        """Merge a run's work into its target, with one commit; once, however often it is asked."""
        refuse_actor(actor)
        decided = _decided(strategy, resolve, choices)
        return self._run(write("POST", f"/runs/{segment(run_id)}/publish", decided))

    def preview_run(
        self,
        run_id: str,
        *,
        strategy: MergeStrategy | str = MergeStrategy.ROW,
        resolve: MergeSide | str | None = None,
        choices: Mapping[tuple[str, str], str] | None = None,
    ) -> MergeResult:
        """What publishing a run would do, conflicts included; nothing is written."""
        decided = _decided(strategy, resolve, choices)
        return self._merged(ask(f"/runs/{segment(run_id)}/preview", **decided))

    def abort_run(self, run_id: str) -> RunRecord:
        """
        Raises:
            RunNotFound: there is none of that id.
            ConflictError: it was published, or aborted before.
        """
        return self._run(write("POST", f"/runs/{segment(run_id)}/abort"))

    def fail_run(self, run_id: str) -> RunRecord:
        """
        Raises:
            RunNotFound: there is none of that id.
            ConflictError: it was published or aborted.
        """
        return self._run(write("POST", f"/runs/{segment(run_id)}/fail"))

    def get_run(self, run_id: str) -> RunRecord:
        """
        Raises:
            RunNotFound: there is none of that id.
        """
        return self._run(get(f"/runs/{segment(run_id)}"))

    def list_runs(
        self, *, target_branch: str | None = None, status: RunStatus | None = None
    ) -> tuple[RunRecord, ...]:
        """Runs, oldest first."""
        from omnigraph_core.client.decode.refs import decode_run

        found = iter_pages(self._http, "/runs", "runs", target_branch=target_branch, status=status)
        return tuple(understood(decode_run, item) for item in found)

    def _run(self, call: Call) -> RunRecord:
        from omnigraph_core.client.decode.refs import decode_run

        return understood(decode_run, self._http.fetch(call))

    def _merged(self, call: Call) -> MergeResult:
        document = self._http.fetch(call)
        return understood(lambda found: decode_merge(found, self.get_commit), document)


def _decided(
    strategy: MergeStrategy | str,
    resolve: MergeSide | str | None,
    choices: Mapping[tuple[str, str], str] | None,
) -> dict[str, object]:
    """How a merge is to be done, as a body says it."""
    rows = [
        {"table_key": table_key, "row_id": row_id, "choose": chosen}
        for (table_key, row_id), chosen in (choices or {}).items()
    ]
    return {"strategy": strategy, "resolve": resolve, "choices": rows or None}
