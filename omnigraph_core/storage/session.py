"""One open store: a root address, how to reach it, and the caches its handles share.

Everything else in this package takes a `Store` and paths relative to its root, so nothing below a
root ever holds an absolute path and a graph can be moved.
"""

from __future__ import annotations

import os
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import lance
from obstore.store import LocalStore, S3Store

from omnigraph_core import settings
from omnigraph_core.storage.translate import translated
from omnigraph_core.storage.uri import Scheme, parse_uri

if TYPE_CHECKING:
    from omnigraph_core.storage.uri import StoreUri

_METADATA_CACHE_BYTES: Final = 256 * 2**20
_INDEX_CACHE_BYTES: Final = 1024 * 2**20
_MAX_RETRIES: Final = 6
_RETRY_SECONDS: Final = 30
_CONNECT_SECONDS: Final = 5


class Store:
    """A place graphs are kept in. Safe to share between threads."""

    def __init__(self, root: StoreUri) -> None:
        self.root = root
        self.options: dict[str, str] | None = _lance_options() if _is_s3(root) else None
        self.session = lance.Session(
            index_cache_size_bytes=_INDEX_CACHE_BYTES,
            metadata_cache_size_bytes=_METADATA_CACHE_BYTES,
        )

    def uri(self, path: str) -> str:
        return self.root.join(path)

    def create_root(self) -> None:
        """Make the root directory of a local store; an object store needs none."""
        if self.root.scheme is Scheme.LOCAL:
            with translated("creating the directory", self.root.text):
                Path(self.root.text).mkdir(parents=True, exist_ok=True)

    def sync(self) -> None:
        """Wait until a local store is on disk, if the setting asks for it."""
        if self.root.scheme is Scheme.LOCAL and settings.SYNC.read():
            os.sync()

    def identity_of(self, path: str) -> object:
        """What tells a small local file from one made later at the same path; None elsewhere.

        Raises:
            ObjectNotFound: the file is gone.
        """
        if self.root.scheme is not Scheme.LOCAL:
            return None
        with translated("looking for", self.uri(path)):
            return hash(Path(self.uri(path)).read_bytes())

    @cached_property
    def deletions(self) -> LocalStore | S3Store:
        """The same store for deletions that must not be repeated behind the caller's back: by then
        something else may have the name."""
        with translated("opening the store", self.root.text):
            is_s3 = _is_s3(self.root)
            return _s3_objects(self.root, max_retries=0) if is_s3 else self.objects

    @cached_property
    def objects(self) -> LocalStore | S3Store:
        """The store of small control objects; the root of a local one must exist."""
        with translated("opening the store", self.root.text):
            return _s3_objects(self.root) if _is_s3(self.root) else LocalStore(self.root.text)


def open_store(address: str) -> Store:
    """The store at an address, local or S3; nothing is read yet.

    Raises:
        ConfigError: the address is none a graph can be kept at.
    """
    return Store(parse_uri(address))


def _is_s3(root: StoreUri) -> bool:
    return root.scheme is Scheme.S3


def _endpoint() -> str | None:
    return settings.AWS_ENDPOINT_URL_S3.read() or settings.AWS_ENDPOINT_URL.read()


def _credentials() -> dict[str, str]:
    """What the environment gives; the libraries look for instance credentials otherwise."""
    given = {
        "aws_access_key_id": settings.AWS_ACCESS_KEY_ID.read(),
        "aws_secret_access_key": settings.AWS_SECRET_ACCESS_KEY.read(),
        "aws_session_token": settings.AWS_SESSION_TOKEN.read(),
        "aws_region": settings.AWS_REGION.read(),
        "aws_endpoint": _endpoint(),
    }
    return {name: value for name, value in given.items() if value is not None}


def _is_virtual_hosted() -> bool:
    return _endpoint() is None or not settings.AWS_S3_FORCE_PATH_STYLE.read()


def _lance_options() -> dict[str, str]:
    return {
        **_credentials(),
        "allow_http": str(settings.AWS_ALLOW_HTTP.read()).lower(),
        "aws_virtual_hosted_style_request": str(_is_virtual_hosted()).lower(),
        "client_max_retries": str(_MAX_RETRIES),
        "client_retry_timeout": str(_RETRY_SECONDS),
        "connect_timeout": f"{_CONNECT_SECONDS}s",
    }


def _s3_objects(root: StoreUri, max_retries: int = _MAX_RETRIES) -> S3Store:
    config: Any = {**_credentials(), "aws_virtual_hosted_style_request": _is_virtual_hosted()}
    return S3Store(
        root.bucket,
        prefix=root.prefix or None,
        config=config,
        client_options={
            "allow_http": settings.AWS_ALLOW_HTTP.read(),
            "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
        },
        retry_config={
            "max_retries": max_retries,
            "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
        },
    )
