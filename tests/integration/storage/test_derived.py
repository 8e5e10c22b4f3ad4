"""Files of derived arrays: what was saved is loaded, and whatever is odd is nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from omnigraph_core.constants import Constant
from omnigraph_core.settings import AWS_SECRET_ACCESS_KEY, CACHE_DIR, DERIVED_FILES, XDG_CACHE_HOME
from omnigraph_core.storage import array_file, local_copies
from omnigraph_core.storage.derived import DerivedFiles, list_derived, read_pins
from omnigraph_core.storage.objects import delete_all, list_objects
from omnigraph_core.storage.session import open_store
from tests.support.processes import say, spawn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.storage.array_file import DerivedArrays
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store

KIND = "links"
KEY = "edges_fits.5f1b"
PATH = f"_derived/{KIND}/{KEY}.arrays"

ARRAYS: Mapping[str, np.ndarray] = {
    "numbers": np.arange(-3, 70, dtype=np.int32),
    "none": np.empty(0, np.int64),
    "weights": np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4),
    "flags": np.array([True, False, True]),
    "every other": np.arange(20, dtype=np.uint16)[::2],
}
ABOUT = {"format": 1, "counts": [1, 2], "nested": {"deletion": None}}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = open_store(str(tmp_path / "graph"))
    made.create_root()
    return made


@pytest.fixture
def files(store: Store) -> DerivedFiles:
    return DerivedFiles(store)


@pytest.fixture
def path(store: Store) -> Path:
    return Path(store.root.text, PATH)


@pytest.fixture
def remote(s3_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store on S3, with an empty directory for copies."""
    monkeypatch.setenv(CACHE_DIR.name, str(tmp_path / "copies"))
    return open_store(s3_root)


def copies(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "copies").rglob("*.arrays"))


def check(found: DerivedArrays | None) -> DerivedArrays:
    """All arrays are there as they were saved, and cannot be written to."""
    assert found is not None
    assert list(found.arrays) == list(ARRAYS)
    for name, saved in ARRAYS.items():
        array = found.arrays[name]
        assert (array.dtype, array.shape) == (saved.dtype, saved.shape)
        assert array.tolist() == saved.tolist()
        if len(saved):
            assert not array.flags.writeable
            assert array.ctypes.data % 64 == 0
    assert {name: found.about[name] for name in ABOUT} == ABOUT
    assert found.nbytes > sum(array.nbytes for array in ARRAYS.values())
    return found


def test_what_was_saved_is_loaded(files: DerivedFiles, path: Path) -> None:
    assert files.load(KIND, KEY) is None
    assert files.about(KIND, KEY) is None
    files.save(KIND, KEY, ARRAYS, ABOUT)
    assert check(files.load(KIND, KEY)).nbytes == path.stat().st_size
    assert files.about(KIND, KEY) == ABOUT
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_a_mapped_file_outlives_its_replacement(files: DerivedFiles, path: Path) -> None:
    files.save(KIND, KEY, ARRAYS, ABOUT)
    before = files.load(KIND, KEY)
    files.save(KIND, KEY, {"numbers": np.zeros(3)}, {})
    check(before)
    path.unlink()
    check(before)


def test_keys_are_listed_by_prefix_newest_first(files: DerivedFiles, path: Path) -> None:
    assert files.list(KIND, "") == ()
    for number, key in enumerate(("edges_fits.2", "edges_fits.1", "edges_fits2.1")):
        files.save(KIND, key, ARRAYS, ABOUT)
        os.utime(path.with_name(f"{key}.arrays"), (number, number))
    files.save("words", "edges_fits.9", ARRAYS, ABOUT)
    path.with_name("edges_fits.3.arrays.tmp-01").touch()
    path.with_name("edges_fits.note").touch()
    assert files.list(KIND, "edges_fits.") == ("edges_fits.1", "edges_fits.2")
    assert files.list(KIND, "") == ("edges_fits2.1", "edges_fits.1", "edges_fits.2")
    assert files.list("nothing", "") == ()


def test_any_damage_is_noticed(files: DerivedFiles, path: Path) -> None:
    files.save(KIND, KEY, ARRAYS, ABOUT)
    content = path.read_bytes()
    missed = []
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        if (found := files.load(KIND, KEY)) is not None:
            check(found)  # a byte between two arrays
            missed.append(position)
    assert min(missed) > array_file.PREFIX.size + 100, "nothing of the header"
    assert len(missed) < 64 * (len(ARRAYS) + 1), "only what fills the gaps"


