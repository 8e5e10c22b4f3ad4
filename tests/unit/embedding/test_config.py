"""From variables to a configuration."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph_core.embedding.config import EmbedConfig, Patience, Provider, read_config
from omnigraph_core.embedding.embedder import Embedder
from omnigraph_core.errors import ConfigError
from omnigraph_core.settings import SETTINGS
from tests.support.cases import each

EMBEDDING = [
    name
    for setting in SETTINGS
    for name in (setting.name, *setting.aliases)
    if "EMBED" in name or "GEMINI" in name or name.startswith("OPEN")
]
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
OPENAI_URL = "https://api.openai.com/v1"
OPENROUTER_URL = "https://openrouter.ai/api/v1"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in EMBEDDING:
        monkeypatch.delenv(name, raising=False)


def config(monkeypatch: pytest.MonkeyPatch, **variables: str) -> EmbedConfig:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return read_config()


@each(
    ("variables", "provider", "url", "key", "key_name"),
    [
        ({}, "gemini", GEMINI_URL, None, "GEMINI_API_KEY"),
        ({"GEMINI_API_KEY": "g"}, "gemini", GEMINI_URL, "g", "GEMINI_API_KEY"),
        ({"OPENAI_API_KEY": "o"}, "openai", OPENAI_URL, "o", "OPENAI_API_KEY"),
        (
            {"GEMINI_API_KEY": "g", "OPENAI_API_KEY": "o"},
            "gemini",
            GEMINI_URL,
            "g",
            "GEMINI_API_KEY",
        ),
        (
            {"OPENROUTER_API_KEY": "r"},
            "openai-compatible",
            OPENROUTER_URL,
            "r",
            "OPENROUTER_API_KEY",
        ),
        (
            {"OMNIGRAPH_EMBED_PROVIDER": " OpenAI ", "GEMINI_API_KEY": "g"},
            "openai",
            OPENAI_URL,
            None,
            "OPENAI_API_KEY",
        ),
    ],
)
def test_the_provider_follows_from_the_keys(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    provider: str,
    url: str,
    key: str | None,
    key_name: str,
) -> None:
    found = config(monkeypatch, **variables)
    assert (found.provider, found.base_url, found.key, found.key_name) == (
        provider,
        url,
        key,
        key_name,
    )


@each(
    ("provider", "variables", "url"),
    [
        ("gemini", {"OMNIGRAPH_GEMINI_BASE_URL": "http://a/v1beta/"}, "http://a/v1beta"),
        ("gemini", {"OPENAI_BASE_URL": "http://a"}, GEMINI_URL),
        ("openai", {"OPENAI_BASE_URL": "http://a/v1"}, "http://a/v1"),
        ("openai", {"OMNIGRAPH_GEMINI_BASE_URL": "http://a"}, OPENAI_URL),
        (
            "openai",
            {"OPENAI_BASE_URL": "http://a", "OMNIGRAPH_EMBED_BASE_URL": "http://b"},
            "http://b",
        ),
        ("openai-compatible", {"OPENAI_BASE_URL": "http://a/v1"}, "http://a/v1"),
    ],
)
def test_addresses(
    monkeypatch: pytest.MonkeyPatch, provider: str, variables: dict[str, str], url: str
) -> None:
    assert config(monkeypatch, OMNIGRAPH_EMBED_PROVIDER=provider, **variables).base_url == url


@each(
    ("provider", "variables", "model"),
    [
        ("gemini", {}, "gemini-embedding-2-preview"),
        ("gemini", {"NANOGRAPH_EMBED_MODEL": "old"}, "gemini-embedding-2-preview"),
        ("gemini", {"OMNIGRAPH_EMBED_MODEL": "new"}, "new"),
        ("openai", {}, "text-embedding-3-small"),
        ("openai", {"NANOGRAPH_EMBED_MODEL": "old"}, "old"),
        ("openai", {"NANOGRAPH_EMBED_MODEL": "old", "OMNIGRAPH_EMBED_MODEL": "new"}, "new"),
        (
            "openai-compatible",
            {"OPENROUTER_API_KEY": "r"},
            "openai/text-embedding-3-small",
        ),
        ("mock", {"OMNIGRAPH_EMBED_MODEL": "new"}, "mock"),
    ],
)
def test_models(
    monkeypatch: pytest.MonkeyPatch, provider: str, variables: dict[str, str], model: str
) -> None:
    assert config(monkeypatch, OMNIGRAPH_EMBED_PROVIDER=provider, **variables).model == model
    embedder = Embedder.from_settings()
    assert embedder.model_for(None) == model
    assert embedder.model_for("declared") == ("mock" if provider == "mock" else "declared")


def test_no_service_gets_the_key_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    found = config(
        monkeypatch,
        OMNIGRAPH_EMBED_PROVIDER="openai-compatible",
        OMNIGRAPH_EMBED_BASE_URL=OPENROUTER_URL,
        OPENAI_API_KEY="o",
    )
    assert (found.key, found.key_name) == (None, "OPENROUTER_API_KEY")


def test_other_services_may_do_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", "http://localhost:11434/v1")
    found = config(monkeypatch, OMNIGRAPH_EMBED_PROVIDER="openai-compatible")
    assert (found.key, found.key_name) == (None, None)
    assert config(monkeypatch, OPENROUTER_API_KEY="r").key == "r"
    assert config(monkeypatch, OPENAI_API_KEY="o").key == "o"


@each("value", ["1", "true", " YES ", "On"])
@each("name", ["OMNIGRAPH_EMBEDDINGS_MOCK", "NANOGRAPH_EMBEDDINGS_MOCK"])
def test_the_mock_switch(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    found = config(monkeypatch, **{name: value, "OMNIGRAPH_EMBED_PROVIDER": "gemini"})
    assert found.provider is Provider.MOCK


@each("value", ["0", "false", "off", "2", "", "nonsense"])
def test_anything_else_is_no_mock(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    assert config(monkeypatch, OMNIGRAPH_EMBEDDINGS_MOCK=value).provider is Provider.GEMINI


@pytest.mark.parametrize("family", ["OMNIGRAPH", "NANOGRAPH"])
def test_patience_is_read_from_both_families(monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    found = config(
        monkeypatch,
        **{
            f"{family}_EMBED_TIMEOUT_MS": "1500",
            f"{family}_EMBED_RETRY_ATTEMPTS": "1",
            f"{family}_EMBED_RETRY_BACKOFF_MS": "20",
            "OMNIGRAPH_EMBED_DEADLINE_MS": "60000",
        },
    )
    assert found.patience == Patience(1.5, 1, 0.02, 60.0)


@each("value", ["0", "-1", "1.5", "many", ""])
def test_figures_that_are_none_mean_the_default(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    names = [name for name in EMBEDDING if name.startswith("OMNIGRAPH_EMBED_")]
    figures = ("_MS", "_ATTEMPTS", "_BATCH", "_CONCURRENCY")
    found = config(monkeypatch, **{name: value for name in names if name.endswith(figures)})
    assert found.patience == Patience(30.0, 4, 0.2, None)
    assert (found.batch, found.concurrency) == (64, 4)


def test_the_cache_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.sep + "caches")
    assert config(monkeypatch).cache == Path("/caches/omnigraph/embeddings.sqlite")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert config(monkeypatch).cache == Path.home() / ".cache/omnigraph/embeddings.sqlite"
    assert config(monkeypatch, OMNIGRAPH_EMBED_CACHE="~/v").cache == Path.home() / "v"
    assert config(monkeypatch, OMNIGRAPH_EMBED_CACHE="OFF").cache is None


@each(
    ("variables", "message"),
    [
        ({"OMNIGRAPH_EMBED_PROVIDER": "magic"}, "expected one of gemini, openai"),
        ({"OMNIGRAPH_EMBED_PROVIDER": "openai-compatible"}, "has no address"),
        ({"OMNIGRAPH_EMBED_BASE_URL": "localhost:80"}, "expected an http or https address"),
        ({"OMNIGRAPH_EMBED_BASE_URL": "http://"}, "expected an http or https address"),
        ({"OMNIGRAPH_EMBED_BASE_URL": "http://a:b"}, "expected an http or https address"),
        ({"OMNIGRAPH_EMBED_CACHE": "~nosuchuser/x"}, "^OMNIGRAPH_EMBED_CACHE='~nosuchuser/x': "),
    ],
)
def test_bad_settings_are_refused_on_first_need(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    embedder = Embedder.from_settings()
    with pytest.raises(ConfigError, match=message):
        embedder.model_for(None)


@each(
    "url",
    [
        "http://[::1",
        "http://exa mple",
        "http://ex\x01ample",
        "http://exa\nmple",
        "http://127.0.0.1:9/\x01",
        "http://xn--\udcff.com",
        "http://xn--ü.com",
        "http://-xn--",
        "http://a%00b",
        "http://☃.example",
        f"http://{'a' * 64}.example",
        f"http://{'ü' * 60}.example",
        "http://a..example",
        "http://.example",
        "http://999.1.1.1",
        "http://[::g]",
        f"http://example/{'a' * 70_000}",
    ],
)
@each(
    ("provider", "name"),
    [
        ("gemini", "OMNIGRAPH_EMBED_BASE_URL"),
        ("gemini", "OMNIGRAPH_GEMINI_BASE_URL"),
        ("openai", "OPENAI_BASE_URL"),
    ],
)
def test_addresses_no_request_can_go_to(
    monkeypatch: pytest.MonkeyPatch, provider: str, name: str, url: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: expected an http or https address"):
        config(monkeypatch, OMNIGRAPH_EMBED_PROVIDER=provider, **{name: url})


@each(
    "url",
    [
        "http://localhost:11434/v1",
        "https://EXAMPLE.com./v1",
        "http://my_service/v1",
        "http://127.0.0.1:80",
        "http://[::1]:8080/v1",
        "http://3com.example",
        "https://bücher.example/v1",
        "https://xn--bcher-kva.example/v1",
        f"http://{'a' * 63}.example",
        "http://someone:word@host/v1",
    ],
)
def test_addresses_a_request_can_go_to(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    assert config(monkeypatch, OMNIGRAPH_EMBED_BASE_URL=url).base_url == url


@pytest.mark.parametrize(
    "url", ["http://me:secret@exa mple", "me:secret@host", "ftp://me:a//secret@host"]
)
def test_the_password_of_an_address_is_not_shown(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    with pytest.raises(ConfigError, match=r"\*\*\*@(exa mple|host)") as caught:
        config(monkeypatch, OMNIGRAPH_EMBED_BASE_URL=url)
    assert "secret" not in str(caught.value)


@each("key", ["secretл", "secret\u00a01", "secret\n1", "secret\x7f1"])
@each(
    ("provider", "name", "url"),
    [
        ("gemini", "GEMINI_API_KEY", GEMINI_URL),
        ("openai", "OPENAI_API_KEY", OPENAI_URL),
        ("openai-compatible", "OPENAI_API_KEY", "http://a/v1"),
        ("openai-compatible", "OPENROUTER_API_KEY", "http://a/v1"),
        ("openai-compatible", "OPENROUTER_API_KEY", OPENROUTER_URL),
    ],
)
def test_keys_no_header_can_carry(
    monkeypatch: pytest.MonkeyPatch, provider: str, name: str, url: str, key: str
) -> None:
    monkeypatch.setenv(name, key)
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", url)
    with pytest.raises(ConfigError, match=f"^{name}: expected printable ASCII") as caught:
        config(monkeypatch, OMNIGRAPH_EMBED_PROVIDER=provider)
    assert "secret" not in str(caught.value)


def test_only_the_key_that_is_used_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    found = config(monkeypatch, OMNIGRAPH_EMBED_PROVIDER="gemini", OPENAI_API_KEY="л")
    assert found.key is None


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**32 - 2)  # of nobody the system knows
    assert config(monkeypatch).cache is None
    with pytest.raises(ConfigError, match=r"^OMNIGRAPH_EMBED_CACHE='~/v': expected a file"):
        config(monkeypatch, OMNIGRAPH_EMBED_CACHE="~/v")
    assert config(monkeypatch, OMNIGRAPH_EMBED_CACHE="/v").cache == Path("/v")


def test_a_key_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "secret" not in repr(config(monkeypatch, GEMINI_API_KEY="secret"))


def test_older_names_are_documented() -> None:
    for setting in SETTINGS:
        assert all(f"`{alias}`" in setting.about for alias in setting.aliases)
