"""Writes under an idempotency key are done once, and their answer can be asked for again."""

from __future__ import annotations

import os
import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.server.spool import KEPT_SECONDS
from tests.support.served import document, ended, lines, new_stock, part, stock_server
from tests.support.server import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.server import Client


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def client(root: Path, stock: Omnigraph) -> Iterator[Client]:
    env = tokens(ada="a-1", ben="b-1")
    with stock_server(root, token="a-1", env=env) as client:
        yield client


def under(key: str, **more: str) -> dict[str, Any]:
    return {"headers": {"Idempotency-Key": key, **more}}


def test_a_repeat_gets_the_first_answer(client: Client, stock: Omnigraph) -> None:
    body = {"name": "once", "target": "main"}
    first = client.post("/tags", body, **under("tag-1"))
    again = client.post("/tags", body, **under("tag-1"))
    assert document(first) == document(again)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["content-type"] == first.headers["content-type"]
    assert document(client.post("/tags", body), 409)["reason"] == "conflict.already_exists"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/branches", {"name": "other"}),
        ("/runs", {"target_branch": "main"}),
        ("/optimize", {}),
    ],
)
def test_every_kind_of_write_is_kept(client: Client, path: str, body: object) -> None:
    key = f"kind-{path}"
    first = document(client.post(path, body, **under(key)))
    again = client.post(path, body, **under(key))
    assert document(again) == first
    assert again.headers["idempotency-replayed"] == "true"


def test_another_request_under_the_key_is_refused(client: Client) -> None:
    document(client.post("/tags", {"name": "two"}, **under("tag-2")))
    for path, body, more in (
        ("/tags", {"name": "three"}, {}),
        ("/branches", {"name": "two"}, {}),
        ("/tags", {"name": "two"}, {"Omnigraph-If-Graph-Commit": "x"}),
    ):
        refused = document(client.post(path, body, **under("tag-2", **more)), 409)
        assert "another request" in refused["error"]
        assert "retryable" not in refused


def test_keys_of_others_are_others(client: Client) -> None:
    document(client.post("/tags", {"name": "of-ada"}, **under("shared")))
    with client.acting("b-1") as ben:
        made = document(ben.post("/tags", {"name": "of-ben"}, **under("shared")))
    assert made["actor_id"] == "ben"


ADD = 'query add() { insert Part { sku: "%s", name: "added" } }'


@pytest.mark.parametrize("path", ["/mutate", "/load"])
def test_rows_under_keys_of_others_are_others(client: Client, stock: Omnigraph, path: str) -> None:
    def body(sku: str) -> dict[str, Any]:
        sku = f"{sku}{path[1:]}"
        return {"query": ADD % sku} if path == "/mutate" else {"data": lines([part(sku)]).decode()}

    key = f"rows-{path}"
    first = document(client.post(path, body("of-ada-"), **under(key)))
    with client.acting("b-1") as ben:
        made = document(ben.post(path, body("of-ben-"), **under(key)))
        again = document(ben.post(path, body("of-ben-"), **under(key)))
        other = document(ben.post(path, body("more-"), **under(key)), 409)
    assert made["commit"]["actor_id"] == "ben"
    assert again["commit"] == made["commit"] != first["commit"]
    assert f"`{key}` was used for another request" in other["error"]
    assert first["commit"]["graph_commit_id"] not in other["error"]
    repeated = document(client.post(path, body("of-ada-"), **under(key)))
    assert repeated["commit"] == first["commit"]


def test_what_failed_is_tried_again(client: Client, stock: Omnigraph) -> None:
    body = {"source": "later"}
    assert document(client.post("/branches/merge", body, **under("merge-1")), 404)
    stock.branch_create("later")
    stock.load(lines([part("later1")]), branch="later")
    done = document(client.post("/branches/merge", body, **under("merge-1")))
    assert done["outcome"] == "fast_forward"
    again = document(client.post("/branches/merge", body, **under("merge-1")))
    assert again == done  # and not already_up_to_date


