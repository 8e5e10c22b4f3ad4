"""Graphs at odd places: what a path holds never changes what it means."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, GraphNotFound, StorageError
from omnigraph_core.storage.objects import list_objects
from omnigraph_core.storage.session import open_store
from tests.support.ageing import clean_up
from tests.support.graphs import append_pair, ids, new_graph

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    "a b",
    "50%",
    "a%20b",
    "%2F",
    "ü",
    "#1",
    "why?",
    "x*y",
    "it's",
    "😀",
    "~",
    "[x]",
    "a:b",
    "-",
]


def work_with(address: str) -> None:
    """Everything that names files: write, branch, tag, run, optimize, clean up, open again."""
    og = new_graph(address)
    append_pair(og, ["a"])
    og.branch_create("r/ü")
    append_pair(og, ["b"], "r/ü")
    og.tag_create("v 1")
    og.begin_run()
    og.optimize()
    clean_up(og, keep=1)
    again = Omnigraph.open(address)
    assert again.branch_list() == ("main", "r/ü")
    assert ids(again, again.snapshot("r/ü")) == ["a", "b"]
    assert len(again.list_commits("r/ü")) == 3


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_of_directories(tmp_path: Path, name: str) -> None:
    work_with(str(tmp_path / name / "graph"))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert [path.name for path in (tmp_path / name).iterdir()] == ["graph"]


@pytest.mark.parametrize("prefix", ["a b", "ü", "it's", "a:b+c", "deep/er"])
def test_odd_prefixes_in_a_bucket(s3_root: str, prefix: str) -> None:
    work_with(f"{s3_root}/{prefix}")
    with pytest.raises(GraphNotFound):
        Omnigraph.open(s3_root)


@pytest.mark.parametrize("prefix", ["why?", "#1", "50%", "a%20b", "%2F"])
def test_a_prefix_is_usable_or_refused(s3_root: str, prefix: str) -> None:
    """Never a graph, or a part of one, somewhere else than where it was asked for."""
    with contextlib.suppress(ConfigError):
        work_with(f"{s3_root}/{prefix}")
    store = open_store(s3_root)
    assert {item.path.partition("/")[0] for item in list_objects(store, "")} <= {prefix}


def test_a_relative_address_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    og = new_graph("here/graph")
    assert og.uri == str(tmp_path / "here/graph")
    monkeypatch.chdir(tmp_path / "elsewhere")
    append_pair(og, ["a"])
    og.branch_create("review")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    again = Omnigraph.open("../here/graph")
    assert ids(again, again.snapshot("review")) == ["a"]


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}", "file://localhost{}/", "FILE://{}"])
def test_one_graph_by_all_its_addresses(tmp_path: Path, form: str) -> None:
    path = tmp_path / "g"
    new_graph(form.format(path))
    assert Omnigraph.open(str(path)).uri == str(path)
    assert Omnigraph.open(form.format(path)).uri == str(path)


def test_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    og = new_graph(str(tmp_path / "link" / "g"))
    append_pair(og, ["a"])
    again = Omnigraph.open(str(tmp_path / "real" / "g"))
    assert ids(again, again.snapshot()) == ["a"]


def test_opening_nothing_makes_nothing(tmp_path: Path) -> None:
    for address in (tmp_path / "a/b", tmp_path):
        with pytest.raises(GraphNotFound, match=str(address)):
            Omnigraph.open(str(address))
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_schema_makes_no_directory(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="node"):
        Omnigraph.init(str(tmp_path / "g"), "node")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["", "s3://", "http://host/g", "gs://b/g", "a\nb", "a\0b"])
def test_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.chdir(tmp_path)
    for attempt in (lambda: new_graph(address), lambda: Omnigraph.open(address)):
        with pytest.raises(ConfigError):
            attempt()
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_graph_should_be(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for address in (file, file / "graph"):
        with pytest.raises(StorageError, match=str(file)):
            new_graph(str(address))
    with pytest.raises((StorageError, GraphNotFound), match=str(file)):
        Omnigraph.open(str(file))
    assert file.read_text() == "mine"
