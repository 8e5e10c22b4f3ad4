"""Mutations and vectors that are made of texts: when they are made, kept, and made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.embedding.origin import fingerprint
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConstraintViolation, DataError, EmbeddingError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = """
node Article {
  slug: String @key
  title: String?
  rank: I64?
  shape: Vector(4)? @embed(title)
}

node Topic {
  name: String @key
  shape: Vector(4) @embed(name)
}
"""


@pytest.fixture
def og(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Omnigraph:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    return Omnigraph.init(str(tmp_path / "graph"), SCHEMA)


def run(og: Omnigraph, body: str, embed: str = "now", **params: object) -> Any:
    return og.mutate(f"query run($none: String?) {{ {body} }}", params, embed=embed)


def article(og: Omnigraph, slug: str = "a") -> dict[str, Any]:
    found = og.table(og.snapshot(), "node:Article").read().to_pylist()
    (row,) = (row for row in found if row["id"] == slug)
    return dict(row)


def test_an_insert_makes_the_vector(og: Omnigraph) -> None:
    run(og, 'insert Article { slug: "a", title: "one" } insert Article { slug: "b" }')
    made = article(og)

    assert sum(number**2 for number in made["shape"]) == pytest.approx(1)
    assert made["shape#origin"] == fingerprint("mock", "one")
    assert article(og, "b")["shape"] is None


def test_a_vector_that_is_given_is_kept(og: Omnigraph) -> None:
    run(og, 'insert Article { slug: "a", title: "one", shape: [1, 2, 3, 4] }')
    run(og, 'update Article set { rank: 1 } where slug = "a"')

    assert article(og)["shape"] == [1, 2, 3, 4]
    assert article(og)["shape#origin"] is None


def test_a_new_text_makes_a_new_vector(og: Omnigraph) -> None:
    run(og, 'insert Article { slug: "a", title: "one" }')
    first = article(og)
    run(og, 'update Article set { rank: 1, title: "one" } where slug = "a"')
    assert (article(og)["shape"], article(og)["rank"]) == (first["shape"], 1)
    run(og, 'update Article set { title: "two" } where slug = "a"')
    second = article(og)

    assert second["shape"] != first["shape"]
    assert second["shape#origin"] == fingerprint("mock", "two")
    run(og, 'update Article set { title: $none } where slug = "a"')
    assert article(og)["shape"] is article(og)["shape#origin"] is None


def test_later_statements_decide_what_is_embedded(og: Omnigraph) -> None:
    run(
        og,
        """
        insert Article { slug: "a", title: "one" }
        update Article set { title: "two" } where slug = "a"
        """,
    )
    assert article(og)["shape#origin"] == fingerprint("mock", "two")


def test_a_vector_may_be_left_pending(og: Omnigraph) -> None:
    run(og, 'insert Topic { name: "x" } insert Article { slug: "a", title: "one" }', embed="off")

    assert article(og)["shape"] is None
    assert og.table(og.snapshot(), "node:Topic").read(["shape"]).to_pylist() == [{"shape": None}]


def test_without_a_provider_nothing_is_written(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = og.snapshot().commit
    for name in ("OMNIGRAPH_EMBED_PROVIDER", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EmbeddingError):
        run(og, 'insert Article { slug: "a", title: "one" }')
    assert og.snapshot().commit == head
    run(og, 'insert Article { slug: "a", title: "one" }', embed="defer")
    assert article(og)["shape"] is None


def test_rules_are_checked_before_vectors_are_made(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMNIGRAPH_EMBED_PROVIDER")
    with pytest.raises(DataError):
        run(og, 'insert Article { slug: $none, title: "one" }')
    with pytest.raises(ConstraintViolation, match="no text in `name` to make it from"):
        run(og, 'insert Topic { name: " " }')
