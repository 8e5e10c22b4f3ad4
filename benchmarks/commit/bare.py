"""The Lance calls a two-table commit consists of, without anything around them.

No requirements, no retries, no decoding: the image that is read is written again as it is. What a
commit takes beyond this is what the engine adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

from omnigraph_core.storage.dataset import DATA_STORAGE_VERSION
from tests.support.graphs import HOLDS, PART, holds, parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from omnigraph_core.engine.omnigraph import Omnigraph


class BareGraph:
    """The datasets of a graph; from here on only this writes them."""

    def __init__(self, og: Omnigraph) -> None:
        snapshot = og.snapshot()
        self._root = og.uri
        self._session = lance.Session()
        self._locations = {key: snapshot.table(key).location for key in (PART, HOLDS)}
        self._pins = {key: snapshot.table(key).physical_version for key in (PART, HOLDS)}

    def append_pair(self, ids: Sequence[str]) -> None:
        """A part and an edge of each id, and the next image of the catalog."""
        for key, rows in ((PART, parts(ids)), (HOLDS, holds(ids))):
            self._append(key, rows)
        self._rewrite_image()

    def _append(self, key: str, rows: pa.Table) -> None:
        dataset = lance.dataset(
            f"{self._root}/{self._locations[key]}", version=self._pins[key], session=self._session
        )
        written = write_fragments(rows.cast(dataset.schema), dataset, mode="append")
        operation = LanceOperation.Append(written)
        transaction = Transaction(dataset.version, operation)
        self._pins[key] = LanceDataset.commit(dataset, transaction, detached=True).version

    def _rewrite_image(self) -> None:
        newest = lance.dataset(f"{self._root}/__manifest")
        image = newest.to_table()
        written = write_fragments(
            image, newest, mode="overwrite", data_storage_version=DATA_STORAGE_VERSION
        )
        operation = LanceOperation.Overwrite(image.schema, list(written))
        LanceDataset.commit(newest, Transaction(newest.version, operation), max_retries=0)