def test_a_part_of_a_file_is_none(files: DerivedFiles, path: Path) -> None:
    files.save(KIND, KEY, ARRAYS, ABOUT)
    content = path.read_bytes()
    for length in (*range(0, len(content), 97), len(content) - 1):
        path.write_bytes(content[:length])
        assert files.load(KIND, KEY) is None
    path.write_bytes(content + b"\0")
    assert files.load(KIND, KEY) is None
    assert files.about(KIND, KEY) == ABOUT, "its header is whole"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"OGARRAYS",
        b"PK\x03\x04 something else altogether, long enough to have a header in it",
        b"OGARRAYS" + b"\xff" * 200,
    ],
)
def test_foreign_files_are_none(files: DerivedFiles, path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert files.load(KIND, KEY) is None
    assert files.about(KIND, KEY) is None
    files.save(KIND, KEY, ARRAYS, ABOUT)
    check(files.load(KIND, KEY))


HEADERS = [
    b"{}",
    b"[]",
    b"not json",
    b"[" * 100_000,
    b'{"arrays":[["a","<i4",[1000000],0,0]],"about":{}}',
    b'{"arrays":[["a","<i4",[-1],0,0]],"about":{}}',
    b'{"arrays":[["a","<i4",[1],-64,0]],"about":{}}',
    b'{"arrays":[["a","<i4",[1],4,0]],"about":{}}',
    b'{"arrays":[["a","|O",[1],0,0]],"about":{}}',
    b'{"arrays":[["a","what",[1],0,0]],"about":{}}',
    b'{"arrays":[["a","<i4",[1]]],"about":{}}',
    b'{"arrays":[],"about":3}',
]


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header[:40].decode())
def test_headers_that_lie_are_none(files: DerivedFiles, path: Path, header: bytes) -> None:
    """Even one whose digest is right."""
    total = array_file._aligned(array_file.PREFIX.size + len(header)) + 64
    digest = array_file._digest(header, total)
    prefix = array_file.PREFIX.pack(b"OGARRAYS", array_file.FORMAT, len(header), total, digest)
    path.parent.mkdir(parents=True)
    path.write_bytes((prefix + header).ljust(total, b"\0"))
    assert files.load(KIND, KEY) is None


def test_a_directory_in_the_place_of_a_file_is_none(files: DerivedFiles, path: Path) -> None:
    path.mkdir(parents=True)
    assert files.load(KIND, KEY) is None
    files.save(KIND, KEY, ARRAYS, ABOUT)
    assert files.load(KIND, KEY) is None
    assert [item.name for item in path.parent.iterdir()] == [path.name], "nothing half-written"


def test_what_cannot_be_written_is_done_without(store: Store, files: DerivedFiles) -> None:
    taken = Path(store.root.text, "_derived")
    taken.write_text("a file where the directory should be")
    files.save(KIND, KEY, ARRAYS, ABOUT)
    assert files.load(KIND, KEY) is None
    assert files.list(KIND, "") == ()
    taken.unlink()
    shutil.rmtree(store.root.text)
    files.save(KIND, KEY, ARRAYS, ABOUT)
    assert not Path(store.root.text).exists(), "a graph that was removed does not come back"


