"""Which files a path, a directory or a pattern stands for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.violations import MAX_LISTED
from omnigraph_core.write.input_files import local_files
from omnigraph_core.write.sources import Format, open_sources
from tests.support.cases import each

TREE = (
    "b.jsonl",
    "a.jsonl",
    "sub/c.jsonl.gz",
    "sub/deep/d.jsonl",
    "sub-1/e.jsonl",
    "_SUCCESS",
    ".a.jsonl.crc",
    "_temporary/f.jsonl",
    ".git/g.jsonl",
    "sub/_h.jsonl",
    "nodes/Part.csv",
    "x[1].jsonl",
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("tree")
    for name in TREE:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()
    return top


def fail(problem: ConfigError) -> None:
    raise problem


def found(given: Path) -> list[str]:
    return [str(path) for path in local_files(given, fail)]


@each(
    ("given", "names"),
    [
        (
            ".",
            "a.jsonl b.jsonl nodes/Part.csv sub-1/e.jsonl sub/c.jsonl.gz sub/deep/d.jsonl "
            "x[1].jsonl",
        ),
        ("sub", "sub/c.jsonl.gz sub/deep/d.jsonl"),
        ("_temporary", "_temporary/f.jsonl"),
        ("*.jsonl", "a.jsonl b.jsonl x[1].jsonl"),
        ("?.jsonl", "a.jsonl b.jsonl"),
        ("[!a].jsonl", "b.jsonl"),
        ("sub*", "sub-1/e.jsonl sub/c.jsonl.gz sub/deep/d.jsonl"),
        ("sub/*/*.jsonl", "sub/deep/d.jsonl"),
        ("**/*.jsonl", "a.jsonl b.jsonl sub-1/e.jsonl sub/deep/d.jsonl x[1].jsonl"),
        ("sub/**", "sub/c.jsonl.gz sub/deep/d.jsonl"),
        ("s*/**/d*", "sub/deep/d.jsonl"),
        ("_t*/*.jsonl", "_temporary/f.jsonl"),
        ("*/_h.jsonl", "sub/_h.jsonl"),
        ("x[1].jsonl", "x[1].jsonl"),
    ],
)
def test_files_of(tree: Path, monkeypatch: pytest.MonkeyPatch, given: str, names: str) -> None:
    monkeypatch.chdir(tree)
    assert found(Path(given)) == names.split()
    assert found(tree / given) == [str(tree / name) for name in names.split()]


def test_a_directory_is_as_good_as_its_files(tree: Path) -> None:
    sources = open_sources(str(tree))
    assert sources == open_sources(found(tree))
    kinds = {Path(source.name or "").name: (source.format, source.type_name) for source in sources}
    assert kinds["Part.csv"] == (Format.CSV, "node:Part")
    assert kinds["c.jsonl.gz"] == (Format.JSONL, None)


def test_several_inputs_keep_their_order(tree: Path) -> None:
    sources = open_sources([tree / "sub", b"{}", str(tree / "[ba].jsonl")])
    names = [None if source.name is None else Path(source.name).name for source in sources]
    assert names == ["c.jsonl.gz", "d.jsonl", None, "a.jsonl", "b.jsonl"]


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "real").mkdir(parents=True)
    (data / "real" / "a.jsonl").touch()
    (data / "linked").symlink_to(data / "real")
    (data / "b.jsonl").symlink_to(data / "real" / "a.jsonl")
    assert [path.relative_to(data).as_posix() for path in local_files(data, fail)] == [
        "b.jsonl",
        "linked/a.jsonl",
        "real/a.jsonl",
    ]
    (data / "real" / "up").symlink_to(data)
    with pytest.raises(ConfigError, match="links to a directory that it is in"):
        local_files(data, fail)


def test_nothing_to_load(tmp_path: Path) -> None:
    (tmp_path / "_hidden.jsonl").touch()
    with pytest.raises(ConfigError) as caught:
        open_sources(tmp_path)
    assert caught.value.message == f"no files to load in the directory {tmp_path}"
    assert caught.value.hint == "names that begin with `_` or `.` are left out"
    for pattern in ("*.jsonl", "none/*.jsonl", "_hidden.jsonl/*"):
        with pytest.raises(ConfigError, match="no file matches"):
            open_sources(tmp_path / pattern)


def test_one_error_names_every_problem(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in ("a.jsonl", "README.md", "Part.xml"):
        (data / name).touch()
    os.mkfifo(data / "pipe.jsonl")
    (data / "gone.jsonl").symlink_to("nowhere")
    (tmp_path / "empty").mkdir()
    given = [data, tmp_path / "empty", f"{tmp_path}/*.csv", tmp_path / "none.jsonl"]
    with pytest.raises(ConfigError) as caught:
        open_sources(given)
    first, *lines = caught.value.message.splitlines()
    assert first == "7 inputs cannot be loaded:"
    assert sorted(lines) == sorted(
        [
            f"  {data}/gone.jsonl is not a regular file",
            f"  {data}/pipe.jsonl is not a regular file",
            f"  {data}/Part.xml: cannot tell the format from the name",
            f"  {data}/README.md: cannot tell the format from the name",
            f"  no files to load in the directory {tmp_path}/empty",
            f"  no file matches {tmp_path}/*.csv",
            f"  no such file: {tmp_path}/none.jsonl",
        ]
    )
    for advice in ("name the format", "are left out", "leave files out with a pattern"):
        assert advice in (caught.value.hint or "")


def test_a_type_for_a_directory_with_records(tmp_path: Path) -> None:
    for name in ("a.jsonl", "Part.csv", "b.jsonl"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError) as caught:
        open_sources(tmp_path, type_name="Part")
    assert caught.value.message.count("the records name their own") == 2
    assert [source.type_name for source in open_sources(tmp_path, format="csv", type_name="Part")]


def test_so_many_problems_are_listed(tmp_path: Path) -> None:
    for number in range(MAX_LISTED + 7):
        (tmp_path / f"{number:03}.txt").touch()
    with pytest.raises(ConfigError) as caught:
        open_sources(tmp_path)
    lines = caught.value.message.splitlines()
    assert lines[0] == f"{MAX_LISTED + 7} inputs cannot be loaded:"
    assert lines[1] == f"  {tmp_path}/000.txt: cannot tell the format from the name"
    assert len(lines) == MAX_LISTED + 2
    assert lines[-1] == "  and 7 more"


def test_a_directory_that_may_not_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "closed").mkdir()
    scan = os.scandir

    def scandir(path: Path) -> object:
        if path.name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(ConfigError, match=r"cannot list .*closed: Permission denied"):
        open_sources(tmp_path)
