"""A process that races others to the next version of a catalog, round after round."""

from __future__ import annotations

import lance
from lance.commit import CommitConflictError
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

from tests.guards.lance.chain import skus
from tests.support.processes import hear, say


def race(uri: str, name: str) -> None:
    """Each line heard is a round: prepare on the newest version, say so, go when told."""
    while (line := hear()) is not None:
        base = lance.dataset(uri)
        fragments = write_fragments(skus(f"{line} by {name}"), base, mode="overwrite")
        say(f"based on {base.version}")
        hear()
        say("won" if _publishes(base, fragments) else "lost")


def _publishes(base: LanceDataset, fragments: list[lance.FragmentMetadata]) -> bool:
    overwrite = LanceOperation.Overwrite(base.lance_schema, fragments)
    try:
        LanceDataset.commit(base, Transaction(base.version, overwrite), max_retries=0)
    except CommitConflictError:
        return False
    return True
