"""Making a dataset where several processes may try at once: exactly one makes version 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
from lance.dataset import LanceDataset, LanceOperation

from omnigraph_core.storage.translate import LIBRARY_ERRORS, is_missing, storage_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from lance.fragment import FragmentMetadata

    from omnigraph_core.storage.session import Store


def try_create(
    store: Store,
    path: str,
    schema: pa.Schema,
    fragments: Iterable[FragmentMetadata] = (),
    *,
    has_stable_row_ids: bool = False,
) -> LanceDataset | None:
    """Version 1 of a new dataset; None when there is a dataset already."""
    # A strict overwrite of version 0. Lance's own creation is not strict: one that lost version 1
    # to another creator goes on as version 2, and replaces what the other wrote.
    try:
        return LanceDataset.commit(
            store.uri(path),
            LanceOperation.Overwrite(schema, list(fragments)),
            read_version=0,
            max_retries=0,
            storage_options=store.options,
            enable_stable_row_ids=has_stable_row_ids,
        )
    except LIBRARY_ERRORS as problem:
        if is_there(store, path):  # the ways in which Lance tells of being second differ
            return None
        raise storage_error(problem, "creating", store.uri(path)) from problem


def is_there(store: Store, path: str) -> bool:
    """Whether there is a dataset at a path."""
    try:
        lance.dataset(store.uri(path), storage_options=store.options)
    except LIBRARY_ERRORS as problem:
        if is_missing(problem):
            return False
        raise storage_error(problem, "opening", store.uri(path)) from problem
    return True