@pytest.mark.parametrize("key", ["x" * 201, "tab\there", ""])
def test_a_key_that_cannot_be_is_refused(client: Client, key: str) -> None:
    response = client.post("/tags", {"name": "never"}, **under(key))
    assert document(response, 400)["reason"] == "config.invalid"


def test_one_request_at_a_time(
    client: Client, stock: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    create = Omnigraph.tag_create

    def slowly(graph: Omnigraph, *arguments: Any, **options: Any) -> Any:
        begun.set()
        assert go_on.wait(120)
        return create(graph, *arguments, **options)

    monkeypatch.setattr(Omnigraph, "tag_create", slowly)
    body = {"name": "slow"}
    answers: list[Any] = []
    first = threading.Thread(
        target=lambda: answers.append(client.post("/tags", body, **under("slow-1")))
    )
    first.start()
    assert begun.wait(120)
    meanwhile = document(client.post("/tags", body, **under("slow-1")), 409)
    assert meanwhile["retryable"] is True
    assert "under way" in meanwhile["error"]
    go_on.set()
    first.join()
    assert document(client.post("/tags", body, **under("slow-1"))) == document(answers[0])


def test_what_landed_is_told_even_if_it_cannot_be_kept(
    root: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Omnigraph.tag_create

    def without_spool(graph: Omnigraph, *arguments: Any, **options: Any) -> Any:
        made = create(graph, *arguments, **options)
        shutil.rmtree(root / "spool" / "keys")
        return made

    monkeypatch.setattr(Omnigraph, "tag_create", without_spool)
    assert document(client.post("/tags", {"name": "kept"}, **under("full-1")))["name"] == "kept"


def test_without_room_for_the_answer_nothing_is_done(
    root: Path, client: Client, stock: Omnigraph
) -> None:
    document(client.post("/tags", {"name": "roomy"}, **under("room-1")))
    (place,) = (root / "spool" / "keys").iterdir()
    shutil.rmtree(place)
    place.touch()  # no file can be made below it
    refused = document(client.post("/tags", {"name": "cramped"}, **under("room-2")), 500)
    assert "spool" in refused["error"]
    assert "cramped" not in [tag.tag for tag in stock.tag_list()]
    place.unlink()
    document(client.post("/tags", {"name": "cramped"}, **under("room-2")))


def test_answers_are_kept_for_a_day(root: Path, stock: Omnigraph) -> None:
    body = {"name": "old"}
    with stock_server(root) as client:
        document(client.post("/tags", body, **under("old-1")))
    then = time.time() - KEPT_SECONDS - 60
    kept = list((root / "spool" / "keys").rglob("*.*"))
    assert kept
    for path in kept:
        os.utime(path, (then, then))
    with stock_server(root) as later:
        refused = document(later.post("/tags", body, **under("old-1")), 409)
    assert refused["reason"] == "conflict.already_exists"


def test_a_job_is_begun_once(client: Client) -> None:
    headers = under("job-1", Prefer="respond-async")
    first = client.post("/optimize", {}, **headers)
    again = client.post("/optimize", {}, **headers)
    assert document(first, 202)["job_id"] == document(again, 202)["job_id"]
    assert again.headers["location"] == first.headers["location"]
    ended(client, first.json())  # it moves main, where other tests look


def test_a_job_that_failed_is_begun_again(client: Client, stock: Omnigraph) -> None:
    headers = under("job-2", Prefer="respond-async")
    body = {"source": "not-yet"}
    failed = ended(client, document(client.post("/branches/merge", body, **headers), 202))
    assert failed["status"] == "failed"
    stock.branch_create("not-yet")
    stock.load(lines([part("not-yet-1")]), branch="not-yet")
    second = document(client.post("/branches/merge", body, **headers), 202)
    assert second["job_id"] != failed["job_id"]
    assert ended(client, second)["result"]["outcome"] == "fast_forward"
    third = document(client.post("/branches/merge", body, **headers), 202)
    assert (third["job_id"], third["status"]) == (second["job_id"], "done")
    other = document(client.post("/branches/merge", {"source": "other"}, **headers), 409)
    assert "another request" in other["error"]
