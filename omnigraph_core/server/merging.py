"""What a request chooses where both sides of a merge changed a row, as the engine takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from omnigraph_core.merge.model import MergeResult
    from omnigraph_core.server.wire_history import MergeChoice, Merging


def merge_options(body: Merging | None) -> dict[str, Any]:
    """
    Raises:
        ConfigError: two different choices for one row.
    """
    if body is None:
        return {}
    chosen = {"resolve": body.resolve, "choices": _by_row(body.choices or [])}
    return chosen if body.strategy is None else {**chosen, "strategy": body.strategy}


def _by_row(choices: list[MergeChoice]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for choice in choices:
        row = (choice.table_key, choice.row_id)
        if found.setdefault(row, choice.choose) != choice.choose:
            raise ConfigError(f"choices: {choice.table_key}:{choice.row_id} has two of them")
    return found


def merge_document(result: MergeResult, actor: str | None) -> dict[str, object]:
    """What came of a merge."""
    members = result.to_json()
    first = {name: members.pop(name) for name in ("source", "target", "outcome")}
    commit = None if result.commit is None else result.commit.to_json()
    return {**first, "actor_id": actor, **members, "commit": commit}
