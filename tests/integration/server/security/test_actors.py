"""To be somebody else: who acts is whose token it is, whatever a request says beside it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from tests.integration.server.security.asking import INSERT, record
from tests.support.raw_http import exchange
from tests.support.served import ended

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

SPOOF: Final = {"actor": "ann", "actor_id": "ann", "as": "ann", "author": "ann"}
SPOOFED: Final = {
    "X-Actor-Id": "ann", "X-Actor": "ann", "X-Omnigraph-Actor": "ann", "Omnigraph-Actor": "ann",
    "X-Forwarded-User": "ann", "X-Remote-User": "ann", "Remote-User": "ann", "From": "ann",
    "Cookie": "actor=ann", "Proxy-Authorization": "Bearer token-of-ann",
    "X-Authorization": "Bearer token-of-ann", "X-Forwarded-Authorization": "Bearer token-of-ann",
}  # fmt: skip
IN_ADDRESS: Final = "actor=ann&actor_id=ann&as=ann&access_token=token-of-ann&token=token-of-ann"


def test_every_write_is_recorded_for_the_owner_of_the_token(ben: Client, stock: Omnigraph) -> None:
    head = stock.head_commit_id_for_branch()
    schema = stock.schema_show().source + "node Shelf {\n  code: String @key\n}\n"
    writes: list[tuple[str, dict[str, Any]]] = [
        ("/branches", {"name": "mine"}),
        ("/change", {"query_source": INSERT, "params": {"sku": "w1"}, "branch": "mine"}),
        ("/mutate", {"query": INSERT, "params": {"sku": "w2"}, "branch": "mine"}),
        ("/ingest", {"data": record("w3"), "branch": "mine"}),
        ("/load", {"data": record("w4"), "branch": "mine"}),
        ("/queries/add", {"params": {"sku": "w5"}, "branch": "mine"}),
        ("/branches/merge", {"source": "mine", "target": "draft"}),
        ("/runs", {"target_branch": "draft"}),
        ("/tags", {"name": "mine"}),
        (f"/commits/{head}/pick", {"into": "draft"}),
        ("/branches/reset", {"branch": "draft", "to": head, "confirm": True}),
        ("/schema/apply", {"schema_source": schema, "branch": "mine"}),
        ("/indexes", {"branch": "mine"}),
        ("/optimize", {"branch": "mine"}),
    ]
    known = {commit.graph_commit_id for commit in stock.list_commits("draft")}
    for path, body in writes:
        answer = ben.post(f"{path}?{IN_ADDRESS}", {**body, **SPOOF}, headers=SPOOFED)
        assert answer.status_code == 200, answer.text
        assert "ann" not in re.findall(r'"actor(?:_id)?":"(\w+)"', answer.text), path
    at_mine = f"branch=mine&{IN_ADDRESS}"
    raw = ben.request("POST", f"/load/ndjson?{at_mine}", content=record("w6"), headers=SPOOFED)
    files = ben.request(
        "POST", f"/load/files?{at_mine}", headers=SPOOFED,
        files={"file": ("actor=ann/Part.csv", b"sku,name\nw7,n\n")},
    )  # fmt: skip
    for answer in (raw, files):
        assert answer.status_code == 200, answer.text
        assert answer.json()["actor_id"] == "ben"
    job = ben.post(
        "/branches/merge", {"source": "mine", "target": "draft", **SPOOF},
        headers={"Prefer": "respond-async", **SPOOFED},
    ).json()  # fmt: skip
    assert job["actor_id"] == "ben"
    assert ended(ben, job)["status"] == "done"
    made = [
        commit
        for name in ("mine", "draft")
        for commit in stock.list_commits(name)
        if commit.graph_commit_id not in known
    ]
    assert len(made) >= 10
    assert {commit.actor_id for commit in made} == {"ben"}
    assert {run.actor_id for run in stock.list_runs()} == {"ben"}
    assert next(tag for tag in stock.tag_list() if tag.tag == "mine").actor == "ben"
    assert stock.branch_get("mine").actor == "ben"


def test_nothing_but_the_token_makes_an_actor(guarded: Client, eve: Client) -> None:
    """Neither for those without a token, nor for those whose own allows nothing."""
    for client, status in ((guarded, 401), (eve, 403)):
        assert client.get(f"/branches?{IN_ADDRESS}", headers=SPOOFED).status_code == status
        body = {"query_source": INSERT, "params": {"sku": "x"}, **SPOOF}
        answer = client.post(f"/change?{IN_ADDRESS}", body, headers=SPOOFED)
        assert answer.status_code == status


def test_two_tokens_make_no_actor(guarded: Client) -> None:
    """The first one counts, as for everybody on the way."""
    both = b"Authorization: Bearer wrong\r\nAuthorization: Bearer token-of-ann\r\n"
    data = b"GET /branches HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + both + b"\r\n"
    (answer,) = exchange(guarded.url, data)
    assert answer.status == 401


def test_a_member_that_stands_there_twice_makes_no_actor(ben: Client) -> None:
    body = json.dumps({"query": INSERT, "params": {"sku": "twice"}, "branch": "draft"})
    doubled = body.removesuffix("}") + ', "actor": "ben", "actor": "ann"}'
    headers = {"Content-Type": "application/json"}
    answer = ben.request("POST", "/mutate", content=doubled, headers=headers)
    assert answer.json()["actor_id"] == "ben"
