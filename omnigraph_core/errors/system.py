"""What goes wrong around a sound request: rights, settings, stores, limits, and our own bugs."""

from __future__ import annotations

from omnigraph_core.errors.root import ErrorKind, OmnigraphError


class PolicyDenied(OmnigraphError):
    """Policy forbids the action."""

    kind = ErrorKind.FORBIDDEN
    code = "policy.denied"

    def __init__(
        self,
        message: str,
        *,
        actor: str,
        action: str,
        branch: str | None = None,
        target_branch: str | None = None,
        rule: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.actor = actor
        self.action = action
        self.branch = branch
        self.target_branch = target_branch
        self.rule = rule

    def details(self) -> dict[str, object]:
        return {
            "actor": self.actor,
            "action": self.action,
            "branch": self.branch,
            "target_branch": self.target_branch,
            "rule": self.rule,
        }


class Unauthenticated(OmnigraphError):
    """No or no valid credentials."""

    kind = ErrorKind.UNAUTHORIZED
    code = "auth.unauthenticated"


class ConfigError(OmnigraphError):
    """A setting, flag or configuration file is wrong."""

    kind = ErrorKind.BAD_REQUEST
    code = "config.invalid"


class BlobElsewhere(ConfigError):
    """A blob is kept at an address that a server cannot send clients to."""

    code = "blob.elsewhere"

    def __init__(self, uri: str) -> None:
        super().__init__(f"the blob is kept at {uri}", hint="fetch it from there")
        self.uri = uri

    def details(self) -> dict[str, object]:
        return {"uri": self.uri}


class FormatTooNew(OmnigraphError):
    """The graph was written by a newer release than this one can read."""

    kind = ErrorKind.BAD_REQUEST
    code = "storage.format_too_new"


class StorageError(OmnigraphError):
    """The store failed; retryable when the instance says so."""

    code = "storage.failed"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        retryable: bool = False,
        is_refused: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable
        self.is_refused = is_refused
        """The store said no, so that a write has certainly not landed."""


class ObjectNotFound(StorageError):
    """A file the catalog or a reader relies on is not in the store."""

    code = "storage.object_not_found"


class EmbeddingError(OmnigraphError):
    """The embedding provider failed; retryable when the instance says so."""

    code = "embedding.failed"

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable


class JobFailed(OmnigraphError):
    """A job on a cluster failed; names the job, and its failed tasks if it came to any."""

    code = "job.failed"

    def __init__(
        self,
        message: str,
        *,
        job: str,
        tasks: tuple[int, ...] = (),
        trace: str = "",
        hint: str | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.job = job
        self.tasks = tasks
        """Their numbers, from zero."""
        self.trace = trace
        """Of the first, in the words of the process that ran it."""
        self.retryable = retryable

    def details(self) -> dict[str, object]:
        return {"job": self.job, "tasks": list(self.tasks), "trace": self.trace}


class QueryStopped(OmnigraphError):
    """A query was stopped before it had its answer; nothing of it is left."""

    kind = ErrorKind.BAD_REQUEST
    code = "query.stopped"


class BudgetExceeded(QueryStopped):
    """A query needs more memory than it may use; names the clause that does."""

    code = "query.over_budget"

    def __init__(self, clause: str, needed: int, budget: int) -> None:
        super().__init__(
            f"the query needs {needed:,} bytes for `{clause}`, and may use {budget:,}",
            hint="match less there, add a limit, or raise OMNIGRAPH_QUERY_MEMORY",
        )
        self.clause = clause
        self.needed = needed
        self.budget = budget

    def details(self) -> dict[str, object]:
        return {"clause": self.clause, "needed": self.needed, "budget": self.budget}


class QueryTimeout(QueryStopped):
    """A query ran longer than it may."""

    code = "query.timeout"
    retryable = True

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the query took longer than {seconds:g} s",
            hint="match less, or give it more time (OMNIGRAPH_QUERY_TIMEOUT)",
        )
        self.seconds = seconds

    def details(self) -> dict[str, object]:
        return {"seconds": self.seconds}


class QueryCancelled(QueryStopped):
    """Whoever asked no longer wants the answer."""

    code = "query.cancelled"

    def __init__(self) -> None:
        super().__init__("the query was cancelled")


class InvariantBroken(OmnigraphError):
    """A bug in OmniGraph itself; names the invariant."""

    code = "internal.invariant"

    def __init__(self, invariant: str) -> None:
        super().__init__(f"invariant broken: {invariant}", hint="this is a bug in OmniGraph")
        self.invariant = invariant

    def details(self) -> dict[str, object]:
        return {"invariant": self.invariant}
