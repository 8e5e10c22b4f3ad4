"""Rename hints that cannot be followed, each explained where it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.schema.document.match import RENAME_FROM, Refusal, rename_hint
from omnigraph_core.schema.migrate.codes import MigrationCode
from omnigraph_core.schema.migrate.steps import UnsupportedChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.diagnostics import Span
    from omnigraph_core.schema.ast import Annotation


def refuse_rename(
    entity: str,
    refusal: Refusal,
    annotations: Iterable[Annotation],
    candidates: Iterable[str],
    elsewhere: Mapping[str, Iterable[str]],
) -> UnsupportedChange:
    """The unsupported change for a refused hint.

    Args:
        candidates: accepted names the hint could have meant.
        elsewhere: accepted names of other kinds, for a hint that crosses kinds.
    """
    annotations = tuple(annotations)
    old = rename_hint(annotations) or ""
    kind = next((kind for kind, names in elsewhere.items() if old in names), None)
    if refusal is Refusal.NAMES_NOTHING and kind is not None:
        code, reason = MigrationCode.RENAME_ACROSS_KINDS, f"`{old}` is an accepted {kind}"
        hint: str | None = "a type cannot change its kind; declare a new type and drop the old one"
    else:
        code, reason, hint = _EXPLAINED[refusal]
        reason = reason.format(old=old)
    if refusal is Refusal.NAMES_NOTHING and kind is None:
        hint = did_you_mean(old, candidates) or hint
    return UnsupportedChange(
        entity,
        f"cannot rename from `{old}`: {reason}",
        code,
        span=_hint_span(annotations),
        hint=hint,
    )


_EXPLAINED = {
    Refusal.NAMES_NOTHING: (
        MigrationCode.RENAME_NAMES_NOTHING,
        "the accepted schema has nothing of that name here",
        "remove `@rename_from` to add it as new",
    ),
    Refusal.CLAIMED_TWICE: (
        MigrationCode.RENAME_CLAIMED_TWICE,
        "another declaration is renamed from it too",
        "keep `@rename_from` on one of them",
    ),
    Refusal.STILL_DECLARED: (
        MigrationCode.RENAME_STILL_DECLARED,
        "`{old}` is still declared",
        "apply the rename first, then declare the old name again",
    ),
    Refusal.NAME_TAKEN: (
        MigrationCode.RENAME_NAME_TAKEN,
        "the new name is already in use in the accepted schema",
        "free the new name in one migration, then rename in the next",
    ),
}


def _hint_span(annotations: Iterable[Annotation]) -> Span | None:
    return next((item.span for item in annotations if item.name == RENAME_FROM), None)
