"""Addresses of graphs. Text as users write it comes in, one normal form goes out.

A local path, `file://` or `s3://bucket/prefix`; relative paths become absolute, so an address means
the same whatever directory a process runs in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from omnigraph_core.errors import ConfigError

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_AMBIGUOUS: Final = re.compile(r"[%#?\x00-\x1f\x7f]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SUPPORTED: Final = "give a local path, file:///path or s3://bucket/prefix"


class Scheme(StrEnum):
    LOCAL = "file"
    S3 = "s3"


@dataclass(frozen=True, slots=True)
class StoreUri:
    """A graph's address: an absolute local path or `s3://bucket[/prefix]`, no slash at the end."""

    text: str
    scheme: Scheme

    def join(self, path: str) -> str:
        """The full address of something below the root."""
        return f"{self.text.rstrip('/')}/{path}"

    @property
    def bucket(self) -> str:
        return urlsplit(self.text).netloc

    @property
    def prefix(self) -> str:
        """The path inside the bucket, without slashes around it."""
        return self.text.removeprefix(f"s3://{self.bucket}").strip("/")

    def __str__(self) -> str:
        return self.text


def parse_uri(text: str) -> StoreUri:
    """The normal form of an address.

    Raises:
        ConfigError: no address, or a scheme graphs cannot be kept in.

    >>> parse_uri("s3://lake/graphs/parts/").text
    's3://lake/graphs/parts'
    """
    found = _SCHEME.match(text)
    scheme = found[0].lower() if found else None
    if scheme == "s3://":
        return _s3(text)
    if scheme == "file://":
        return _local(_file_path(text))
    if scheme in ("http://", "https://"):
        raise ConfigError(
            f"{text} is the address of a server, not of storage", hint="connect with the client"
        )
    if scheme is not None:
        raise ConfigError(f"graphs cannot be kept at {text}", hint=_SUPPORTED)
    return _local(text)


def normal_address(text: str) -> str:
    """An address in the form that is the same for all its spellings; as it is if it cannot be one.

    >>> normal_address("s3://lake/stock/"), normal_address("ftp://lake/stock")
    ('s3://lake/stock', 'ftp://lake/stock')
    """
    try:
        return parse_uri(text).text
    except ConfigError:
        return text


def _s3(text: str) -> StoreUri:
    bucket, _, prefix = text[len("s3://") :].partition("/")
    segments = [segment for segment in prefix.split("/") if segment]
    if not bucket or any(segment in (".", "..") for segment in segments):
        raise ConfigError(f"{text} names no bucket and prefix", hint=_SUPPORTED)
    if found := _AMBIGUOUS.search(text):
        # The libraries below read these differently: two halves of a graph at two prefixes.
        raise ConfigError(
            f"{text!r} holds {found[0]!r}",
            hint="choose a prefix without % # ? and control characters",
        )
    return StoreUri("/".join((f"s3://{bucket}", *segments)), Scheme.S3)


def _file_path(text: str) -> str:
    parts = urlsplit(text, allow_fragments=False)
    if parts.netloc not in ("", "localhost"):
        raise ConfigError(f"{text} names another host", hint=_SUPPORTED)
    query = f"?{parts.query}" if parts.query else ""
    return unquote(parts.path + query)


def _local(path: str) -> StoreUri:
    if not path.strip() or _CONTROL.search(path):
        raise ConfigError(f"{path!r} is no path", hint=_SUPPORTED)
    return StoreUri(str(Path(path).absolute().resolve()), Scheme.LOCAL)
