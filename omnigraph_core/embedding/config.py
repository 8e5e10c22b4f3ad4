"""From the environment to what one embedder needs: who makes vectors, where, and how patiently.

A missing key is no error here: it becomes one when a vector is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from omnigraph_core import settings
from omnigraph_core.errors import ConfigError


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

    @property
    def has_tasks(self) -> bool:
        """A stored text and a question of the same words get different vectors."""
        return self.provider is Provider.GEMINI


def read_config() -> EmbedConfig:
    """What the environment says now.

    Raises:
        ConfigError: the provider is unknown, or has no usable address.
    """
    provider = _provider()
    if provider is Provider.MOCK:
        return EmbedConfig(provider, MOCK_MODEL)
    base_url = _checked_url(_base_url(provider))
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


def _base_url(provider: Provider) -> str:
    url = settings.EMBED_BASE_URL.read()
    if provider is Provider.GEMINI:
        return url or settings.GEMINI_BASE_URL.read() or _GEMINI_URL
    url = url or settings.OPENAI_BASE_URL.read()
    if url is not None:
        return url
    if provider is Provider.OPENAI:
        return _OPENAI_URL
    if settings.OPENROUTER_API_KEY.read() is not None:
        return _OPENROUTER_URL
    raise ConfigError(
        "provider openai-compatible has no address",
        hint=f"set {settings.EMBED_BASE_URL.name}, or {settings.OPENROUTER_API_KEY.name} "
        "to use OpenRouter",
    )


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        is_usable = False
    if not is_usable:
        raise ConfigError(f"expected an http or https address of the provider, found {url!r}")
    return url.rstrip("/")


def _key(provider: Provider, base_url: str) -> tuple[str | None, str | None]:
    """The key, and the variable to name when it is missing: no service gets another's key."""
    if provider is Provider.GEMINI:
        return settings.GEMINI_API_KEY.read(), settings.GEMINI_API_KEY.name
    if provider is Provider.OPENAI:
        return settings.OPENAI_API_KEY.read(), settings.OPENAI_API_KEY.name
    if _is_openrouter(base_url):
        return settings.OPENROUTER_API_KEY.read(), settings.OPENROUTER_API_KEY.name
    return settings.OPENAI_API_KEY.read() or settings.OPENROUTER_API_KEY.read(), None


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
        home = settings.XDG_CACHE_HOME.read()
        directory = Path.home() / ".cache" if home is None else Path(home)
        return directory / "omnigraph" / "embeddings.sqlite"
    return None if named.lower() == "off" else Path(named).expanduser()
