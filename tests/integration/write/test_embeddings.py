"""Vectors of texts in a live graph: made at load, left pending, found stale, filled in later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from omnigraph_core.embedding.mock import mock_vectors
from omnigraph_core.embedding.origin import fingerprint
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchNotFound, ConstraintViolation, EmbeddingError
from omnigraph_core.write import backfill
from omnigraph_core.write.progress import Progress, Step
from tests.support.embedding_server import EmbeddingServer, Reply
from tests.support.loading import article, lines, new_graph, note, page, rows, state
from tests.support.ports import dead_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REFUSAL = Reply(status=400, body={"error": {"message": "no such model"}})


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cache of vectors, no proxy, no waiting."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_CACHE", "off")
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "1")


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Omnigraph:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    return new_graph(tmp_path)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    """A provider that graphs opened from here on will use."""
    with EmbeddingServer() as server:
        monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK", raising=False)
        monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai")
        monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        yield server


@pytest.fixture
def served(tmp_path: Path, server: EmbeddingServer) -> Iterator[Omnigraph]:
    with new_graph(tmp_path) as graph:
        yield graph


def topics(graph: Omnigraph, type_name: str = "Article") -> dict[str, Any]:
    return {id: values.get("topic") for id, values in rows(graph, type_name).items()}


def vector(text: str) -> list[float]:
    return [float(str(number)) for number in mock_vectors([text], 4)[0]]


def origins(graph: Omnigraph) -> dict[str, int | None]:
    found = graph.table(graph.snapshot(), "node:Article").read(["id", "topic#origin"])
    return dict(zip(*(found.column(name).to_pylist() for name in found.column_names), strict=True))


def status(graph: Omnigraph, type_name: str = "Article") -> tuple[int, int, int]:
    """How many are ready, pending, stale."""
    (found,) = (item for item in graph.embedding_status() if item.type_name == type_name)
    return found.ready, found.pending, found.stale


# At load


def test_a_load_makes_the_vectors(graph: Omnigraph) -> None:
    result = graph.load(lines(article("a", body="alpha"), article("b", body="beta"), note()))
    assert (result.vectors_made, result.vectors_pending) == (2, 0)
    assert topics(graph) == {"a": vector("alpha"), "b": vector("beta")}
    assert topics(graph)["a"] == [-0.5420488, -0.47179943, 0.16090508, 0.67653376]
    assert origins(graph) == {
        "a": fingerprint("mock", "alpha"),
        "b": fingerprint("mock", "beta"),
    }
    assert status(graph) == (2, 0, 0)


def test_given_vectors_are_not_touched(graph: Omnigraph) -> None:
    result = graph.load(lines(article("a", body="alpha", topic=[1, 2, 3, 4]), article("b")))
    assert result.vectors_made == 0
    assert topics(graph) == {"a": [1, 2, 3, 4], "b": None}
    assert origins(graph) == {"a": None, "b": None}
    assert status(graph) == (1, 0, 0)


@pytest.mark.parametrize("body", [None, "", "  ", "\n\t", "\u3000"])
def test_a_blank_text_needs_no_vector(graph: Omnigraph, body: str | None) -> None:
    result = graph.load(lines(article("a", body=body)))
    assert (result.vectors_made, result.vectors_pending) == (0, 0)
    assert topics(graph) == {"a": None}
    assert status(graph) == (0, 0, 0)


def test_the_text_is_embedded_as_it_is(graph: Omnigraph) -> None:
    graph.load(lines(article("a", body=" ALPHA\n")))
    assert topics(graph)["a"] == vector(" ALPHA\n")


def test_a_required_vector_is_made(graph: Omnigraph) -> None:
    graph.load(lines(page("p", body="alpha")))
    assert topics(graph, "Page") == {"p": vector("alpha")}


@pytest.mark.parametrize("embed", ["now", "defer", "off"])
def test_a_required_vector_needs_a_text(graph: Omnigraph, embed: str) -> None:
    before = state(graph)
    with pytest.raises(ConstraintViolation, match="missing required property `topic`") as caught:
        graph.load(lines(page("p", body="alpha"), page("q", body="  ")), embed=embed)
    assert [found.line for found in caught.value.violations] == [2]
    assert state(graph) == before


def test_dry_runs_make_none(served: Omnigraph, server: EmbeddingServer) -> None:
    result = served.load(lines(article("a", body="alpha")), dry_run=True)
    assert (result.vectors_made, server.requests) == (0, [])


def test_refused_records_are_not_embedded(served: Omnigraph, server: EmbeddingServer) -> None:
    with pytest.raises(ConstraintViolation):
        served.load(lines(note(rank=99), article("a", body="alpha")))
    assert server.requests == []


def test_each_text_is_asked_for_once(served: Omnigraph, server: EmbeddingServer) -> None:
    result = served.load(lines(*(article(slug, body="alpha") for slug in "abc")))
    assert result.vectors_made == 3
    assert server.texts == ["alpha"]
    np.testing.assert_allclose(list(topics(served).values()), [vector("alpha")] * 3, atol=1e-6)


# Changes


def set_(graph: Omnigraph, slug: str, embed: str = "now", **values: str | None) -> None:
    """Set properties of an article."""
    declared = ", ".join(f"${name}: String?" for name in values)
    assigned = ", ".join(f"{name}: ${name}" for name in values)
    query = f'query q({declared}) {{ update Article set {{ {assigned} }} where slug = "{slug}" }}'
    graph.mutate(query, values, embed=embed)


def test_a_new_text_has_a_new_vector(graph: Omnigraph) -> None:
    graph.load(lines(article("a", body="alpha"), article("b", body="beta")))
    set_(graph, "a", body="gamma")
    assert topics(graph) == {"a": vector("gamma"), "b": vector("beta")}
    set_(graph, "a", body=None)
    assert topics(graph)["a"] is None
    assert status(graph) == (1, 0, 0)


def test_another_property_leaves_the_vector_alone(
    served: Omnigraph, server: EmbeddingServer
) -> None:
    served.load(lines(article("a", body="alpha"), article("b", body="x", topic=[1, 2, 3, 4])))
    before, asked = topics(served), len(server.requests)
    set_(served, "a", title="new")
    set_(served, "b", title="new")
    assert topics(served) == before
    assert len(server.requests) == asked
    assert status(served) == (2, 0, 0)


def test_a_merge_of_a_new_text_makes_a_new_vector(graph: Omnigraph) -> None:
    graph.load(lines(article("a", body="alpha")))
    graph.load(lines(article("a", body="gamma")))
    assert topics(graph)["a"] == vector("gamma")


def test_what_is_pending_does_not_stop_an_update(
    served: Omnigraph, server: EmbeddingServer
) -> None:
    served.load(lines(article("a", body="alpha")), embed="off")
    set_(served, "a", title="new")
    assert (status(served), server.requests) == ((0, 1, 0), [])


@pytest.mark.parametrize("mode", ["merge", "overwrite"])
def test_the_same_text_keeps_its_vector(
    served: Omnigraph, server: EmbeddingServer, mode: str
) -> None:
    given = lines(article("a", body="alpha"), article("b", body="beta"))
    served.load(given)
    before = topics(served)
    server.requests.clear()
    again = served.load(given, mode=mode, embed="off")
    assert (again.vectors_made, again.vectors_pending) == (0, 0)
    served.mutate('query q() { insert Article { slug: "a", body: "alpha" } }', embed="off")
    assert (topics(served), server.requests) == (before, [])
    served.load(lines(article("a", body="gamma"), article("b", body="beta")), mode=mode)
    assert server.texts == ["gamma"]
    assert status(served) == (2, 0, 0)


# When the provider fails


@pytest.mark.parametrize("records", [[article("a", body="alpha")], [page("a", body="alpha")]])
def test_a_load_fails_with_the_provider(
    served: Omnigraph, server: EmbeddingServer, records: list[dict[str, Any]]
) -> None:
    before = state(served)
    server.queue(REFUSAL)
    with pytest.raises(EmbeddingError, match="no such model"):
        served.load(lines(note(), *records))
    assert state(served) == before


def test_a_mutation_fails_with_the_provider(served: Omnigraph, server: EmbeddingServer) -> None:
    served.load(lines(article("a", body="alpha")))
    before = state(served)
    server.queue(REFUSAL)
    with pytest.raises(EmbeddingError, match="no such model"):
        set_(served, "a", body="gamma")
    assert state(served) == before


def test_without_a_key_a_load_says_so(served: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with Omnigraph.open(served.uri) as graph, pytest.raises(EmbeddingError, match="OPENAI_API_KEY"):
        graph.load(lines(article("a", body="alpha")))


@pytest.mark.parametrize("make", [article, page])
def test_deferred_vectors_are_pending(
    served: Omnigraph, server: EmbeddingServer, make: Callable[..., dict[str, Any]]
) -> None:
    server.queue(REFUSAL)
    given = [make("a", body="alpha"), make("b", body="beta", topic=[1, 2, 3, 4])]
    result = served.load(lines(*given), embed="defer")
    assert (result.vectors_made, result.vectors_pending) == (0, 1)
    type_name = given[0]["type"]
    assert topics(served, type_name) == {"a": None, "b": [1, 2, 3, 4]}
    assert status(served, type_name) == (1, 1, 0)


def test_an_address_where_nobody_answers(
    served: Omnigraph, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dead_port() as port:
        monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", f"http://127.0.0.1:{port}/v1")
        with Omnigraph.open(served.uri) as graph:
            with pytest.raises(EmbeddingError):
                graph.load(lines(article("a", body="alpha")))
            assert graph.load(lines(article("a", body="alpha")), embed="defer").vectors_pending == 1


def test_deferring_makes_what_can_be_made(served: Omnigraph) -> None:
    result = served.load(lines(article("a", body="alpha")), embed="defer")
    assert (result.vectors_made, result.vectors_pending) == (1, 0)
    assert status(served) == (1, 0, 0)


def test_off_asks_for_none(served: Omnigraph, server: EmbeddingServer) -> None:
    result = served.load(lines(article("a", body="alpha"), page("p", body="beta")), embed="off")
    assert (result.vectors_made, result.vectors_pending) == (0, 2)
    assert server.requests == []
    assert status(served, "Page") == (0, 1, 0)


# Status and backfill


def test_the_status_of_every_property(graph: Omnigraph) -> None:
    graph.load(lines(article("a", body="alpha")))
    assert [item.to_json() for item in graph.embedding_status()] == [
        {
            "type": "Article", "property": "topic", "model": "mock",
            "ready": 1, "pending": 0, "stale": 0,
        },
        {
            "type": "Page", "property": "topic", "model": "mock",
            "ready": 0, "pending": 0, "stale": 0,
        },
    ]  # fmt: skip


def test_the_status_of_a_branch(graph: Omnigraph) -> None:
    graph.branch_create("draft")
    graph.load(lines(article("a", body="alpha")), branch="draft", embed="off")
    pending = [item.pending for item in graph.embedding_status("draft")]
    assert (pending, status(graph)) == ([1, 0], (0, 0, 0))
    graph.embed_backfill(branch="draft")
    assert [item.ready for item in graph.embedding_status("draft")] == [1, 0]
    with pytest.raises(BranchNotFound):
        graph.embed_backfill(branch="nowhere")


def test_a_backfill_makes_what_is_pending(graph: Omnigraph) -> None:
    graph.load(
        lines(
            article("a", body="alpha", title="A", picture="base64:AQI="), article("b", body=" "),
            article("c", body="gamma", topic=[1, 2, 3, 4]), page("p", body="alpha"),
        ),
        embed="off",
    )  # fmt: skip
    told: list[Progress] = []
    result = graph.embed_backfill(progress=told.append, actor="filler")
    assert result.vectors_made == 2
    assert topics(graph) == {"a": vector("alpha"), "b": None, "c": [1, 2, 3, 4]}
    assert topics(graph, "Page") == {"p": vector("alpha")}
    assert rows(graph, "Article")["a"] == {
        "slug": "a", "title": "A", "body": "alpha", "picture": "base64:AQI=",
        "topic": vector("alpha"),
    }  # fmt: skip
    assert (status(graph), status(graph, "Page")) == ((2, 0, 0), (1, 0, 0))
    assert told == [Progress(Step.EMBEDDED, 1), Progress(Step.EMBEDDED, 2)]
    newest = graph.list_commits()[:2]
    assert result.to_json() == {
        "branch": "main",
        "vectors_made": 2,
        "commits": [commit.graph_commit_id for commit in reversed(newest)],
    }
    assert {commit.actor_id for commit in newest} == {"filler"}


def test_a_second_backfill_has_nothing_to_do(graph: Omnigraph) -> None:
    graph.load(lines(article("a", body="alpha"), article("b", body="beta")), embed="off")
    graph.embed_backfill()
    before = state(graph)
    result = graph.embed_backfill()
    assert (result.vectors_made, result.commits) == (0, ())
    assert state(graph) == before


def test_another_model_makes_vectors_stale(
    served: Omnigraph, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.load(lines(article("a", body="alpha"), article("b", body="beta", topic=[1, 2, 3, 4])))
    assert status(served) == (2, 0, 0)
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "newer")
    with Omnigraph.open(served.uri) as graph:
        assert graph.embedding_status()[0].model == "newer"
        assert status(graph) == (1, 0, 1), "what was given is nobody's to replace"
        assert graph.embed_backfill().vectors_made == 1
        assert status(graph) == (2, 0, 0)
        assert origins(graph) == {"a": fingerprint("newer", "alpha"), "b": None}
    assert server.requests[-1].body["model"] == "newer"
    assert status(served) == (1, 0, 1), "seen from the older model"


def test_a_backfill_commits_part_by_part(
    served: Omnigraph, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was paid for before a failure is kept."""
    monkeypatch.setattr(backfill, "PART_ROWS", 2)
    served.load(lines(*(article(slug, body=slug) for slug in "abcde")), embed="off")
    count = len(served.list_commits())
    server.queue(Reply(body=_answer(2)), Reply(body=_answer(2)), REFUSAL)
    with pytest.raises(EmbeddingError):
        served.embed_backfill()
    assert status(served) == (4, 1, 0)
    assert len(served.list_commits()) == count + 2
    assert served.embed_backfill().vectors_made == 1
    assert status(served) == (5, 0, 0)


