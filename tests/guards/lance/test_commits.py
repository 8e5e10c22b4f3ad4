"""What a commit of Lance promises, and what it does not. Each test names what rests on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import FragmentMetadata, write_fragments

from tests.guards.lance import chain
from tests.guards.lance.chain import ids_of, skus
from tests.support.cases import each
from tests.support.counting_proxy import CountingProxy
from tests.support.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.processes import Worker
    from tests.support.s3 import S3Server

ROUNDS: Final = 24
PRIMARY_KEY: Final = {"lance-schema:unenforced-primary-key": "true"}


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    uri = str(tmp_path / "catalog")
    lance.write_dataset(skus("first"), uri)
    return uri


@pytest.fixture
def proxy(
    s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CountingProxy]:
    """A proxy through which everything in the test goes."""
    with CountingProxy(s3_server.port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


def publish(base: LanceDataset, rows: pa.Table, *, retries: int = 0) -> LanceDataset:
    fragments = write_fragments(rows, base, mode="overwrite")
    overwrite = LanceOperation.Overwrite(base.lance_schema, fragments)
    return LanceDataset.commit(base, Transaction(base.version, overwrite), max_retries=retries)


def keyed(rows: pa.Table) -> pa.Table:
    key = chain.SKUS.field("id").with_metadata(PRIMARY_KEY)
    return rows.cast(chain.SKUS.set(0, key))


# --- The compare-and-swap of a catalog -----------------------------------------------------------


def test_a_race_for_a_version_has_one_winner(graph_root: str) -> None:
    """A publish is one strict overwrite: with two winners a commit would be lost."""
    uri = f"{graph_root}/catalog"
    lance.write_dataset(skus("first"), uri)
    with (
        spawn("tests.guards.lance.racers:race", uri, "one") as one,
        spawn("tests.guards.lance.racers:race", uri, "two") as two,
    ):
        for number in range(1, ROUNDS + 1):
            winner = run_round(number, {"one": one, "two": two})
            dataset = lance.dataset(uri)
            assert dataset.version == number + 1
            assert ids_of(dataset) == [f"round {number} by {winner}"]


def run_round(number: int, racers: dict[str, Worker]) -> str:
    for racer in racers.values():
        racer.send(f"round {number}")
    based = {racer.next_line() for racer in racers.values()}
    assert based == {f"based on {number}"}
    for racer in racers.values():
        racer.send("go")
    results = {name: racer.next_line() for name, racer in racers.items()}
    assert sorted(results.values()) == ["lost", "won"]
    return next(name for name, result in results.items() if result == "won")


def test_a_strict_overwrite_is_never_rebased(catalog: str) -> None:
    """The publisher re-checks its requirements after a conflict: Lance must not decide for it."""
    stale = lance.dataset(catalog)
    publish(lance.dataset(catalog), skus("second"))
    with pytest.raises(CommitConflictError, match="after 0 retries"):
        publish(stale, skus("mine"))
    assert ids_of(lance.dataset(catalog)) == ["second"]
    assert issubclass(CommitConflictError, OSError), "must be caught before OSError"


def test_an_overwrite_with_retries_drops_rows_it_never_read(catalog: str) -> None:
    """Why a publish always says `max_retries=0`: with retries an append in between is lost."""
    stale = lance.dataset(catalog)
    lance.write_dataset(skus("theirs"), catalog, mode="append")
    with pytest.raises(CommitConflictError, match="after 0 retries"):
        publish(stale, skus("mine"))
    assert publish(stale, skus("mine"), retries=20).version == 3
    assert ids_of(lance.dataset(catalog)) == ["mine"]


def test_every_version_of_a_catalog_stays_readable(catalog: str) -> None:
    """Time travel reads old versions of the catalog by their number."""
    for name in ("second", "third"):
        publish(lance.dataset(catalog), skus(name))
    found = [ids_of(lance.dataset(catalog, version=number)) for number in (1, 2, 3)]
    assert found == [["first"], ["second"], ["third"]]


def test_a_version_that_was_cleaned_up_can_be_won_again(catalog: str) -> None:
    """Why catalog versions younger than an hour are kept: a publish into the gap is lost.

    The stale publisher is told that it won version 2, while the catalog stays at version 3.
    """
    stale = lance.dataset(catalog)
    for name in ("second", "third"):
        newest = publish(lance.dataset(catalog), skus(name))
    newest.cleanup_old_versions(versions=[2])
    assert publish(stale, skus("mine")).version == 2
    assert lance.dataset(catalog).version == 3
    assert ids_of(lance.dataset(catalog)) == ["third"]


def test_creating_a_table_twice_is_refused(catalog: str) -> None:
    """Table creation is put-if-absent: two writers cannot both have made it."""
    with pytest.raises(OSError, match="Dataset already exists"):
        lance.write_dataset(skus("again"), catalog, mode="create")


# --- On an object store --------------------------------------------------------------------------


def test_a_lost_answer_to_a_publish_is_looked_up(s3_root: str, proxy: CountingProxy) -> None:
    """A publish that landed is reported as such, though the answer to its write was lost."""
    uri = f"{s3_root}/catalog"
    base = lance.write_dataset(skus("first"), uri)
    proxy.lose_next_response("PUT", "/catalog/_versions/")
    assert publish(base, skus("second")).version == 2
    assert ids_of(lance.dataset(uri)) == ["second"]
    manifests = [request for request in proxy.requests if "/_versions/" in request.path]
    assert 412 in [request.status for request in manifests], "the write was tried again"


def test_without_conditional_writes_both_publishers_win(s3_root: str, proxy: CountingProxy) -> None:
    """Why a store is probed before a graph is made on it: Lance itself notices nothing."""
    uri = f"{s3_root}/catalog"
    base, other = lance.write_dataset(skus("first"), uri), lance.dataset(uri)
    proxy.ignore_if_none_match()
    assert [publish(base, skus("a")).version, publish(other, skus("b")).version] == [2, 2]
    assert ids_of(lance.dataset(uri)) == ["b"]


def test_requests_of_a_write(s3_root: str, proxy: CountingProxy) -> None:
    """The budget of a commit is a handful of requests, whatever the history."""
    uri = f"{s3_root}/catalog"
    lance.write_dataset(skus("first"), uri)
    table = chain.create(f"{s3_root}/parts")

    def requests_since() -> dict[str, int]:
        summary = proxy.summary()
        proxy.clear()
        return summary

    requests_since()
    base = lance.dataset(uri)
    assert requests_since() == {"GET": 1, "GET list": 1}
    publish(base, skus("second"))
    assert requests_since() == {"PUT": 3}
    fragments = write_fragments(skus("a"), table, mode="append")
    assert requests_since() == {"PUT": 1}
    version = chain.commit(table, LanceOperation.Append(fragments)).version
    assert requests_since() == {"PUT": 2}
    lance.dataset(f"{s3_root}/parts", version=version)
    assert requests_since() == {"GET": 1, "HEAD": 1}


# --- Staged writes -------------------------------------------------------------------------------


def test_a_stale_append_is_rebased_even_without_retries(catalog: str) -> None:
    """Why nothing is published by a linear append: it adopts rows its writer never saw."""
    stale = lance.dataset(catalog)
    fragments = write_fragments(skus("mine"), stale, mode="append")
    lance.write_dataset(skus("theirs"), catalog, mode="append")
    append = Transaction(stale.version, LanceOperation.Append(fragments))
    landed = LanceDataset.commit(stale, append, max_retries=0)
    assert landed.version == 3
    assert ids_of(landed) == ["first", "mine", "theirs"]


def test_a_staged_upsert_forgets_its_keys(tmp_path: Path) -> None:
    """Why unique keys are ours to check: both writers of one new key win."""
    dataset = lance.write_dataset(keyed(skus("first")), str(tmp_path / "parts"))
    merges = [
        dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        for _ in range(2)
    ]
    staged = [
        merge.execute_uncommitted(keyed(skus("new", count=number)))[0]
        for number, merge in enumerate(merges)
    ]
    for transaction in staged:
        dataset = LanceDataset.commit(dataset, transaction)
    assert dataset.to_table()["id"].to_pylist() == ["first", "new", "new"]
    assert dataset.to_table()["count"].to_pylist() == [0, 0, 1]


def test_an_upsert_inserts_new_keys_as_often_as_they_come(tmp_path: Path) -> None:
    """Why a batch is searched for duplicate keys before it is staged."""
    dataset = chain.append(chain.create(tmp_path / "parts"), skus("old"))
    assert ids_of(chain.upsert(dataset, skus("new", "new"))) == ["new", "new", "old"]
    with pytest.raises(OSError, match="Ambiguous merge inserts"):
        chain.upsert(dataset, skus("old", "old"))


def test_a_commit_does_not_look_for_its_data(tmp_path: Path) -> None:
    """Why cleanup keeps young files whoever owns them: a commit would name missing ones."""
    dataset = chain.create(tmp_path / "parts")
    fragments = write_fragments(skus("a"), dataset, mode="append")
    for file in fragments[0].files:
        (tmp_path / "parts" / "data" / file.path).unlink()
    broken = chain.commit(dataset, LanceOperation.Append(fragments))
    assert broken.count_rows() == 1
    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        broken.to_table()


def test_fragments_travel_as_json(tmp_path: Path) -> None:
    """Executors write files and return text; the driver alone commits."""
    dataset = chain.create(tmp_path / "parts")
    texts = [
        json.dumps(fragment.to_json())
        for name in ("a", "b")
        for fragment in write_fragments(skus(name), dataset, mode="append")
    ]
    fragments = [FragmentMetadata.from_json(text) for text in texts]
    assert ids_of(chain.commit(dataset, LanceOperation.Append(fragments))) == ["a", "b"]


@each(
    ("rows", "message"),
    [
        (pa.table({"id": pa.array([None], pa.string())}), "`id` contained null values"),
        (pa.table({"id": [1], "count": [1]}), "`id` should have type string but type was int64"),
        (pa.table({"id": ["a"], "more": [1]}), r"unexpected=\[more\]"),
        (pa.table({"count": [1]}), r"missing=\[id\]"),
    ],
    ids=["null in a required column", "another type", "a column too many", "one too few"],
)
def test_rows_that_do_not_fit_are_refused_when_staged(
    rows: pa.Table, message: str, tmp_path: Path
) -> None:
    """The last line of defence: what the checks before it let through is not written."""
    dataset = chain.create(tmp_path / "parts")
    with pytest.raises(OSError, match=message):
        write_fragments(rows, dataset, mode="append")
