"""Branches, tags, leases and cleanup intents as objects of a real store, local and S3."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import (
    BranchNotFound,
    InvariantBroken,
    PreconditionFailed,
    StorageError,
    TagNotFound,
)
from omnigraph_core.history import refs
from omnigraph_core.history.refs import (
    MAIN_REF,
    BranchRef,
    CleanupIntent,
    DeletedBranch,
    ForkPoint,
    Tag,
)
from omnigraph_core.storage import objects
from omnigraph_core.storage.session import Store, open_store
from tests.support.processes import hear, say, spawn

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = ("review", "review/parts", "größe", "team a", "..", "%2E", "a.json", "-", "é" * 40)


def branch(name: str, incarnation: str = "01J0", created_at: int = 5) -> BranchRef:
    fork = ForkPoint("main", "main", 3, "01HZ")
    manifest = f"_refs/manifests/{incarnation}"
    return BranchRef(name, incarnation, manifest, fork, created_at, "dana")


def tag(name: str, commit_id: str = "01HZ") -> Tag:
    return Tag(name, commit_id, "main", "main", 3, 5, None)


def test_a_graph_without_objects(store: Store) -> None:
    assert refs.list_branch_names(store, has_internal=True) == ("main",)
    assert refs.list_branch_refs(store) == ()
    assert refs.list_tag_names(store) == ()
    assert refs.list_tags(store) == ()
    assert refs.list_deleted(store) == ()
    assert refs.list_leases(store) == ()
    assert refs.list_cleanups(store) == ()
    assert refs.try_read_branch(store, "main") == MAIN_REF
    assert refs.try_read_branch(store, "review") is None
    assert refs.try_read_tag(store, "v1") is None


def test_branches_of_any_name(store: Store) -> None:
    made = [branch(name, f"01J{at}") for at, name in enumerate(NAMES)]
    assert all(refs.put_branch(store, ref) for ref in made)
    assert [refs.read_branch(store, name) for name in NAMES] == made
    assert refs.list_branch_names(store) == ("main", *sorted(NAMES))
    assert refs.list_branch_refs(store) == tuple(sorted(made, key=lambda ref: ref.branch))
    refs.delete_branch_ref(store, "review")
    refs.delete_branch_ref(store, "review")
    assert refs.try_read_branch(store, "review") is None
    assert refs.read_branch(store, "review/parts") == made[1]


def test_a_taken_name_stays_with_its_branch(store: Store) -> None:
    first, second = branch("review", "01J0"), branch("review", "01J1")
    assert refs.put_branch(store, first)
    assert not refs.put_branch(store, second)
    assert refs.read_branch(store, "review") == first
    assert refs.put_branch(store, first), "an answer that was lost: the branch is ours"


def test_main_is_always_taken_and_never_deleted(store: Store) -> None:
    assert not refs.put_branch(store, MAIN_REF)
    with pytest.raises(InvariantBroken):
        refs.delete_branch_ref(store, "main")


def test_internal_branches_are_listed_on_request(store: Store) -> None:
    for name in ("__run__01R", "__schema_apply_lock__", "zeta"):
        refs.put_branch(store, branch(name))
    assert refs.list_branch_names(store) == ("main", "zeta")
    everything = ("main", "__run__01R", "__schema_apply_lock__", "zeta")
    assert refs.list_branch_names(store, has_internal=True) == everything
    assert [ref.branch for ref in refs.list_branch_refs(store)] == list(everything[1:])


def test_an_unknown_branch_names_a_close_one(local: Store) -> None:
    refs.put_branch(local, branch("name"))
    refs.put_branch(local, branch("__run__nmae"))
    with pytest.raises(BranchNotFound, match="no branch `nmae`") as caught:
        refs.read_branch(local, "nmae")
    assert caught.value.hint == "did you mean `name`?"
    with pytest.raises(BranchNotFound) as caught:
        refs.read_branch(local, "unlike anything")
    assert caught.value.hint is None


def test_many_branches_are_read(store: Store) -> None:
    made = [branch(f"b{at:03}", f"01J{at}") for at in range(60)]
    for ref in made:
        refs.put_branch(store, ref)
    assert refs.list_branch_refs(store) == tuple(made)


def test_since_reads_only_newer_branches(store: Store) -> None:
    refs.put_branch(store, branch("review"))
    written = objects.list_objects(store, "_refs/branches")[0].last_modified
    assert refs.list_branch_refs(store, since=written) == (branch("review"),)
    later = datetime.now(UTC) + timedelta(hours=1)
    assert refs.list_branch_refs(store, since=later) == ()


def test_since_does_not_read_what_is_older(local: Store) -> None:
    objects.put(local, "_refs/branches/damaged.json", b"{")
    later = datetime.now(UTC) + timedelta(hours=1)
    assert refs.list_branch_refs(local, since=later) == ()


def test_names_are_listed_without_reading(local: Store) -> None:
    objects.put(local, "_refs/branches/damaged.json", b"{")
    objects.put(local, "_refs/tags/damaged.json", b"{")
    assert refs.list_branch_names(local) == ("main", "damaged")
    assert refs.list_tag_names(local) == ("damaged",)


def test_a_branch_that_vanishes_between_listing_and_reading(
    local: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    refs.put_branch(local, branch("kept", "01J0"))
    refs.put_branch(local, branch("gone", "01J1"))
    listed = objects.list_objects(local, "_refs/branches")
    refs.delete_branch_ref(local, "gone")
    monkeypatch.setattr(objects, "list_objects", lambda *_: listed)
    assert refs.list_branch_refs(local) == (branch("kept", "01J0"),)


@pytest.mark.parametrize("directory", ["branches", "deleted", "tags", "leases", "cleanups"])
def test_a_damaged_object_is_told_with_its_path(local: Store, directory: str) -> None:
    readers = {
        "branches": refs.list_branch_refs,
        "deleted": refs.list_deleted,
        "tags": refs.list_tags,
        "leases": refs.list_leases,
        "cleanups": refs.list_cleanups,
    }
    objects.put(local, f"_refs/{directory}/odd.json", b'{"branch": 1}')
    with pytest.raises(StorageError, match=f"_refs/{directory}/odd.json is damaged") as caught:
        readers[directory](local)
    assert caught.value.hint is not None


def test_an_object_under_the_name_of_another(local: Store) -> None:
    refs.put_branch(local, branch("review"))
    refs.put_tag(local, tag("v1"))
    for kind, name in (("branches", "review"), ("tags", "v1")):
        content = objects.try_get(local, f"_refs/{kind}/{name}.json")
        assert content is not None
        objects.put(local, f"_refs/{kind}/copy.json", content)
    with pytest.raises(StorageError, match="it names the branch `review`"):
        refs.read_branch(local, "copy")
    with pytest.raises(StorageError, match="it names the tag `v1`"):
        refs.read_tag(local, "copy")


def test_deleted_branches(store: Store) -> None:
    gone = DeletedBranch(branch("review"), 9)
    refs.put_deleted(store, gone)
    refs.put_deleted(store, DeletedBranch(branch("review", "01J1"), 11))
    assert set(refs.list_deleted(store)) == {gone, DeletedBranch(branch("review", "01J1"), 11)}
    again = replace(gone, deleted_at=12)
    refs.put_deleted(store, again)
    assert again in refs.list_deleted(store)
    refs.remove_deleted(store, "01J1")
    refs.remove_deleted(store, "01J1")
    assert refs.list_deleted(store) == (again,)


def test_tags(store: Store) -> None:
    assert refs.put_tag(store, tag("v2"))
    assert refs.put_tag(store, tag("v1/rc"))
    assert not refs.put_tag(store, tag("v2", "01ZZ"))
    assert refs.read_tag(store, "v2") == tag("v2")
    assert refs.list_tag_names(store) == ("v1/rc", "v2")
    assert refs.list_tags(store) == (tag("v1/rc"), tag("v2"))
    refs.delete_tag(store, "v1/rc")
    refs.delete_tag(store, "v1/rc")
    with pytest.raises(TagNotFound, match="no tag `v1/rc`"):
        refs.read_tag(store, "v1/rc")
    with pytest.raises(TagNotFound) as caught:
        refs.read_tag(store, "V2")
    assert caught.value.hint == "did you mean `v2`?"


def test_leases(store: Store) -> None:
    lease = refs.create_lease(
        store, incarnation="main", manifest_version=3, purpose="export", expires_at=100
    )
    other = refs.create_lease(
        store, incarnation="01J0", manifest_version=1, purpose="diff", expires_at=50
    )
    assert set(refs.list_leases(store)) == {lease, other}
    assert refs.list_live_leases(store, now=50) == (lease,)
    renewed = refs.renew_lease(store, lease, now=99, expires_at=200)
    assert renewed == replace(lease, expires_at=200)
    assert refs.list_live_leases(store, now=150) == (renewed,)
    with pytest.raises(PreconditionFailed, match="expired"):
        refs.renew_lease(store, other, now=50, expires_at=200)
    refs.release_lease(store, lease.id)
    refs.release_lease(store, lease.id)
    assert refs.list_leases(store) == (other,)


def test_cleanup_intents(store: Store) -> None:
    intent = CleanupIntent("01C0", 1, 2, {"main": (1, 2, 3)})
    refs.put_cleanup(store, intent)
    further = replace(intent, doomed={"main": (1, 2, 3), "01J0": (1,)})
    refs.put_cleanup(store, further)
    assert refs.list_cleanups(store) == (further,)
    refs.delete_cleanup(store, "01C0")
    assert refs.list_cleanups(store) == ()


def create_branches(root: str, incarnation: str, names: list[str]) -> list[str]:
    """In a worker: try to create every branch; the names this worker won."""
    store = open_store(root)
    say("ready")
    hear()
    return [name for name in names if refs.put_branch(store, branch(name, incarnation))]


def test_of_several_processes_one_creates_a_branch(local: Store) -> None:
    names = [f"b{at}" for at in range(40)]
    target = f"{__name__}:create_branches"
    workers = [spawn(target, local.root.text, f"01J{at}", names) for at in range(3)]
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")
    won = {f"01J{at}": worker.wait().result() for at, worker in enumerate(workers)}
    assert sorted(name for mine in won.values() for name in mine) == sorted(names)
    for ref in refs.list_branch_refs(local):
        assert ref.branch in won[ref.incarnation]


def test_reading_while_branches_come_and_go(local: Store) -> None:
    stop = threading.Event()

    def come_and_go(names: Iterable[str]) -> None:
        while not stop.is_set():
            for name in names:
                refs.put_branch(local, branch(name))
                refs.delete_branch_ref(local, name)

    refs.put_branch(local, branch("kept"))
    writer = threading.Thread(target=come_and_go, args=(("x", "y", "z"),))
    writer.start()
    try:
        for _ in range(100):
            listed = refs.list_branch_refs(local)
            assert branch("kept") in listed
            assert {ref.branch for ref in listed} <= {"kept", "x", "y", "z"}
    finally:
        stop.set()
        writer.join()
