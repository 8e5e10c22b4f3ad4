"""The address of a graph behind a server: a URL comes in, the part before every path goes out."""

from __future__ import annotations

from urllib.parse import urlsplit

from omnigraph_core.errors import ConfigError


def is_url(address: str) -> bool:
    """Whether an address is one of a server, and not of a store.

    >>> is_url("https://graphs.example.org/graphs/stock"), is_url("s3://bucket/stock")
    (True, False)
    """
    return address.strip().lower().startswith(("http://", "https://"))


def parse_address(address: str) -> str:
    """A URL without a slash at its end; it may have a path, as `https://host/graphs/stock`.

    Raises:
        ConfigError: not the URL of a server, or one with a password, which would be shown and
            logged wherever the address is.

    >>> parse_address("https://graphs.example.org/graphs/stock/")
    'https://graphs.example.org/graphs/stock'
    """
    text = address.strip()
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as problem:
        raise ConfigError(f"not the address of a server: {problem}") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "the address of a server has a user or password in it",
            hint="leave it out, and give the token with `token=` or OMNIGRAPH_BEARER_TOKEN",
        )
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise ConfigError(
            f"not the address of a server: {text!r}", hint="give http://host:port or https://host"
        )
    if parts.query or parts.fragment:
        raise ConfigError(f"the address of a server ends with its path: {text!r}")
    return text.rstrip("/")
