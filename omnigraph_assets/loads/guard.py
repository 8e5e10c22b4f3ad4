"""May a staged load be published? One pure function, asked wherever one is about to be.

Facts come in, a decision goes out. The publish itself is safe without it: asking first turns a
surprise into a reason, and tells what to wait for from what can never be.
"""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    READY = "ready"
    """Publish it; what was published before stays as it is."""
    WAIT = "wait"
    """Not now: it stays staged."""
    REJECT = "reject"
    """Never: give it up, and plan its files anew."""


@dataclass(frozen=True, slots=True)
class PublishDecision:
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class LoadFacts:
    """What is known of a load.

    `status` is that of its run in the registry. An incarnation tells a branch from a later one
    of its name; that of a branch that is gone is None.
    """

    status: str
    branch: str
    planned_incarnation: str
    incarnation: str | None
    planned_schema: str
    schema: str | None
    is_staged: bool
    loaded_before: tuple[str, ...] = ()
    """Digests of its files that another load has published."""
    lock_owner: str | None = None
    """Who changes the schema of the branch right now."""


def decide(load: LoadFacts) -> PublishDecision:
    """What may be done with a load.

    >>> decide(LoadFacts("aborted", "main", "i", "i", "s", "s", is_staged=True)).verdict.value
    'reject'
    """
    if load.status == "published":
        return PublishDecision(Verdict.READY, "published before: publishing again changes nothing")
    if load.status != "running":
        return PublishDecision(Verdict.REJECT, f"the load was given up: its run is {load.status}")
    if load.incarnation is None:
        return PublishDecision(Verdict.REJECT, f"the branch `{load.branch}` is gone")
    if load.incarnation != load.planned_incarnation:
        return PublishDecision(
            Verdict.REJECT, f"the branch `{load.branch}` was deleted, and made anew since"
        )
    if load.loaded_before:
        return PublishDecision(Verdict.REJECT, f"loaded before: {', '.join(load.loaded_before)}")
    if load.schema != load.planned_schema:
        return PublishDecision(
            Verdict.REJECT,
            f"planned under the schema {load.planned_schema}, `{load.branch}` is at {load.schema}",
        )
    if not load.is_staged:
        return PublishDecision(Verdict.WAIT, "its rows are not staged yet")
    if load.lock_owner is not None:
        return PublishDecision(Verdict.WAIT, f"{load.lock_owner} is changing the schema")
    return PublishDecision(Verdict.READY, "staged, and nothing stands in the way")