def test_the_setting_turns_files_off(
    files: DerivedFiles, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.save(KIND, KEY, ARRAYS, ABOUT)
    monkeypatch.setenv(DERIVED_FILES.name, "false")
    assert files.load(KIND, KEY) is None
    assert files.about(KIND, KEY) is None
    assert files.list(KIND, "") == ()
    path.unlink()
    files.save(KIND, KEY, ARRAYS, ABOUT)
    assert not path.exists()


def test_pins_tell_what_a_file_was_made_from(stocked: Table) -> None:
    files = DerivedFiles(stocked.store)
    files.save(KIND, KEY, ARRAYS, ABOUT, [stocked])
    files.save(KIND, "other", ARRAYS, ABOUT)
    check(files.load(KIND, KEY))
    pins = {file.path: read_pins(stocked.store, file) for file in list_derived(stocked.store)}
    assert pins == {
        PATH: frozenset({(stocked.location, stocked.physical_version)}),
        f"_derived/{KIND}/other.arrays": None,
    }


def save_often(root: str, times: int) -> None:
    files = DerivedFiles(open_store(root))
    say("ready")
    for _ in range(times):
        files.save(KIND, KEY, ARRAYS, ABOUT)
        check(files.load(KIND, KEY))


def test_processes_may_save_at_once(files: DerivedFiles, store: Store, path: Path) -> None:
    target = f"{save_often.__module__}:{save_often.__name__}"
    with spawn(target, store.root.text, 12) as one, spawn(target, store.root.text, 12) as other:
        for worker in (one, other):
            assert worker.next_line() == "ready"
        for worker in (one, other):
            worker.wait().check()
    check(files.load(KIND, KEY))
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_on_s3_a_file_is_fetched_once(remote: Store, tmp_path: Path) -> None:
    files = DerivedFiles(remote)
    assert files.load(KIND, KEY) is None
    assert files.about(KIND, KEY) is None
    files.save(KIND, KEY, ARRAYS, ABOUT)
    assert [item.path for item in list_objects(remote, "")] == [PATH]
    assert files.about(KIND, KEY) == ABOUT
    assert files.list(KIND, "edges_fits.") == (KEY,)
    shutil.rmtree(tmp_path / "copies")
    check(DerivedFiles(remote).load(KIND, KEY))
    assert len(copies(tmp_path)) == 1
    delete_all(remote, [PATH])
    check(DerivedFiles(remote).load(KIND, KEY))
    shutil.rmtree(tmp_path / "copies")
    assert files.load(KIND, KEY) is None


def test_on_s3_a_file_may_be_large(remote: Store, tmp_path: Path) -> None:
    """Larger than one part of an upload."""
    numbers = np.arange(3_000_000, dtype=np.int32)
    DerivedFiles(remote).save(KIND, KEY, {"numbers": numbers}, ABOUT)
    shutil.rmtree(tmp_path / "copies")
    found = DerivedFiles(remote).load(KIND, KEY)
    assert found is not None
    assert np.array_equal(found.arrays["numbers"], numbers)


def test_on_s3_the_writer_has_its_copy(remote: Store, tmp_path: Path) -> None:
    files = DerivedFiles(remote)
    files.save(KIND, KEY, ARRAYS, ABOUT)
    assert len(copies(tmp_path)) == 1
    delete_all(remote, [PATH])
    check(files.load(KIND, KEY))


def test_a_damaged_copy_is_fetched_again(remote: Store, tmp_path: Path) -> None:
    files = DerivedFiles(remote)
    files.save(KIND, KEY, ARRAYS, ABOUT)
    (copy,) = copies(tmp_path)
    copy.write_bytes(copy.read_bytes()[:-100])
    check(files.load(KIND, KEY))
    check(array_file.map_arrays(copy))


def test_on_s3_nothing_is_needed_of_this_machine(
    remote: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a directory for copies files are held in memory."""
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setenv(CACHE_DIR.name, str(tmp_path / "taken" / "copies"))
    files = DerivedFiles(remote)
    files.save(KIND, KEY, ARRAYS, ABOUT)
    found = files.load(KIND, KEY)
    assert found is not None
    assert found.arrays["numbers"].tolist() == ARRAYS["numbers"].tolist()
    monkeypatch.delenv(CACHE_DIR.name)
    monkeypatch.setenv(XDG_CACHE_HOME.name, str(tmp_path / "user"))
    check(files.load(KIND, KEY))
    assert list((tmp_path / "user" / "omnigraph" / "derived").rglob("*.arrays"))


def test_copies_not_used_longest_go_first(
    remote: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = DerivedFiles(remote)
    files.save(KIND, "a", ARRAYS, ABOUT)
    (first,) = copies(tmp_path)
    size = first.stat().st_size
    limit = Constant("derived_copy_bytes", 2 * size, "two copies")
    monkeypatch.setattr(local_copies, "DERIVED_COPY_BYTES", limit)
    abandoned = first.with_name("z.arrays.tmp-01")
    abandoned.touch()
    os.utime(abandoned, (1, 1))
    files.save(KIND, "b", ARRAYS, ABOUT)
    for age, key in enumerate(("b", "a")):
        os.utime(first.with_name(f"{key}.arrays"), (age + 1, age + 1))
    check(files.load(KIND, "b"))  # now `a` was not used longest
    files.save(KIND, "c", ARRAYS, ABOUT)
    assert [copy.name for copy in copies(tmp_path)] == ["b.arrays", "c.arrays"]
    assert not abandoned.exists()
    check(files.load(KIND, "a"))


def test_a_store_that_refuses_is_done_without(
    remote: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DerivedFiles(remote).save(KIND, KEY, ARRAYS, ABOUT)
    shutil.rmtree(tmp_path / "copies")
    monkeypatch.setenv(AWS_SECRET_ACCESS_KEY.name, "another")
    files = DerivedFiles(open_store(remote.root.text))
    files.save(KIND, "other", ARRAYS, ABOUT)
    assert files.load(KIND, KEY) is None
    assert files.about(KIND, KEY) is None
    assert files.list(KIND, "") == ()
    assert copies(tmp_path) == []
