"""The settings of the local platform are checked as a whole, and its files are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_assets.local.files import environment_of, told_embeddings, write_files
from omnigraph_assets.local.places import Places, read_places
from omnigraph_assets.local.up import reset
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = read_places({"PLATFORM_DIR": str(tmp_path)})
    write_files(made)
    return made


def test_reset_deletes_what_is_its_own(places: Places) -> None:
    (places.directory / "mine.txt").write_text("kept")
    reset(places)
    assert [path.name for path in places.directory.iterdir()] == ["mine.txt"]
    (places.directory / "mine.txt").unlink()
    reset(places)
    assert not places.directory.exists()
    reset(places)


def test_all_bad_settings_are_told_at_once() -> None:
    given = {"DAGSTER_PORT": "high", "SERVER_PORT": "70000", "PLATFORM_SECONDS": "0"}
    with pytest.raises(ConfigError) as refused:
        read_places(given)
    for name, value in given.items():
        assert f"{name} is {value!r}" in str(refused.value)
    with pytest.raises(ConfigError, match="CODE_PORT and SERVER_PORT are both 4000"):
        read_places({"SERVER_PORT": "4000"})


def test_vectors_come_from_a_provider_if_there_is_a_key(places: Places) -> None:
    alone = environment_of(places, {"OMNIGRAPH_SERVER_BEARER_TOKEN": "secret"})
    assert alone["OMNIGRAPH_EMBEDDINGS_MOCK"] == "1"
    assert "OMNIGRAPH_SERVER_BEARER_TOKEN" not in alone
    assert "no key" in told_embeddings(alone)
    keyed = environment_of(places, {"OPENAI_API_KEY": "key"})
    assert "OMNIGRAPH_EMBEDDINGS_MOCK" not in keyed
    assert told_embeddings(keyed) == "by the provider of OPENAI_API_KEY"
