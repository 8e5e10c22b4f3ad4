"""The catalog of an accepted schema, compiled once per schema.

A schema document never changes under its hash, so the hash alone says whether two catalogs are one.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from omnigraph_core.schema.document import catalog_from_document, document_from_json

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.schema.catalog import Catalog

MAX_CATALOGS: Final = 64
"""Catalogs kept; the one not asked for longest goes first."""

_LOCK: Final = threading.Lock()
_KEPT: Final[OrderedDict[str, Catalog]] = OrderedDict()


def accepted_catalog(schema: AcceptedSchema) -> Catalog:
    """The types of a schema in force; the same object for the same hash while it is kept."""
    with _LOCK:
        if (known := _KEPT.get(schema.hash)) is not None:
            _KEPT.move_to_end(schema.hash)
            return known
    catalog = catalog_from_document(document_from_json(json.loads(schema.document)))
    with _LOCK:
        kept = _KEPT.setdefault(schema.hash, catalog)
        _KEPT.move_to_end(schema.hash)
        if len(_KEPT) > MAX_CATALOGS:
            _KEPT.popitem(last=False)
        return kept
