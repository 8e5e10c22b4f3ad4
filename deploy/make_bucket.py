"""Make the bucket of an `s3://` address once its store answers; one that is there stays."""

from __future__ import annotations

import os
import sys
import time
import urllib.error
import urllib.request
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

_WAIT_SECONDS: Final = 120
_EXISTS: Final = 409


def main() -> None:
    """Ends with a message and a status that is not 0 if the store does not answer in time."""
    bucket = urlsplit(sys.argv[1]).netloc
    endpoint = os.environ["AWS_ENDPOINT_URL"]
    store = S3Store(
        bucket,
        endpoint=endpoint,
        region=os.environ["AWS_REGION"],
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    deadline = time.monotonic() + _WAIT_SECONDS
    while (problem := _try_to_make(store)) is not None:
        if time.monotonic() > deadline:
            sys.exit(f"error: no bucket {bucket} at {endpoint} within {_WAIT_SECONDS} s: {problem}")
        time.sleep(0.2)


def _try_to_make(store: S3Store) -> Exception | None:
    """What keeps the bucket from being used; None when an object can be written and read."""
    url = obstore.sign(store, "PUT", "", timedelta(minutes=5))
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=30):
            pass
    except urllib.error.HTTPError as answer:
        if answer.code != _EXISTS:
            return answer
    except OSError as problem:
        return problem
    try:
        obstore.put(store, "_ready", b"")
        obstore.delete(store, "_ready")
    except BaseError as problem:
        return problem
    return None


if __name__ == "__main__":
    main()
