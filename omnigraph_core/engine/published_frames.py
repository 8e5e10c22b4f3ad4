"""Staged frames, what a staging has published of them, and what a publish has to load: values.

A run that is executed again stages the same rows again under the same labels. What is published as
it is asked for is left out: with `merge` and `append` frame by frame, with `overwrite` table by
table, because a table that is overwritten holds what one publish gives it and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.job_report import SparkResult
from omnigraph_core.write.load_model import LoadMode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class StagedFrame:
    """Rows of one type that wait for their publish.

    `name` is what `publish_frames` takes, `label` what messages call the rows.
    """

    name: str
    label: str
    branch: str
    table_key: str
    row_count: int
    parts: tuple[str, ...]
    digest: str
    has_decimals: bool = False


@dataclass(frozen=True, slots=True)
class PublishedFrames(SparkResult):
    """What a publish made visible. `commit_id` is None if nothing had to change."""

    branch: str
    commit_id: str | None
    manifest_version: int | None
    rows: Mapping[str, int]
    frames: tuple[StagedFrame, ...]
    reader: str | None = None
    """Who reads the branch at this commit from now on."""
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """What a publish has to load, what is published already, and by which publish at last."""

    waiting: tuple[StagedFrame, ...]
    repeated: tuple[StagedFrame, ...]
    repeats: PublishedFrames | None
    replaced: tuple[str, ...]
    """The names of frames that were published in the place of those that wait. They are part of the
    key of the publish: rows that come back after others in between are no repeat."""


def plan_publish(
    asked: Sequence[StagedFrame], before: Sequence[PublishedFrames], mode: LoadMode
) -> PublishPlan:
    """Decide which of the frames are published already.

    Args:
        before: the publishes of the staging on the branch, oldest first.
    """
    newest = {_place(one, mode): at for at, publish in enumerate(before) for one in publish.frames}
    names = [{one.name for one in publish.frames} for publish in before]
    rows = [{_rows(one) for one in publish.frames} for publish in before]

    def is_in(at: int, frame: StagedFrame) -> bool:
        return frame.name in names[at] or _rows(frame) in rows[at]

    def is_current(frame: StagedFrame) -> bool:
        at = newest.get(_place(frame, mode))
        return at is not None and is_in(at, frame)

    if mode is LoadMode.OVERWRITE:
        changed = {frame.table_key for frame in asked if not is_current(frame)}
        waiting = [frame for frame in asked if frame.table_key in changed]
    else:
        done = set().union(*names)
        waiting = [frame for frame in asked if frame.name not in done and not is_current(frame)]
    places = {_place(frame, mode) for frame in waiting}
    replaced = [
        one.name
        for at, publish in enumerate(before)
        for one in publish.frames
        if (place := _place(one, mode)) in places and newest[place] == at
    ]
    chosen = {frame.name for frame in waiting}
    repeated = [frame for frame in asked if frame.name not in chosen]
    met = (at for at in reversed(range(len(before))) if any(is_in(at, one) for one in repeated))
    last = next(met, None)
    return PublishPlan(
        tuple(sorted(waiting, key=_by_table)),
        tuple(repeated),
        None if last is None else before[last],
        tuple(sorted(replaced)),
    )


def published_by_name(before: Sequence[PublishedFrames]) -> dict[str, StagedFrame]:
    """The frames of all publishes by name; their rows are gone."""
    return {frame.name: frame for publish in before for frame in publish.frames}


def _place(frame: StagedFrame, mode: LoadMode) -> tuple[str, str]:
    """What the rows of a frame replace: those of the same label, or the whole table."""
    return frame.table_key, "" if mode is LoadMode.OVERWRITE else frame.label


def _rows(frame: StagedFrame) -> tuple[str, str, str]:
    return frame.label, frame.table_key, frame.digest


def _by_table(frame: StagedFrame) -> tuple[str, str]:
    return frame.table_key, frame.digest
