"""From the environment to what one embedder needs: who makes vectors, where, and how patiently.

A missing key is no error here: it becomes one when a vector is needed.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from omnigraph_core import settings
from omnigraph_core.embedding.limits import Limits
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from omnigraph_core.settings import Setting

_log = logging.getLogger(__name__)


class Provider(StrEnum):
    GEMINI = "gemini"
    OPENAI = "openai"
    OPENAI_COMPATIBLE = "openai-compatible"
    MOCK = "mock"


GEMINI_MODEL: Final = "gemini-embedding-2-preview"
MOCK_MODEL: Final = "mock"
_OPENAI_MODEL: Final = "text-embedding-3-small"
_GEMINI_URL: Final = "https://generativelanguage.googleapis.com/v1beta"
_OPENAI_URL: Final = "https://api.openai.com/v1"
_OPENROUTER_URL: Final = "https://openrouter.ai/api/v1"
_OPENROUTER_HOST: Final = "openrouter.ai"
_LONGEST_URL: Final = 2048
_MAX_SHOWN: Final = 200
_PLAIN_HOST: Final = re.compile(r"(?=[a-z_])(?!.*xn--)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
"""One that every client takes; those left out may be meant as an IP, or are encoded already."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often a request is tried; times in seconds."""

    timeout: float = 30.0
    attempts: int = 4
    backoff: float = 0.2
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class EmbedConfig:
    """Everything an embedder is told. The key is left out of what is printed."""

    provider: Provider
    model: str
    base_url: str = ""
    key: str | None = field(default=None, repr=False)
    key_name: str | None = None
    """The variable a missing key belongs in; None: the service may do without."""
    patience: Patience = field(default_factory=Patience)
    batch: int = 64
    concurrency: int = 4
    cache: Path | None = None
    limits: Limits = field(default_factory=Limits)
    batch_from: int | None = None
    """Pending texts from which a backfill uses the batch API; None: never."""
    batch_poll: float = 60.0
    """Seconds between two questions whether a batch is done, at most."""

    @property
    def has_tasks(self) -> bool:
        """A stored text and a question of the same words get different vectors."""
        return self.provider is Provider.GEMINI


def read_config() -> EmbedConfig:
    """What the environment says now.

    Raises:
        ConfigError: the provider is unknown, or has no usable address, key or cache file.
    """
    provider = _provider()
    if provider is Provider.MOCK:
        return EmbedConfig(provider, MOCK_MODEL)
    base_url = _checked_url(*_base_url(provider))
    key, key_name = _key(provider, base_url)
    return EmbedConfig(
        provider,
        settings.EMBED_MODEL.read() or _usual_model(provider, base_url),
        base_url,
        key,
        key_name,
        _patience(),
        settings.EMBED_BATCH.read(),
        settings.EMBED_CONCURRENCY.read(),
        _cache_file(),
        read_limits(),
        settings.EMBED_BATCH_FROM.read(),
        settings.EMBED_BATCH_POLL_MS.read() / 1000,
    )


def read_limits() -> Limits:
    """What the environment says of the account."""
    return Limits(
        settings.EMBED_REQUESTS_PER_MINUTE.read(), settings.EMBED_TOKENS_PER_MINUTE.read()
    )


def _provider() -> Provider:
    if settings.EMBEDDINGS_MOCK.read():
        return Provider.MOCK
    named = settings.EMBED_PROVIDER.read()
    if named is not None:
        return Provider(named)
    if settings.GEMINI_API_KEY.read() is not None:
        return Provider.GEMINI
    if settings.OPENAI_API_KEY.read() is not None:
        return Provider.OPENAI
    if settings.OPENROUTER_API_KEY.read() is not None:
        return Provider.OPENAI_COMPATIBLE
    return Provider.GEMINI


def _base_url(provider: Provider) -> tuple[str, str]:
    """The address, and the variable to name if it cannot be used."""
    is_gemini = provider is Provider.GEMINI
    weaker = settings.GEMINI_BASE_URL if is_gemini else settings.OPENAI_BASE_URL
    for setting in (settings.EMBED_BASE_URL, weaker):
        url = setting.read()
        if url is not None:
            return url, setting.name
    return _usual_url(provider), settings.EMBED_BASE_URL.name


