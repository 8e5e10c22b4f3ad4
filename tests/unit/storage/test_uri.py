"""Addresses as users write them, and the one form they get."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.storage.uri import Scheme, parse_uri
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path


@each(
    ("given", "path"),
    [
        ("/lake/parts", "/lake/parts"),
        ("/lake/parts/", "/lake/parts"),
        ("/lake//parts/./x/..", "/lake/parts"),
        ("/lake/a b/50%/#1/ü?", "/lake/a b/50%/#1/ü?"),
        ("/lake/a%20b", "/lake/a%20b"),
        ("file:///lake/parts", "/lake/parts"),
        ("FILE:///lake/parts/", "/lake/parts"),
        ("file://localhost/lake/parts", "/lake/parts"),
        ("file:///lake/a%20b/50%25", "/lake/a b/50%"),
        ("file:///lake/a#b?c", "/lake/a#b?c"),
        ("file:///lake/%C3%BC", "/lake/ü"),
    ],
)
def test_local(given: str, path: str) -> None:
    uri = parse_uri(given)
    assert (uri.text, uri.scheme) == (path, Scheme.LOCAL)
    assert uri.join("nodes/a") == f"{path}/nodes/a"
    assert str(uri) == path


def test_the_root_directory_is_joined_with_one_slash() -> None:
    assert parse_uri("/").join("__manifest") == "/__manifest"


def test_a_relative_path_means_the_same_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for given in ("graph", "./graph", "graph/", "x/../graph"):
        assert parse_uri(given).text == str(tmp_path / "graph")
    assert parse_uri(".").text == str(tmp_path)


def test_a_link_is_followed_once(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert parse_uri(str(tmp_path / "link")).text == str(tmp_path / "real")


@each(
    ("given", "text", "bucket", "prefix"),
    [
        ("s3://lake", "s3://lake", "lake", ""),
        ("s3://lake/", "s3://lake", "lake", ""),
        ("s3://lake/graphs/parts", "s3://lake/graphs/parts", "lake", "graphs/parts"),
        ("S3://lake//graphs///parts//", "s3://lake/graphs/parts", "lake", "graphs/parts"),
        ("s3://lake/a b/50/ü", "s3://lake/a b/50/ü", "lake", "a b/50/ü"),
        ("s3://lake/lake", "s3://lake/lake", "lake", "lake"),
    ],
)
def test_s3(given: str, text: str, bucket: str, prefix: str) -> None:
    uri = parse_uri(given)
    assert (uri.text, uri.scheme) == (text, Scheme.S3)
    assert (uri.bucket, uri.prefix) == (bucket, prefix)


def test_below_a_bucket() -> None:
    assert parse_uri("s3://lake").join("__manifest") == "s3://lake/__manifest"
    assert parse_uri("s3://lake/parts/").join("nodes/a") == "s3://lake/parts/nodes/a"


@each(
    ("given", "told"),
    [
        ("", "no path"),
        ("   ", "no path"),
        ("a\0b", "no path"),
        ("s3://", "names no bucket"),
        ("s3:///parts", "names no bucket"),
        ("s3://lake/../other", "names no bucket"),
        ("s3://lake/a/./b", "names no bucket"),
        ("s3://lake/a%20b", "holds '%'"),
        ("s3://lake/a#b", "holds '#'"),
        ("s3://lake/a?b", "holds '\\?'"),
        ("file://server/lake", "another host"),
        ("http://server:8080", "address of a server"),
        ("HTTPS://server", "address of a server"),
        ("gs://lake/parts", "cannot be kept at gs://lake/parts"),
        ("az://lake/parts", "cannot be kept"),
        ("memory://x", "cannot be kept"),
    ],
)
def test_no_address(given: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        parse_uri(given)
    assert caught.value.hint is not None


@pytest.mark.parametrize("given", ["lines\nbroken", "/lake/\x1b[2J", "s3://lake/a\nb"])
def test_control_characters_are_refused(given: str) -> None:
    """The libraries refuse them later, when a directory has been made already."""
    with pytest.raises(ConfigError):
        parse_uri(given)
