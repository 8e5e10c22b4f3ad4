"""Where a graph can live, for behaviour suites that must hold on every store."""

from __future__ import annotations

import uuid
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


class Store(StrEnum):
    LOCAL = "local"
    S3 = "s3"


def new_root(store: Store, request: pytest.FixtureRequest) -> str:
    """An empty root for a graph. The S3 server starts only when a test asks for it."""
    if store is Store.LOCAL:
        return str(request.getfixturevalue("tmp_path") / "graph")
    return str(request.getfixturevalue("s3_root"))


def new_prefix(bucket: str) -> str:
    """A place in a bucket that no other test writes to."""
    return f"s3://{bucket}/{uuid.uuid4().hex}"
