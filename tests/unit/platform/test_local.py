"""The settings of the local platform are checked as a whole, and its files are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_assets import config
from omnigraph_assets.local.files import (
    commands_of,
    describe_embeddings,
    environment_of,
    write_files,
)
from omnigraph_assets.local.places import ENGINES, Places, read_places
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


def test_spark_has_bounded_memory_and_is_known_to_all_that_start_runs(places: Places) -> None:
    commands = commands_of(places)
    spark = commands["spark"].words
    assert spark[spark.index("--driver-memory") + 1] == "1g"
    assert not any("eventLog" in word for word in spark)
    remote = {"OMNIGRAPH_SPARK_REMOTE": "sc://127.0.0.1:15002"}
    for name in ("code-server", "fork-server", "webserver", "daemon"):
        assert commands[name].variables == remote
    assert not commands["server"].variables
    environment = environment_of(places, {"SPARK_PORT": "15002"})
    assert environment["OMNIGRAPH_PLATFORM_ENGINE"] == "spark"
    assert "SPARK_PORT" not in environment


def test_the_event_log_of_spark_is_kept_on_demand(tmp_path: Path) -> None:
    places = read_places({"PLATFORM_DIR": str(tmp_path), "SPARK_EVENT_LOG": "1"})
    write_files(places)
    assert (
        f"spark.eventLog.dir={places.spark_events.as_uri()}" in commands_of(places)["spark"].words
    )
    assert places.spark_events.is_dir()
    reset(places)
    assert not tmp_path.exists()


@pytest.mark.parametrize(
    ("given", "engine"),
    [
        ({"ENGINE": "local"}, "local"),
        ({"OMNIGRAPH_PLATFORM_ENGINE": "local"}, "local"),
        ({"OMNIGRAPH_SPARK_REMOTE": "sc://elsewhere:15002"}, "spark"),
    ],
)
def test_no_spark_is_started_without_need(given: dict[str, str], engine: str) -> None:
    places = read_places(given)
    assert not places.has_spark
    commands = commands_of(places)
    assert "spark" not in commands
    assert not commands["code-server"].variables
    environment = environment_of(places, given)
    assert environment["OMNIGRAPH_PLATFORM_ENGINE"] == engine
    remote = "OMNIGRAPH_SPARK_REMOTE"
    assert environment.get(remote) == given.get(remote)


def test_bad_settings_of_spark_are_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        read_places({"ENGINE": "steam", "SPARK_MEMORY": "lots", "SPARK_PORT": "4000"})
    for told in (
        "ENGINE is 'steam'",
        "SPARK_MEMORY is 'lots'",
        "CODE_PORT and SPARK_PORT are both",
    ):
        assert told in str(refused.value)


def test_engines_are_those_of_the_definitions() -> None:
    assert ENGINES == config.ENGINES
    with pytest.raises(ConfigError, match="ENGINE is 'auto': it must be one of spark, local"):
        read_places({"ENGINE": "auto"})


def test_vectors_come_from_a_provider_if_there_is_a_key(places: Places) -> None:
    alone = environment_of(places, {"OMNIGRAPH_SERVER_BEARER_TOKEN": "secret"})
    assert alone["OMNIGRAPH_EMBEDDINGS_MOCK"] == "1"
    assert "OMNIGRAPH_SERVER_BEARER_TOKEN" not in alone
    assert "no key" in describe_embeddings(alone)
    keyed = environment_of(places, {"OPENAI_API_KEY": "key"})
    assert "OMNIGRAPH_EMBEDDINGS_MOCK" not in keyed
    assert describe_embeddings(keyed) == "by the provider of OPENAI_API_KEY"
