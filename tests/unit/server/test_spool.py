"""The spool: private, whole files, and claims that end with their holder."""

from __future__ import annotations

import errno
import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import ConfigError, StorageError
from omnigraph_core.server.spool import (
    KEPT_SECONDS,
    Claim,
    Spool,
    digest_of,
    keep,
    spool_failed,
    try_read,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_the_directory_is_private(tmp_path: Path) -> None:
    area = Spool(tmp_path / "spool").area("jobs", "x")
    assert area.is_dir()
    assert (tmp_path / "spool").stat().st_mode & 0o077 == 0


def test_a_directory_others_may_write_to_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "open"
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write"):
        Spool(root).area("jobs")


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "spool").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="others may write"):
        Spool(tmp_path / "spool").area("jobs")


def test_a_directory_that_cannot_be_made_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("OMNIGRAPH_SERVER_SPOOL", str(tmp_path / "file" / "spool"))
    with pytest.raises(ConfigError, match="cannot make the spool") as refused:
        Spool.from_settings()
    assert "OMNIGRAPH_SERVER_SPOOL" in (refused.value.hint or "")


def test_documents_are_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert try_read(path) is None
    keep(path, {"n": 1})
    keep(path, {"n": 2})
    assert try_read(path) == {"n": 2}
    assert list(tmp_path.iterdir()) == [path]


def test_a_claim_is_held_by_one(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    first = Claim.try_take(path)
    assert first is not None
    assert Claim.try_take(path) is None
    first.release()
    second = Claim.try_take(path)
    assert second is not None
    second.release()


def test_only_what_is_old_and_unclaimed_is_swept(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    area = spool.area("keys", "x")
    then = time.time() - KEPT_SECONDS - 60
    for name in ("old.json", "old.lock", "held.lock"):
        (area / name).touch()
        os.utime(area / name, (then, then))
    (area / "new.json").touch()
    claim = Claim.try_take(area / "held.lock")
    assert claim is not None
    spool.sweep()
    claim.release()
    assert sorted(path.name for path in area.iterdir()) == ["held.lock", "new.json"]


def test_files_of_others_and_a_spool_that_is_gone_are_no_trouble(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.area("keys")
    (tmp_path / "spool" / "stray").touch()
    spool.sweep()
    assert (tmp_path / "spool" / "stray").exists()
    shutil.rmtree(tmp_path / "spool")
    again = Spool(tmp_path / "spool")
    again.sweep()
    assert spool.area("jobs", "x").is_dir()
    assert (tmp_path / "spool").stat().st_mode & 0o077 == 0


def test_a_claim_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="spool directory"):
        Claim.try_take(tmp_path / "gone" / "a.lock")


def test_the_directory_of_a_request_goes(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool").directory() as directory:
        (directory / "a").mkdir()
        (directory / "a" / "b").touch()
    assert not directory.exists()


def test_uploads_that_were_left_behind_are_swept(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    then = time.time() - KEPT_SECONDS - 60
    left = spool.area("uploads", "left")
    (left / ".lock").touch()
    (left / "data").touch()
    with spool.directory() as used:
        (used / "data").touch()
        for path in (left, used):
            os.utime(path, (then, then))
        spool.sweep()
        assert not left.exists()
        assert (used / "data").exists()


def test_digests_tell_parts_apart() -> None:
    assert digest_of("a", "b") != digest_of("ab")
    assert digest_of("a", "b") == digest_of("a", "b")


def test_a_full_disk_is_named() -> None:
    assert "is full" in spool_failed(OSError(errno.ENOSPC, "no space")).message
    assert "denied" in spool_failed(OSError(errno.EACCES, "denied")).message
