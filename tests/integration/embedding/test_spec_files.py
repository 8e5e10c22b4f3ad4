"""Specs and seed manifests as files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.embedding.spec import EmbedSpec, Seed, TypeSpec, load_seed, load_spec
from omnigraph_core.errors import ConfigError
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path

SPEC = {"dimension": 4, "types": {"Part": {"target": "vector", "fields": ["name", "note"]}}}
EXPECTED = EmbedSpec(4, {"Part": TypeSpec("vector", ("name", "note"))})


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_spec(tmp_path: Path) -> None:
    assert load_spec(write(tmp_path / "spec.json", json.dumps(SPEC))) == EXPECTED
    named = json.dumps({**SPEC, "model": "text-embedding-3-large", "other": 1})
    assert load_spec(write(tmp_path / "spec.json", named)).model == "text-embedding-3-large"


def test_a_manifest(tmp_path: Path) -> None:
    text = f"""
graph: {{slug: parts}}
sources: {{raw_seed: ./data/seed.jsonl}}
artifacts: {{embedded_seed: out/seed.jsonl}}
embeddings: {json.dumps(SPEC)}
"""
    seed = load_seed(write(tmp_path / "seed.yaml", text))
    assert seed == Seed(tmp_path / "data/seed.jsonl", tmp_path / "out/seed.jsonl", EXPECTED)


def test_a_manifest_of_the_older_kind(tmp_path: Path) -> None:
    text = f"seed: {{data: seed.jsonl}}\nembeddings: {json.dumps(SPEC)}"
    seed = load_seed(write(tmp_path / "seed.yaml", text))
    assert seed.input == tmp_path / "seed.jsonl"
    assert seed.output == tmp_path / "build" / "seed.embedded.jsonl"


@each(
    ("document", "problems"),
    [
        ([], ["spec: expected an object, found []"]),
        ({}, ["spec.dimension: expected a number above zero", "spec.types: expected an object"]),
        (
            {
                "model": " ",
                "dimension": True,
                "types": {"A": {"target": 1, "fields": []}, "B": {"target": "t", "fields": [1]}},
            },
            [
                "spec.model: expected a name",
                "spec.dimension: expected a number above zero, found True",
                "spec.types.A.target: expected a name, found 1",
                "spec.types.A.fields: expected a list of names, found []",
                "spec.types.B.fields: expected a list of names, found [1]",
            ],
        ),
        ({"dimension": 1, "types": {"A": {}}}, ["spec.types.A.target", "spec.types.A.fields"]),
        ({"dimension": 1, "types": {"A": 1}}, ["spec.types.A: expected an object, found 1"]),
    ],
)
def test_every_problem_of_a_spec_is_named(
    tmp_path: Path, document: object, problems: list[str]
) -> None:
    path = write(tmp_path / "spec.json", json.dumps(document))
    with pytest.raises(ConfigError) as caught:
        load_spec(path)
    assert len(caught.value.message.splitlines()) == len(problems)
    for problem in problems:
        assert f"{path}: {problem}" in caught.value.message


@each(
    ("text", "problems"),
    [
        ("- 1", ["manifest: expected an object", "sources.raw_seed", "embeddings: expected"]),
        ("sources: {raw_seed: 3}", ["in sources.raw_seed, found 3", "embeddings: expected"]),
        ("a: [", ["expected YAML"]),
        ("[" * 5000, ["expected YAML"]),
        ("d: 2024-99-99", ["expected YAML: month must be"]),
        ("d: !!bool maybe", ["expected YAML"]),
        ("d: !!timestamp soon", ["expected YAML"]),
        ("d: !!int ''", ["expected YAML"]),
        ('seed: {data: "a\\0b"}', ["expected a path in seed.data, found 'a\\x00b'"]),
        (
            'artifacts: {embedded_seed: "\\uD800"}',
            ["expected a path in artifacts.embedded_seed"],
        ),
    ],
)
def test_every_problem_of_a_manifest_is_named(
    tmp_path: Path, text: str, problems: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_seed(write(tmp_path / "seed.yaml", text))
    for problem in problems:
        assert problem in caught.value.message


def test_what_was_found_is_shown_in_brief(tmp_path: Path) -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    text = "\n".join(["l0: &l0 [1]", *levels, "sources: {raw_seed: *l8}", "embeddings: *l8"])
    with pytest.raises(ConfigError, match=r"embeddings: expected an object, found \[") as caught:
        load_seed(write(tmp_path / "seed.yaml", text))
    assert len(caught.value.message) < 1_000_000, "not ten to the eighth members"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*No such file"):
        load_spec(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="expected JSON"):
        load_spec(write(tmp_path / "spec.json", "{"))
    for text in ("[" * 100_000, '{"dimension": ' + "9" * 5000 + "}"):
        with pytest.raises(ConfigError, match="expected JSON"):
            load_spec(write(tmp_path / "spec.json", text))
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(ConfigError, match="expected UTF-8"):
        load_spec(tmp_path / "latin")
