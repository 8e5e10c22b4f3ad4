"""What the S3 tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.counting_proxy import CountingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.s3 import S3Server


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[CountingProxy]:
    """A proxy before the server, without failures and without requests so far."""
    with CountingProxy(s3_server.port) as proxy:
        yield proxy