def _answer(count: int) -> dict[str, Any]:
    unit = [1.0, 0.0, 0.0, 0.0]
    return {"data": [{"index": index, "embedding": unit} for index in range(count)]}


def during(graph: Omnigraph, change: Callable[[Omnigraph], object]) -> Callable[[Progress], None]:
    """Another process changes the graph once vectors have come and are not yet written."""
    pending = [change]

    def listen(progress: Progress) -> None:
        if pending:
            pending.pop()(Omnigraph.open(graph.uri))

    return listen


def test_a_text_that_changes_meanwhile_does_not_get_the_old_vector(graph: Omnigraph) -> None:
    graph.load(lines(article("a", body="alpha"), article("b", body="beta")), embed="off")
    listen = during(graph, lambda other: set_(other, "a", body="gamma", embed="off"))
    result = graph.embed_backfill(progress=listen)
    assert result.vectors_made == 1
    assert topics(graph) == {"a": None, "b": vector("beta")}
    assert status(graph) == (1, 1, 0)
    assert graph.embed_backfill().vectors_made == 1
    assert topics(graph)["a"] == vector("gamma")


def test_a_vector_that_comes_meanwhile_stays(graph: Omnigraph) -> None:
    graph.load(lines(article("a", body="alpha"), article("b", body="beta")), embed="off")
    given = lines(article("a", body="alpha", topic=[1, 2, 3, 4]))
    result = graph.embed_backfill(progress=during(graph, lambda other: other.load(given)))
    assert result.vectors_made == 1
    assert topics(graph) == {"a": [1, 2, 3, 4], "b": vector("beta")}


def test_a_row_that_goes_meanwhile_does_not_come_back(graph: Omnigraph) -> None:
    graph.load(lines(article("a", body="alpha")), embed="off")
    query = 'query q() { delete Article where slug = "a" }'
    result = graph.embed_backfill(progress=during(graph, lambda other: other.mutate(query)))
    assert (result.vectors_made, result.commits) == (0, ())
    assert rows(graph, "Article") == {}


def test_other_changes_meanwhile_are_kept(graph: Omnigraph) -> None:
    graph.load(lines(article("a", body="alpha")), embed="off")
    listen = during(graph, lambda other: set_(other, "a", title="new", embed="off"))
    graph.embed_backfill(progress=listen)
    assert rows(graph, "Article")["a"]["title"] == "new"
    assert topics(graph)["a"] == vector("alpha")
