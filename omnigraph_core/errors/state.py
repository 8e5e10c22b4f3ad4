"""What was asked for is not there, or the current state refuses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors.root import ErrorKind, OmnigraphError

if TYPE_CHECKING:
    from collections.abc import Sequence


class NotFoundError(OmnigraphError):
    """Something named does not exist."""

    kind = ErrorKind.NOT_FOUND
    code = "not_found"


class BranchNotFound(NotFoundError):
    """No branch of that name."""

    code = "not_found.branch"


class CommitNotFound(NotFoundError):
    """No commit of that id."""

    code = "not_found.commit"


class SnapshotNotFound(NotFoundError):
    """No snapshot at that version, id or time."""

    code = "not_found.snapshot"


class TableNotFound(NotFoundError):
    """The snapshot holds no table of that key."""

    code = "not_found.table"


class TagNotFound(NotFoundError):
    """No tag of that name."""

    code = "not_found.tag"


class RunNotFound(NotFoundError):
    """No run of that id."""

    code = "not_found.run"


class QueryNotFound(NotFoundError):
    """A query file holds no query of that name, or the name is needed to choose one."""

    code = "not_found.query"


class GraphNotFound(NotFoundError):
    """No graph at that address."""

    code = "not_found.graph"


class BlobIsNull(NotFoundError):
    """The row is there, and has no blob."""

    code = "not_found.blob"


class ChangeFeedGap(NotFoundError):
    """Commits after a cursor were cleaned up: what they changed can no longer be told."""

    code = "changes.gap"

    def __init__(self, message: str, *, resume_commit_id: str) -> None:
        super().__init__(message, hint=f"read the state of {resume_commit_id} and go on from there")
        self.resume_commit_id = resume_commit_id
        """The oldest commit of the branch whose state is still there."""

    def details(self) -> dict[str, object]:
        return {"resume_commit_id": self.resume_commit_id}


class ConflictError(OmnigraphError):
    """The request is well-formed but the current state refuses it."""

    kind = ErrorKind.CONFLICT
    code = "conflict"


class VersionConflict(ConflictError):
    """A table moved since it was read: expected one version, found another."""

    code = "manifest.version_conflict"
    retryable = True

    def __init__(self, table_key: str, expected: int | None, actual: int | None) -> None:
        super().__init__(
            f"{table_key} is at version {actual}, expected {expected}; retry",
            hint="read again and retry",
        )
        self.table_key = table_key
        self.expected = expected
        self.actual = actual

    def details(self) -> dict[str, object]:
        return {"table_key": self.table_key, "expected": self.expected, "actual": self.actual}


class PreconditionFailed(ConflictError):
    """Something a commit was prepared on has moved: head, schema, branch or lease."""

    code = "manifest.precondition_failed"
    retryable = True

    def __init__(self, member: str, expected: str, actual: str) -> None:
        message = f"{member} is {actual}, expected {expected}"
        if member == "schema":  # two digests tell people nothing
            message = "the schema was changed meanwhile"
        super().__init__(message, hint="read again, prepare again and retry")
        self.member = member
        self.expected = expected
        self.actual = actual

    def details(self) -> dict[str, object]:
        return {"member": self.member, "expected": self.expected, "actual": self.actual}


class PublishContention(ConflictError):
    """Other writers won every attempt of the retry budget; nothing was written."""

    code = "manifest.contention"
    retryable = True


class AlreadyExists(ConflictError):
    """The name is taken."""

    code = "conflict.already_exists"


class BranchInUse(ConflictError):
    """The branch cannot go while something depends on it."""

    code = "conflict.branch_in_use"


class SchemaApplyLocked(ConflictError):
    """Another schema change is under way."""

    code = "conflict.schema_apply_locked"
    retryable = True


class MergeConflicts(ConflictError):
    """A merge cannot be decided row by row; carries every conflict."""

    code = "merge.conflicts"

    def __init__(self, message: str, conflicts: Sequence[dict[str, object]]) -> None:
        super().__init__(
            message,
            hint="choose a side for each row with a resolution, or change rows on one of the "
            "branches, and merge again",
        )
        self.conflicts = tuple(conflicts)

    def details(self) -> dict[str, object]:
        return {"merge_conflicts": list(self.conflicts)}


class CommitOutcomeUnknown(OmnigraphError):
    """The answer to a publish was lost. The write may have landed: never retry or clean up."""

    code = "manifest.outcome_unknown"

    def __init__(self, message: str, *, commit_id: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.commit_id = commit_id

    def details(self) -> dict[str, object]:
        return {"commit_id": self.commit_id}
