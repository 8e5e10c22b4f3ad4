"""Backfills by the batch API, with the providers' own clients against a local service."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.constants import Constant
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import EmbeddingError
from omnigraph_core.write import batch_embed
from tests.support.batch_backfills import Notes
from tests.support.embedding_server import EmbeddingServer, Reply
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    Answers = list[dict[str, Any]]

BOTH = pytest.mark.parametrize("provider", ["openai", "gemini"])
ENGINES = pytest.mark.parametrize("engine", ["local", "tasks"])
COUNT = 30
TEXTS = [f"note {number}" for number in range(COUNT)]


@pytest.fixture
def notes(tmp_path: Path, server: EmbeddingServer) -> Notes:
    return Notes(tmp_path / "graph", server)


@BOTH
@ENGINES
def test_many_texts_go_as_a_batch(notes: Notes, provider: str, engine: str) -> None:
    notes.provider, notes.engine = provider, engine
    notes.load(*TEXTS, *TEXTS[:5], None, " ")
    done = notes.backfill()
    assert (done["vectors_made"], len(done["commits"])) == (COUNT + 5, 1)
    batches = notes.server.batches
    assert [sorted(texts) for texts in batches.texts] == [sorted(TEXTS)], "equal texts once"
    assert notes.server.requests == [], "no text is sent in another way"
    assert batches.counts["GET batches/one"] == 2, "it is looked at until it is done"
    assert batches.files == {}, "what is collected need not be at the provider"
    notes.check_complete()
    assert notes.backfill()["vectors_made"] == 0
    assert batches.counts["POST batches"] == 1


@BOTH
def test_few_texts_are_asked_for_one_by_one(notes: Notes, provider: str) -> None:
    notes.provider = provider
    notes.settings["OMNIGRAPH_EMBED_BATCH_FROM"] = str(COUNT + 1)
    assert notes.load(*TEXTS, *TEXTS).backfill()["vectors_made"] == 2 * COUNT
    assert notes.server.batches.calls == []
    assert sorted(notes.server.texts) == sorted(TEXTS)
    notes.check_complete()


@ENGINES
def test_without_the_setting_there_are_no_batches(notes: Notes, engine: str) -> None:
    notes.engine = engine
    notes.settings["OMNIGRAPH_EMBED_BATCH_FROM"] = ""
    assert notes.load(*TEXTS).backfill()["vectors_made"] == COUNT
    assert notes.server.batches.calls == []


@BOTH
def test_more_than_a_file_may_hold_becomes_several_batches(
    notes: Notes, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.provider = provider
    _limit(monkeypatch, "EMBED_BATCH_FILE_TEXTS", 12)
    notes.load(*TEXTS).backfill()
    assert [len(texts) for texts in notes.server.batches.texts] == [12, 12, 6]
    notes.check_complete()


def test_a_file_is_bounded_in_bytes(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    _limit(monkeypatch, "EMBED_BATCH_FILE_BYTES", 1_000)
    notes.load(*TEXTS).backfill()
    assert len(notes.server.batches.texts) > 3
    notes.check_complete()


def _limit(monkeypatch: pytest.MonkeyPatch, name: str, value: int) -> None:
    monkeypatch.setattr(batch_embed, name, Constant(name, value, ""))


@BOTH
@ENGINES
def test_a_killed_backfill_goes_on_with_its_batch(notes: Notes, provider: str, engine: str) -> None:
    notes.provider, notes.engine = provider, engine
    notes.load(*TEXTS)
    batches = notes.server.batches
    batches.is_held = True
    with notes.spawn():
        wait_until(lambda: batches.counts["GET batches/one"] >= 3, "looks at the batch")
    assert notes.records() == ["planned", "submitted"]
    batches.is_held = False
    assert notes.backfill()["vectors_made"] == COUNT
    assert batches.counts["POST batches"] == 1
    assert notes.server.requests == []
    notes.check_complete()


@BOTH
def test_a_batch_whose_submission_was_not_answered_is_found(notes: Notes, provider: str) -> None:
    """It is killed after the provider has made the batch and before it is told so."""
    notes.provider = provider
    notes.load(*TEXTS)
    batches = notes.server.batches
    batches.queue("POST batches", Reply(is_withheld=True))
    with notes.spawn():
        wait_until(lambda: batches.jobs, "a batch")
    assert notes.records() == ["planned"]
    assert notes.backfill()["vectors_made"] == COUNT
    assert batches.counts["POST batches"] == 1
    notes.check_complete()


@BOTH
@pytest.mark.parametrize(
    ("call", "kept"),
    [("GET files/content", ["planned", "submitted"]), ("DELETE files/one", ["vectors"])],
    ids=["while it downloads", "while it tidies up"],
)
def test_answers_of_a_backfill_that_is_killed_are_not_lost(
    notes: Notes, provider: str, call: str, kept: list[str]
) -> None:
    notes.provider = provider
    notes.load(*TEXTS)
    batches = notes.server.batches
    batches.queue(call, Reply(is_withheld=True))
    with notes.spawn():
        wait_until(lambda: batches.counts[call], call)
    assert notes.records() == kept
    batches.release()
    assert notes.backfill()["vectors_made"] == COUNT
    assert batches.counts["POST batches"] == 1
    assert notes.server.requests == []
    notes.check_complete()


@BOTH
def test_a_batch_that_never_was_is_submitted_anew(notes: Notes, provider: str) -> None:
    """The record was written, and the provider has refused the batch."""
    notes.provider = provider
    notes.load(*TEXTS)
    batches = notes.server.batches
    batches.queue("POST batches", Reply(status=400, body={"error": {"message": "no quota"}}))
    with pytest.raises(EmbeddingError, match="failed to submit a batch: HTTP 400: no quota"):
        notes.backfill()
    assert notes.records() == ["planned"]
    assert notes.backfill()["vectors_made"] == COUNT
    assert len(batches.texts) == 1
    notes.check_complete()


@BOTH
def test_what_fails_for_a_moment_is_tried_again(notes: Notes, provider: str) -> None:
    """A submission whose answer was lost is looked for before it is repeated."""
    notes.provider = provider
    failed = Reply(status=503, body={"error": {"message": "busy"}})
    names = ("POST files", "POST batches", "GET batches/one", "GET files/content")
    for name in names:
        notes.server.batches.queue(name, failed)
    assert notes.load(*TEXTS).backfill()["vectors_made"] == COUNT
    assert notes.server.batches.counts["GET batches"] == 1
    assert len(notes.server.batches.texts) == 1
    notes.check_complete()


@BOTH
def test_an_outage_does_not_end_a_long_wait(
    notes: Notes,
    provider: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three looks fail, with all their repetitions; ten in a row are too many."""
    notes.provider = provider
    _limit(monkeypatch, "EMBED_BATCH_FILE_TEXTS", 20)
    notes.settings["OMNIGRAPH_EMBED_RETRY_ATTEMPTS"] = "2"
    failed = Reply(status=503, body={"error": {"message": "busy"}})
    notes.server.batches.queue("GET batches/one", *[failed] * 20)
    with pytest.raises(EmbeddingError, match="failed to look at batch") as caught:
        notes.load(*TEXTS).backfill()
    assert caught.value.retryable
    notes.server.batches.queue("GET batches/one", *[failed] * 6)
    caplog.clear()
    assert notes.backfill()["vectors_made"] == COUNT
    assert len([record for record in caplog.messages if "asked again later" in record]) == 3
    assert notes.server.batches.counts["POST batches"] == 2


