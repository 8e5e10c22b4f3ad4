"""Drops below a prefix of a bucket; needs the extra `omnigraph[aws]`.

Objects appear whole, and moving one is copying and deleting it: killed in between, both are there,
and the digest tells that they are one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast
from urllib.parse import unquote

from omnigraph_assets.resources.landing import (
    DroppedFile,
    DropProblem,
    OnProblem,
    folder_of,
    ignore_problem,
    is_dropped,
    name_problem,
)
from omnigraph_core.errors import ConfigError, StorageError

_S3 = "s3://"
_CHANGED = ("PreconditionFailed", "412", "NoSuchKey", "404")
"""What a store answers when an object is not the one that was listed."""


@contextmanager
def _translated(doing: str, address: str) -> Iterator[None]:
    """
    Raises:
        StorageError: the store refuses, or does not answer.
    """
    from botocore.exceptions import (  # only for those who have drops there
        BotoCoreError,
        ClientError,
    )

    try:
        yield
    except (BotoCoreError, ClientError) as problem:
        raise StorageError(f"{doing} {address}: {problem}", retryable=True) from problem


class S3Drops:
    """A drop directory at `s3://bucket/prefix`."""

    def __init__(self, address: str) -> None:
        import boto3  # only for those who have drops there

        bucket, _, prefix = address.removeprefix(_S3).partition("/")
        if not bucket:
            raise ConfigError(f"{address} names no bucket", hint="s3://bucket/prefix")
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        # A session of its own: the one of the process remembers the account of whoever came first.
        self._client: Any = boto3.session.Session().client("s3")

    def list(self, on_problem: OnProblem = ignore_problem) -> list[DroppedFile]:
        with _translated("listing", f"{_S3}{self._bucket}/{self._prefix}"):
            return sorted(self._found(on_problem), key=lambda file: (file.branch, file.address))

    def _found(self, on_problem: OnProblem) -> Iterator[DroppedFile]:
        pages = self._client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix):
            for item in page.get("Contents", ()):
                folder, _, name = item["Key"].removeprefix(self._prefix).partition("/")
                if not is_dropped(name) or "/" in name or folder.startswith((".", "_")):
                    continue
                file = self._file(unquote(folder), item["Key"], item["Size"], item)
                problem = name_problem(f"{folder}{file.branch}{name}")
                if problem is None:
                    yield file
                else:
                    on_problem(DropProblem(file.address, problem, file.id))

    def _file(self, branch: str, key: str, size: int, item: dict[str, Any]) -> DroppedFile:
        written = round(item["LastModified"].timestamp() * 1_000_000)
        address = f"{_S3}{self._bucket}/{key}"
        return DroppedFile(branch, address, size, written, item.get("ETag", ""))

    def look(self, file: DroppedFile) -> DroppedFile | None:
        key = self._key(file.address)
        with _translated("looking for", file.address):
            listed = self._client.list_objects_v2(Bucket=self._bucket, Prefix=key, MaxKeys=1)
        found = [item for item in listed.get("Contents", ()) if item["Key"] == key]
        return self._file(file.branch, key, found[0]["Size"], found[0]) if found else None

    def open(self, file: DroppedFile) -> IO[bytes]:
        with _translated("reading", file.address):
            got = self._client.get_object(Bucket=self._bucket, Key=self._key(file.address))
        return cast("IO[bytes]", got["Body"])

    def archive(self, file: DroppedFile, folder: str) -> str | None:
        if self.look(file) != file:
            return None
        source = self._key(file.address)
        target = f"{self._prefix}{folder}/{folder_of(file.branch)}/"
        chosen = f"{target}{file.name}"
        if self.look(DroppedFile(file.branch, f"{_S3}{self._bucket}/{chosen}", 0, 0)) is not None:
            chosen = f"{target}{file.stamp}-{file.name}"
        with _translated("moving", file.address):
            if not self._try_copy(source, chosen, file.tag):
                return None
        # What was written meanwhile waits for a load; a copy of what was loaded is archived.
        if self.look(file) == file:
            with _translated("moving", file.address):
                self._client.delete_object(Bucket=self._bucket, Key=source)
        return f"{_S3}{self._bucket}/{chosen}"

    def _try_copy(self, source: str, target: str, etag: str) -> bool:
        """Copy a version of an object; False if another one has taken its place."""
        from botocore.exceptions import ClientError  # as above

        condition = {"CopySourceIfMatch": etag} if etag else {}
        place = {"Bucket": self._bucket, "Key": source}
        try:
            self._client.copy(place, self._bucket, target, ExtraArgs=condition)
        except ClientError as problem:
            if problem.response["Error"]["Code"] in _CHANGED:
                return False
            raise
        return True

    def write(self, address: str, text: str) -> None:
        with _translated("writing", address):
            self._client.put_object(Bucket=self._bucket, Key=self._key(address), Body=text.encode())

    def _key(self, address: str) -> str:
        return address.removeprefix(f"{_S3}{self._bucket}/")
