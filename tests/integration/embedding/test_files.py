"""Seed files: which rows get vectors, what the output holds, and when there is none."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from omnigraph_core.embedding import files
from omnigraph_core.embedding.config import EmbedConfig, Provider
from omnigraph_core.embedding.embedder import Embedder
from omnigraph_core.embedding.files import EmbedFileMode, EmbedJob, embed_file
from omnigraph_core.embedding.mock import mock_vectors
from omnigraph_core.embedding.seed_rows import parse_selector
from omnigraph_core.embedding.spec import EmbedSpec, TypeSpec
from omnigraph_core.errors import ConfigError, EmbeddingError, RecordError
from tests.support.embedding_server import EmbeddingServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Connect = Callable[..., Embedder]

LINES = [
    '{"type": "Part", "data": {"name": "bolt", "note": " short "}}',
    "",
    '{"type":"Part","data":{"name":"nut","vector":[1, 0, 0, 0.0]}}',
    '{"edge": "Holds", "from": "a", "to": "b", "data": {"vector": []}}',
    '{"type": "Bin", "data": {"name": "bolt"}}',
]
SPEC = EmbedSpec(4, {"Part": TypeSpec("vector", ("name", "note"))})
BOLT = "type: Part\nname: bolt\nnote: short"
NUT = "type: Part\nname: nut"


@pytest.fixture
def mock() -> Embedder:
    return Embedder(lambda: EmbedConfig(Provider.MOCK, "mock"))


@pytest.fixture
def job(tmp_path: Path) -> EmbedJob:
    source = tmp_path / "seed.jsonl"
    source.write_text("\n".join(LINES) + "\n")
    return EmbedJob(source, tmp_path / "build" / "out.jsonl", SPEC)


def output(job: EmbedJob) -> list[str]:
    return job.output.read_text().splitlines()


def vector(line: str) -> object:
    return json.loads(line)["data"].get("vector")


def expected(text: str) -> list[float]:
    return [float(number) for number in mock_vectors([text], 4)[0]]


def test_missing_vectors_are_filled(job: EmbedJob, mock: Embedder) -> None:
    summary = embed_file(job, mock)
    assert summary.to_json() == {
        "input": str(job.input),
        "output": str(job.output),
        "rows": 4,
        "selected_rows": 3,
        "embedded_rows": 1,
        "cleaned_rows": 0,
        "mode": "fill_missing",
        "dimension": 4,
        "model": "gemini-embedding-2-preview",
    }
    assert json.dumps(summary.to_json())
    assert "4 rows, 3 selected, 1 embedded, 0 cleaned" in summary.render()
    lines = output(job)
    assert vector(lines[0]) == expected(BOLT)
    assert lines[1:] == [LINES[2], LINES[3], LINES[4]], "others are untouched"


@pytest.mark.parametrize("empty", ["null", "[]"])
def test_empty_vectors_count_as_missing(job: EmbedJob, mock: Embedder, empty: str) -> None:
    job.input.write_text(LINES[2].replace("[1, 0, 0, 0.0]", empty))
    assert embed_file(job, mock).embedded_rows == 1
    assert vector(output(job)[0]) == expected(NUT)


def test_selected_rows_are_embedded_again(job: EmbedJob, mock: Embedder) -> None:
    job = replace(job, selectors=(parse_selector("name=nut"), parse_selector("Bin:name=nut")))
    summary = embed_file(job, mock)
    assert (summary.mode, summary.selected_rows, summary.embedded_rows) == (
        EmbedFileMode.REEMBED_SELECTED,
        1,
        1,
    )
    lines = output(job)
    assert lines[0] == LINES[0]
    assert vector(lines[1]) == expected(NUT)


def test_types_narrow_without_embedding_again(job: EmbedJob, mock: Embedder) -> None:
    summary = embed_file(replace(job, types=("Part",)), mock)
    assert (summary.mode, summary.selected_rows, summary.embedded_rows) == (
        EmbedFileMode.FILL_MISSING,
        2,
        1,
    )
    assert embed_file(replace(job, types=("Bin",)), mock).embedded_rows == 0


def test_all_rows_are_embedded_again(job: EmbedJob, mock: Embedder) -> None:
    summary = embed_file(replace(job, is_reembed_all=True), mock)
    assert (summary.mode, summary.embedded_rows) == (EmbedFileMode.REEMBED_ALL, 2)
    assert [vector(line) for line in output(job)[:2]] == [expected(BOLT), expected(NUT)]


def test_cleaning_needs_no_provider(job: EmbedJob) -> None:
    def refuse() -> EmbedConfig:
        raise ConfigError("nobody may ask")

    selectors = (parse_selector("name=nut"), parse_selector("name=bolt"))
    job = replace(job, is_clean=True, selectors=selectors)
    summary = embed_file(job, Embedder(refuse))
    assert (summary.mode, summary.selected_rows, summary.cleaned_rows, summary.embedded_rows) == (
        EmbedFileMode.CLEAN,
        3,
        1,
        0,
    )
    lines = output(job)
    assert json.loads(lines[1]) == {"type": "Part", "data": {"name": "nut"}}
    assert [lines[0], *lines[2:]] == [LINES[0], LINES[3], LINES[4]]


def test_clean_and_reembed_exclude_each_other(job: EmbedJob, mock: Embedder) -> None:
    with pytest.raises(ConfigError, match="found both"):
        embed_file(replace(job, is_clean=True, is_reembed_all=True), mock)


def test_every_bad_line_is_named_and_nothing_asked_for(
    job: EmbedJob, server: EmbeddingServer, connect: Connect
) -> None:
    bad = [*LINES, "{", '{"type": "Part"}', "[1]", r'{"type":"Part","data":{"name":"\ud800"}}']
    job.input.write_text("\n".join(bad))
    with pytest.raises(RecordError) as caught:
        embed_file(job, connect(server.url, "gemini"))
    assert [violation.line for violation in caught.value.violations] == [6, 7, 8, 9]
    assert f"{job.input}:7: expected an object `data`, found null" in caught.value.message
    assert server.requests == []
    assert not job.output.parent.exists()


def test_many_bad_lines_are_counted(job: EmbedJob, mock: Embedder) -> None:
    job.input.write_text("{\n" * 250)
    with pytest.raises(RecordError, match="and 150 more") as caught:
        embed_file(job, mock)
    assert sum(caught.value.counts.values()) == 250


def test_a_failure_leaves_the_output_as_it_was(
    job: EmbedJob, server: EmbeddingServer, connect: Connect
) -> None:
    job.output.parent.mkdir()
    job.output.write_text("before")
    server.queue(Reply(400, {"error": {"message": "too long"}}))
    with pytest.raises(EmbeddingError, match="too long"):
        embed_file(job, connect(server.url, "gemini"))
    assert [path.name for path in job.output.parent.iterdir()] == ["out.jsonl"]
    assert job.output.read_text() == "before"


def test_a_file_may_replace_itself(job: EmbedJob, mock: Embedder) -> None:
    embed_file(replace(job, output=job.input), mock)
    assert vector(job.input.read_text().splitlines()[0]) == expected(BOLT)


@pytest.mark.parametrize("is_clean", [False, True])
def test_an_input_named_like_a_draft_is_kept(
    job: EmbedJob, mock: Embedder, *, is_clean: bool
) -> None:
    output_path = job.input.with_name("out.jsonl")
    source = job.input.rename(job.input.with_name("out.jsonl.tmp"))
    before = source.read_bytes()
    job = replace(job, input=source, output=output_path, is_clean=is_clean)
    assert embed_file(job, mock).rows == len(output(job)) == 4
    assert source.read_bytes() == before


def test_other_files_beside_the_output_are_kept(job: EmbedJob, mock: Embedder) -> None:
    other = job.output.with_name("out.jsonl.tmp")
    other.parent.mkdir()
    other.write_text("mine")
    embed_file(job, mock)
    assert other.read_text() == "mine"
    assert {path.name for path in other.parent.iterdir()} == {"out.jsonl", "out.jsonl.tmp"}


def test_two_runs_may_have_one_output(job: EmbedJob, mock: Embedder) -> None:
    def meanwhile(count: int, total: int) -> None:
        embed_file(job, mock)
        assert len(output(job)) == 4

    embed_file(replace(job, is_reembed_all=True), mock, on_done=meanwhile)
    assert [vector(line) for line in output(job)[:2]] == [expected(BOLT), expected(NUT)]
    assert [path.name for path in job.output.parent.iterdir()] == ["out.jsonl"]


def test_a_link_stays_one_and_its_file_keeps_its_mode(
    job: EmbedJob, mock: Embedder, tmp_path: Path
) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(job.input)
    job.input.chmod(0o600)
    embed_file(replace(job, input=link, output=link), mock)
    assert link.is_symlink()
    assert vector(job.input.read_text().splitlines()[0]) == expected(BOLT)
    assert job.input.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (LINES[:3], "expected 4 rows, 1 to change, found 2 rows, 1 to change"),
        ([*LINES, LINES[0]], "expected 4 rows, 1 to change, found 5 rows, 2 to change"),
        ([LINES[2], *LINES[2:]], "expected 4 rows, 1 to change, found 4 rows, 0 to change"),
        ([], "found 0 rows"),
        ([*LINES, "{"], "seed.jsonl:6: invalid JSON"),
        ([r'{"type":"Part","data":{"name":"\ud800"}}'], "seed.jsonl:1: expected text"),
    ],
)
@pytest.mark.parametrize("is_in_place", [False, True])
def test_an_input_that_changes_meanwhile(
    job: EmbedJob, lines: list[str], problem: str, *, is_in_place: bool
) -> None:
    def configure() -> EmbedConfig:  # asked for between the check and the work
        job.input.write_text("\n".join(lines))
        return EmbedConfig(Provider.MOCK, "mock")

    job.output.parent.mkdir()
    job.output.write_text("before")
    job = replace(job, output=job.input) if is_in_place else job
    with pytest.raises(RecordError, match="has changed while it was read: ") as caught:
        embed_file(job, Embedder(configure))
    assert problem in caught.value.message
    assert job.output.read_text() == ("\n".join(lines) if is_in_place else "before")
    assert not list(job.output.parent.glob(".embed-*"))


def test_comments_pass_untouched(job: EmbedJob, mock: Embedder) -> None:
    lines = [b"// parts", LINES[0].encode(), b"  // size \xe9 {", LINES[2].encode()]
    job.input.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    summary = embed_file(job, mock)
    assert (summary.rows, summary.selected_rows, summary.embedded_rows) == (2, 2, 1)
    found = job.output.read_bytes().split(b"\n")
    assert [found[0], *found[2:]] == [lines[0], *lines[2:], b""]
    assert vector(found[1].decode()) == expected(BOLT)


def test_a_line_that_would_lose_a_member_is_refused(job: EmbedJob, mock: Embedder) -> None:
    twice = '{"type": "Part", "data": {"name": "a", "name": "b"}}'
    kept = '{"type": "Bin", "data": {"name": "a", "name": "b"}}'
    done = '{"type": "Part", "data": {"name": "a", "name": "b", "vector": [1, 0, 0, 0]}}'
    job.input.write_text("\n".join([kept, done, twice, LINES[0], twice]))
    with pytest.raises(RecordError) as caught:
        embed_file(job, mock)
    assert caught.value.message == (
        f"{job.input}:3: member `name` is given twice\n{job.input}:5: member `name` is given twice"
    )
    assert [violation.property for violation in caught.value.violations] == ["name", "name"]
    with pytest.raises(RecordError, match="jsonl:2: member `name` is given twice"):
        embed_file(replace(job, is_clean=True), mock)
    job.input.write_text("\n".join([kept, done]))
    embed_file(job, mock)
    assert output(job) == [kept, done], "what is not changed passes"


def test_a_provider_is_asked_for_documents(
    job: EmbedJob, server: EmbeddingServer, connect: Connect
) -> None:
    embedder = connect(server.url, "gemini")
    summary = embed_file(replace(job, is_reembed_all=True), embedder)
    (request,) = server.requests
    assert request.texts == [BOLT, NUT]
    assert {content["taskType"] for content in request.body["requests"]} == {"RETRIEVAL_DOCUMENT"}
    assert summary.model == "gemini-embedding-2-preview"
    np.testing.assert_allclose(vector(output(job)[0]), expected(BOLT), atol=1e-6)


@pytest.mark.parametrize("named", [None, "text-embedding-3-large"])
def test_the_spec_may_name_a_model(
    job: EmbedJob, server: EmbeddingServer, connect: Connect, named: str | None
) -> None:
    job = replace(job, spec=replace(SPEC, model=named))
    summary = embed_file(job, connect(server.url, "openai"))
    assert summary.model == (named or "text-embedding-3-small")
    assert server.requests[0].body["model"] == summary.model


def test_long_files_go_through_in_windows(
    job: EmbedJob, mock: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_WINDOW", 7)
    names = [f"part {number}" for number in range(50)]
    rows = [{"type": "Part", "data": {"name": name}} for name in names]
    job.input.write_text("\ufeff" + "\r\n".join(map(json.dumps, rows)), encoding="utf-8")
    reports: list[tuple[int, int]] = []
    summary = embed_file(job, mock, on_done=lambda count, total: reports.append((count, total)))
    assert summary.embedded_rows == 50
    assert reports == [(7, 50)] * 7 + [(1, 50)]
    assert [vector(line) for line in output(job)] == [
        expected(f"type: Part\nname: {name}") for name in names
    ]


def test_places_that_cannot_be_used(job: EmbedJob, mock: Embedder, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*No such file"):
        embed_file(replace(job, input=tmp_path / "none"), mock)
    with pytest.raises(ConfigError, match="cannot write "):
        embed_file(replace(job, output=job.input / "out.jsonl"), mock)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=r"cannot read .*pipe: expected a file"):
        embed_file(replace(job, input=tmp_path / "pipe"), mock)
    for place in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ConfigError, match=r"cannot write .*: expected a file"):
            embed_file(replace(job, output=place), mock)
    assert (tmp_path / "pipe").is_fifo()