@BOTH
@ENGINES
def test_texts_that_are_refused_are_named_with_their_rows(
    notes: Notes, provider: str, engine: str
) -> None:
    notes.provider, notes.engine = provider, engine
    notes.load(*TEXTS, TEXTS[3])
    batches = notes.server.batches
    batches.refusals = {TEXTS[3]: (400, "too long"), TEXTS[7]: (429, "later"), "": (0, "")}
    with pytest.raises(EmbeddingError, match="vectors of 2 rows could not be made") as caught:
        notes.backfill()
    named = [line.strip() for line in caught.value.message.splitlines()[1:]]
    assert sorted(named) == [
        "Note 'n3', topic: HTTP 400: too long",
        "Note 'n30', topic: HTTP 400: too long",
    ]
    assert notes.records() == ["vectors"], "the others are kept"
    assert notes.backfill()["vectors_made"] == COUNT + 1
    assert batches.counts["POST batches"] == 1
    assert sorted(notes.server.texts) == sorted([TEXTS[3], TEXTS[7]])
    notes.check_complete()


@BOTH
def test_texts_that_may_be_sent_again_are_asked_for_one_by_one(notes: Notes, provider: str) -> None:
    notes.provider = provider
    notes.server.batches.refusals = {TEXTS[7]: (429, "later"), TEXTS[9]: (500, "broken")}
    assert notes.load(*TEXTS).backfill()["vectors_made"] == COUNT
    assert sorted(notes.server.texts) == sorted([TEXTS[7], TEXTS[9]])
    notes.check_complete()


@BOTH
@pytest.mark.parametrize(("state", "answered"), [("expired", 20), ("cancelled", 4), ("failed", 0)])
def test_a_batch_that_does_not_complete_is_an_error(
    notes: Notes, provider: str, state: str, answered: int
) -> None:
    notes.provider = provider
    batches = notes.server.batches
    batches.ends.append((state, answered))
    batches.reasons = [{"code": "invalid", "message": "not a model"}]
    with pytest.raises(EmbeddingError) as caught:
        notes.load(*TEXTS).backfill()
    (batch,) = batches.jobs
    message = caught.value.message
    assert message.startswith(f"{provider}: batch {batch} {state}")
    assert message.endswith(f"{COUNT - answered} of {COUNT} texts have no vector")
    assert ("not a model" in message) == (provider == "openai" and state == "failed")
    assert caught.value.retryable == (state == "expired")
    assert "start the backfill again" in str(caught.value)
    notes.settings["OMNIGRAPH_EMBED_BATCH_FROM"] = "1"
    assert notes.backfill()["vectors_made"] == COUNT
    assert [len(texts) for texts in batches.texts] == [COUNT, COUNT - answered]
    notes.check_complete()


