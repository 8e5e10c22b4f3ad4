"""A process that uses an S3 server until it is told to stop, or killed."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes import hear, say
from tests.support.s3 import S3Server


def hold(directory: str) -> None:
    with S3Server(Path(directory)) as server:
        say(str(server.port))
        hear()
