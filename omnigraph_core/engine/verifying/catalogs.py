"""Catalogs: every version that is kept can be read, and tells one history.

A branch comes in; the snapshots that could be read go out, with what is wrong. A version that
cleanup takes meanwhile is not missing: its absence is looked at again before it is told.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.verifying.model import (
    Checked,
    Code,
    Finding,
    Part,
    error,
    unreadable,
)
from omnigraph_core.errors import ConfigError, FormatTooNew, ObjectNotFound, StorageError
from omnigraph_core.history import refs
from omnigraph_core.history.branches import catalog_of
from omnigraph_core.manifest.catalog import load_latest, try_load_version
from omnigraph_core.manifest.layout import branch_manifest_path
from omnigraph_core.schema.document import document_from_json, schema_hash
from omnigraph_core.settings import MAINTENANCE_CONCURRENCY
from omnigraph_core.storage.image import has_version, list_versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.image import AcceptedSchema, Image
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.storage.session import Store


@dataclass(frozen=True, slots=True)
class Seen:
    """A catalog version that could be read. `is_head` is said of tagged versions too."""

    ref: BranchRef
    snapshot: Snapshot
    is_head: bool

    @property
    def place(self) -> str:
        return f"{self.ref.branch}@{self.snapshot.manifest_version}"

    def is_there(self, store: Store) -> bool:
        """Whether cleanup has spared it so far."""
        return has_version(store, self.ref.manifest, self.snapshot.manifest_version)


def read_branch(store: Store, ref: BranchRef, *, is_deep: bool) -> tuple[tuple[Seen, ...], Part]:
    """The head of a branch, or all its versions, oldest first; and what is wrong with them."""
    problems: list[Finding] = [*_check_ref(store, ref)]
    head = _read_head(store, ref, problems)
    seen = [] if head is None else [Seen(ref, head, is_head=True)]
    known: dict[Any, Any] = {}
    if is_deep and head is not None:
        older = [n for n in list_versions(store, ref.manifest) if n < head.manifest_version]
        with ThreadPoolExecutor(MAINTENANCE_CONCURRENCY.read()) as pool:
            found = pool.map(lambda number: _read_version(store, ref, number), older)
            for item in found:
                if isinstance(item, Finding):
                    problems.append(item)
                elif item is not None:
                    seen.insert(-1, Seen(ref, _shared(item, known), is_head=False))
    problems += _check_history(seen)
    checked = Checked(branches=1, catalog_versions=len(seen))
    return tuple(seen), Part(tuple(problems), checked)


def _shared(snapshot: Snapshot, known: dict[Any, Any]) -> Snapshot:
    """The same snapshot, made of values that others have too: most are in all versions."""
    image = snapshot.image
    shared = replace(
        image,
        tables={key: known.setdefault(entry, entry) for key, entry in image.tables.items()},
        schema=known.setdefault(image.schema, image.schema),
        commits=tuple(known.setdefault(commit, commit) for commit in image.commits),
    )
    return replace(snapshot, image=shared)


def readable_versions(store: Store, ref: BranchRef) -> tuple[Seen, ...]:
    """The versions of a deleted branch: what they need is no garbage yet, and may go any time."""
    found = [_read_version(store, ref, number) for number in list_versions(store, ref.manifest)]
    return tuple(
        Seen(ref, item, is_head=False)
        for item in found
        if item is not None and not isinstance(item, Finding)
    )


def read_tags(store: Store) -> tuple[tuple[Seen, ...], Part]:
    """What tags name; and those that name nothing."""
    problems: list[Finding] = []
    seen: list[Seen] = []
    names = _names(store, problems)
    for name in names:
        try:
            tag = refs.try_read_tag(store, name)
        except StorageError as problem:
            problems.append(unreadable(Code.REF_DAMAGED, f"tag {name}", problem))
            continue
        if tag is None:
            continue  # deleted meanwhile
        ref = _ref_of(tag.branch, tag.incarnation)
        found = _read_version(store, ref, tag.manifest_version)
        if isinstance(found, Finding):
            problems.append(found)
        elif found is not None and found.commit.graph_commit_id == tag.commit_id:
            seen.append(Seen(ref, found, is_head=True))
        elif refs.try_read_tag(store, name) is not None:
            message = f"it names commit {tag.commit_id}, which is not there any more"
            hint = "delete the tag, or restore the catalog from a copy of the graph"
            problems.append(error(Code.REF_DANGLING, f"tag {name}", message, hint))
    return tuple(seen), Part(tuple(problems), Checked(tags=len(names)))


def _names(store: Store, problems: list[Finding]) -> tuple[str, ...]:
    try:
        return refs.list_tag_names(store)
    except StorageError as problem:
        problems.append(unreadable(Code.REF_DAMAGED, "tags", problem))
        return ()


def _ref_of(branch: str, incarnation: str) -> BranchRef:
    if incarnation == refs.MAIN_REF.incarnation:
        return refs.MAIN_REF
    path = branch_manifest_path(incarnation)
    return refs.BranchRef(branch, incarnation, path, None, 0, None)


def _check_ref(store: Store, ref: BranchRef) -> Iterator[Finding]:
    if ref.incarnation == refs.MAIN_REF.incarnation:
        return
    expected = branch_manifest_path(ref.incarnation)
    if ref.manifest != expected:
        message = f"its catalog is said to be at {ref.manifest}, expected {expected}"
        yield error(Code.REF_DANGLING, ref.branch, message)
    fork = ref.forked_from
    if fork is None:
        return
    source = _ref_of(fork.branch, fork.incarnation)
    if not has_version(store, source.manifest, fork.manifest_version) and _is_live(store, ref):
        message = f"the version it was forked from, {fork.branch}@{fork.manifest_version}, is gone"
        yield error(
            Code.REF_DANGLING, ref.branch, message, "merges need it: restore it from a copy"
        )


def _is_live(store: Store, ref: BranchRef) -> bool:
    now = refs.try_read_branch(store, ref.branch)
    return now is not None and now.incarnation == ref.incarnation


def _read_head(store: Store, ref: BranchRef, problems: list[Finding]) -> Snapshot | None:
    try:
        return load_latest(catalog_of(store, ref)).snapshot
    except ObjectNotFound as gone:
        if _is_live(store, ref):
            hint = "restore the directory from a copy of the graph, or delete the branch"
            problems.append(error(Code.REF_DANGLING, ref.branch, gone.message, hint))
    except (StorageError, FormatTooNew) as problem:
        problems.append(error(Code.CATALOG_UNREADABLE, ref.branch, problem.message, problem.hint))
    return None


def _read_version(store: Store, ref: BranchRef, number: int) -> Snapshot | Finding | None:
    """A version; None if it is gone, as cleanup leaves it."""
    place = f"{ref.branch}@{number}"
    try:
        state = try_load_version(catalog_of(store, ref), number)
    except (StorageError, FormatTooNew) as problem:
        return error(Code.CATALOG_UNREADABLE, place, problem.message, problem.hint)
    if state is not None:
        return state.snapshot
    if not has_version(store, ref.manifest, number):
        return None
    return error(Code.CATALOG_UNREADABLE, place, "the version has lost its file")


def _check_history(seen: Sequence[Seen]) -> Iterator[Finding]:
    """What several versions of one branch must say alike."""
    heads = {item.snapshot.manifest_version: item.snapshot.commit for item in seen}
    for item in seen:
        snapshot, ref = item.snapshot, item.ref
        for problem in (*_check_head(ref, snapshot), *_check_chain(snapshot.image)):
            yield error(Code.CATALOG_HISTORY, item.place, problem)
        for commit in snapshot.image.commits:
            known = heads.get(commit.manifest_version)
            is_own = commit.incarnation == ref.incarnation
            if is_own and known is not None and known != commit:
                message = (
                    f"it has commit {commit.graph_commit_id} as version "
                    f"{commit.manifest_version}, which is {known.graph_commit_id}"
                )
                yield error(Code.CATALOG_HISTORY, item.place, message)
        yield from _check_schema(snapshot.schema, item.place)
    for earlier, later in pairwise(seen):
        for problem in _check_counters(earlier.snapshot.image, later.snapshot.image):
            yield error(Code.CATALOG_HISTORY, later.place, problem)


def _check_head(ref: BranchRef, snapshot: Snapshot) -> Iterator[str]:
    head = snapshot.commit
    fork = ref.forked_from
    if fork is not None and snapshot.manifest_version == 1:
        if head.graph_commit_id != fork.commit_id:
            yield f"its first commit is {head.graph_commit_id}, forked from {fork.commit_id}"
    elif (head.incarnation, head.manifest_version) != (ref.incarnation, snapshot.manifest_version):
        yield f"its head {head.graph_commit_id} was made as version {head.manifest_version}"


def _check_chain(image: Image) -> Iterator[str]:
    for parent, child in pairwise(image.commits):
        if child.parent_commit_id != parent.graph_commit_id:
            yield (
                f"the first parent of {child.graph_commit_id} is {child.parent_commit_id}, "
                f"but {parent.graph_commit_id} comes before it"
            )


def _check_counters(earlier: Image, later: Image) -> Iterator[str]:
    for table_key in sorted(earlier.tables.keys() | later.tables.keys()):
        before, after = earlier.version_of(table_key), later.version_of(table_key)
        if after < before:
            yield f"the version of {table_key} went back from {before} to {after}"
        elif after == before and earlier.tables.get(table_key) != later.tables.get(table_key):
            yield f"version {after} of {table_key} means two things"


def _check_schema(schema: AcceptedSchema, place: str) -> Iterator[Finding]:
    problem = _schema_problem(schema)
    if problem is not None:
        yield error(Code.SCHEMA_DAMAGED, place, problem)


@lru_cache(maxsize=64)
def _schema_problem(schema: AcceptedSchema) -> str | None:
    try:
        found = schema_hash(document_from_json(json.loads(schema.document)))
    except (ValueError, ConfigError) as problem:
        return f"its schema document cannot be read: {problem}"
    if found == schema.hash:
        return None
    return f"its schema document has the hash {found}, recorded is {schema.hash}"