def test_a_full_queue_is_waited_for(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batch completes, the second does not fit beside it."""
    _limit(monkeypatch, "EMBED_BATCH_FILE_TEXTS", 15)
    batches = notes.server.batches
    batches.ends.extend([("completed", 15), ("failed", 0)])
    batches.reasons = [{"code": "token_limit_exceeded", "message": "too many tokens"}]
    notes.settings["OMNIGRAPH_EMBED_BATCH_FROM"] = "15"
    assert notes.load(*TEXTS).backfill()["vectors_made"] == COUNT
    assert [len(texts) for texts in batches.texts] == [15, 15, 15]
    assert notes.server.requests == []
    notes.check_complete()


def test_a_service_without_batches_names_the_setting(notes: Notes) -> None:
    notes.provider = "openai-compatible"
    notes.server.batches.queue("POST files", Reply(status=404, body={"error": "no such page"}))
    with pytest.raises(EmbeddingError, match="failed to upload a batch file: HTTP 404") as caught:
        notes.load(*TEXTS).backfill()
    assert "unset OMNIGRAPH_EMBED_BATCH_FROM" in str(caught.value)
    notes.settings["OMNIGRAPH_EMBED_BATCH_FROM"] = ""
    assert notes.backfill()["vectors_made"] == COUNT


@BOTH
def test_a_batch_of_another_account_is_not_forgotten(notes: Notes, provider: str) -> None:
    """With the key of another project the provider knows no such batch; it may still be paid."""
    notes.provider = provider
    batches = notes.server.batches
    missing = Reply(status=404, body={"error": {"message": "no such batch"}})
    batches.queue("GET batches/one", missing)
    with pytest.raises(EmbeddingError, match="does not have batch") as caught:
        notes.load(*TEXTS).backfill()
    assert "_scratch/batches-" in str(caught.value)
    assert notes.backfill()["vectors_made"] == COUNT
    assert batches.counts["POST batches"] == 1
    notes.check_complete()


def test_the_key_is_not_shown(notes: Notes) -> None:
    denied = Reply(status=401, body={"error": {"message": "bad key sk-secret"}})
    notes.server.batches.queue("POST files", denied)
    with pytest.raises(EmbeddingError, match=r"bad key \*\*\*") as caught:
        notes.load(*TEXTS).backfill()
    assert caught.value.hint == "check OPENAI_API_KEY"


def test_vectors_of_the_cache_are_not_asked_for(notes: Notes, tmp_path: Path) -> None:
    notes.settings["OMNIGRAPH_EMBED_CACHE"] = str(tmp_path / "cache.sqlite")
    few = Notes(tmp_path / "few", notes.server, settings=notes.settings)
    few.load(*TEXTS[:4]).backfill()
    assert notes.server.batches.calls == []
    notes.load(*TEXTS).backfill()
    assert [sorted(texts) for texts in notes.server.batches.texts] == [sorted(TEXTS[4:])]
    assert sorted(notes.server.texts) == TEXTS[:4]
    notes.check_complete()


def test_who_waits_for_a_batch_can_be_interrupted(notes: Notes) -> None:
    notes.load(*TEXTS)
    batches = notes.server.batches
    batches.is_held = True
    notes.settings["OMNIGRAPH_EMBED_BATCH_POLL_MS"] = "10000000"
    with notes.spawn() as waiting:
        wait_until(lambda: batches.counts["GET batches/one"] == 1, "a look at the batch")
        os.kill(waiting.pid, signal.SIGINT)
        assert "KeyboardInterrupt" in waiting.wait().stderr
    batches.is_held = False
    notes.settings.clear()
    assert notes.backfill()["vectors_made"] == COUNT
    assert batches.counts["POST batches"] == 1


def test_cleanup_spares_what_a_batch_is_recorded_in(notes: Notes) -> None:
    """A day may pass before a batch is done; a week later nobody comes back for it."""
    notes.load(*TEXTS)
    batches = notes.server.batches
    batches.queue("GET batches/one", Reply(status=401, body={"error": {"message": "who?"}}))
    with pytest.raises(EmbeddingError, match="failed to look at batch"):
        notes.backfill()
    _age(notes.path / "_scratch", days=2)
    Omnigraph.open(str(notes.path)).cleanup(keep=1)
    assert notes.records() == ["planned", "submitted"]
    _age(notes.path / "_scratch", days=8)
    Omnigraph.open(str(notes.path)).cleanup(keep=1)
    assert notes.records() == []


def _age(folder: Path, *, days: int) -> None:
    then = time.time() - days * 86_400
    for path in folder.rglob("*"):
        os.utime(path, (then, then))