def _usual_url(provider: Provider) -> str:
    if provider is Provider.GEMINI:
        return _GEMINI_URL
    if provider is Provider.OPENAI:
        return _OPENAI_URL
    if settings.OPENROUTER_API_KEY.read() is not None:
        return _OPENROUTER_URL
    raise ConfigError(
        "provider openai-compatible has no address",
        hint=f"set {settings.EMBED_BASE_URL.name}, or {settings.OPENROUTER_API_KEY.name} "
        "to use OpenRouter",
    )


def _checked_url(url: str, name: str) -> str:
    # The parser would drop some control characters, so they are looked for first.
    if len(url) > _LONGEST_URL or not url.isprintable() or not _is_address(url):
        shown = _without_password(url)[:_MAX_SHOWN]
        raise ConfigError(
            f"{name}: expected an http or https address of the provider, found {shown!r}"
        )
    return url.rstrip("/")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and parts.port != 0
        host = parts.hostname or ""
    except ValueError:  # a port that is no number, a bracket that does not close
        return False
    if not is_http or not host:
        return False
    return bool(_PLAIN_HOST.fullmatch(host)) or _is_ip(host) or _is_encodable_host(url)


def _without_password(url: str) -> str:
    return re.sub(r"^(\w+://)?.*@", r"\1***@", url, flags=re.DOTALL)


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_encodable_host(url: str) -> bool:
    """Whether the client, and then the resolver, can spell a host that is not a plain one."""
    import httpx2  # here because few hosts need it, and it loads slowly

    try:
        address = httpx2.URL(url)
        spelled = address.raw_host.decode("ascii")
        is_readable = bool(address.host and spelled.encode("idna"))
    except (httpx2.InvalidURL, UnicodeError):
        return False
    return is_readable and re.fullmatch("[a-z0-9._-]+", spelled) is not None


def _key(provider: Provider, base_url: str) -> tuple[str | None, str | None]:
    """The key, and the variable to name when it is missing: no service gets another's key."""
    if provider is Provider.GEMINI:
        return _read_key(settings.GEMINI_API_KEY), settings.GEMINI_API_KEY.name
    if provider is Provider.OPENAI:
        return _read_key(settings.OPENAI_API_KEY), settings.OPENAI_API_KEY.name
    if _is_openrouter(base_url):
        return _read_key(settings.OPENROUTER_API_KEY), settings.OPENROUTER_API_KEY.name
    return _read_key(settings.OPENAI_API_KEY) or _read_key(settings.OPENROUTER_API_KEY), None


def _read_key(setting: Setting[str | None]) -> str | None:
    key = setting.read()
    # No header can carry another, and the client's own words about it would show the key.
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ConfigError(f"{setting.name}: expected printable ASCII characters, found others")
    return key


def _usual_model(provider: Provider, base_url: str) -> str:
    if provider is Provider.GEMINI:
        return GEMINI_MODEL
    named = settings.NANOGRAPH_EMBED_MODEL.read()
    if named is not None:
        return named
    return f"openai/{_OPENAI_MODEL}" if _is_openrouter(base_url) else _OPENAI_MODEL


def _is_openrouter(base_url: str) -> bool:
    return urlsplit(base_url).hostname == _OPENROUTER_HOST


def _patience() -> Patience:
    deadline = settings.EMBED_DEADLINE_MS.read()
    return Patience(
        settings.EMBED_TIMEOUT_MS.read() / 1000,
        settings.EMBED_RETRY_ATTEMPTS.read(),
        settings.EMBED_RETRY_BACKOFF_MS.read() / 1000,
        None if deadline is None else deadline / 1000,
    )


def _cache_file() -> Path | None:
    named = settings.EMBED_CACHE.read()
    if named is None:
        directory = _cache_directory()
        return None if directory is None else directory / "omnigraph" / "embeddings.sqlite"
    if named.lower() == "off":
        return None
    try:
        return Path(named).expanduser()
    except RuntimeError as problem:
        message = f"{settings.EMBED_CACHE.name}={named!r}: expected a file, found no such home"
        raise ConfigError(message) from problem


def _cache_directory() -> Path | None:
    """Of the user; None if there is no home, as nobody asked for a file in it."""
    named = settings.XDG_CACHE_HOME.read()
    if named is not None:
        return Path(named)
    try:
        return Path.home() / ".cache"
    except RuntimeError:
        _log.warning("vectors are not cached: there is no home directory")
        return None
