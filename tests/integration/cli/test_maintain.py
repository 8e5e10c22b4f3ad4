"""`omnigraph optimize`, `cleanup` and `verify`."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import typer

from omnigraph_core.cli.commands.maintain import parse_duration
from omnigraph_core.settings import PUBLISH_LEASE
from tests.integration.cli.process import omnigraph
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.integration.cli.conftest import Call

MORE = b'{"type":"Bin","data":{"code":"B2"}}'
SAME = b'{"type":"Bin","data":{"code":"A1"}}'


def test_optimize(folder: Path, full: Omnigraph) -> None:
    full.load(MORE, mode="merge")
    done = omnigraph("optimize", "stock", "--as", "ada", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "optimized stock branch main: 3 tables",
        "edge:Holds fragments_removed=0 fragments_added=0 "
        "indexes_built=id_btree, src_btree, dst_btree",
        "node:Bin fragments_removed=2 fragments_added=1 indexes_built=id_btree, code_inverted",
        "node:Part fragments_removed=0 fragments_added=0 indexes_built=id_btree, sku_inverted",
    ]
    commit = full.snapshot().commit
    assert (commit.operation, commit.actor_id) == ("optimize", "ada")
    again = omnigraph("optimize", "--uri", "stock", folder=folder)
    assert again.stdout.splitlines()[1:] == [
        "edge:Holds no-op: nothing to do",
        "node:Bin no-op: nothing to do",
        "node:Part no-op: nothing to do",
    ]
    assert full.snapshot().commit == commit


def test_optimize_a_branch(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    code, output, errors = call("optimize", "stock", "--branch", "review", "--json")
    assert (code, errors) == (0, "")
    document = json.loads(output)
    assert (document["uri"], document["branch"]) == ("stock", "review")
    assert document["tables"][0] == {
        "table_key": "edge:Holds",
        "fragments_removed": 0,
        "fragments_added": 0,
        "indexes_built": [],
        "committed": False,
        "reason": "inherited",
    }
    output = call("optimize", "stock", "--branch", "review", "--include-inherited", "--json")[1]
    assert all(table["committed"] for table in json.loads(output)["tables"])
    assert full.snapshot().manifest_version == 2


def test_cleanup_spares_what_is_young(
    call: Call, full: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    full.load(SAME, mode="overwrite")
    monkeypatch.setenv(PUBLISH_LEASE.name, "0.0001")
    for grace in ((), ("--grace", "1h30m")):
        code, output, hint = call("cleanup", "stock", "--keep", "1", "--older-than", "0", *grace)
        assert code == 0
        assert output.splitlines()[0] == "would remove 0 versions and 0 bytes of stock"
        assert "nothing was removed" in hint
    document = json.loads(call("cleanup", "stock", "--older-than", "2w", "--json")[1])
    assert (document["keep_versions"], document["older_than_secs"]) == (None, 1_209_600)
    assert full.snapshot_at_version(1)


def test_cleanup_shows_what_it_then_removes(
    call: Call, full: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        full.load(SAME, mode="overwrite")
    full.branch_create("review")
    full.load(SAME, mode="overwrite", branch="review")
    full.load(SAME, mode="overwrite", branch="review")
    monkeypatch.setenv(PUBLISH_LEASE.name, "0.0001")
    # What is younger than a second stays; durations are whole seconds.
    monkeypatch.setattr(
        "omnigraph_core.cli.commands.maintain.parse_duration", lambda _: timedelta(milliseconds=1)
    )
    arguments = ("cleanup", "stock", "--keep", "1", "--grace", "1s")
    code, shown, hint = call(*arguments)
    assert code == 0
    assert "nothing was removed: repeat with --confirm" in hint
    lines = shown.splitlines()
    assert lines[0].startswith("would remove 4 versions and ")
    assert "branch main old_versions_removed=3 versions_kept=1" in lines
    assert full.snapshot_at_version(1)

    chosen = call(*arguments, "--branch", "review")[1].splitlines()
    assert chosen[0].startswith("would remove 1 version and ")
    assert "branch main old_versions_removed=0 versions_kept=4" in chosen

    planned = json.loads(call(*arguments, "--json")[1])
    done = json.loads(call(*arguments, "--json", "--confirm")[1])
    assert done == {**planned, "is_preview": False}
    (table,) = [item for item in done["tables"] if item["table_key"] == "node:Bin"]
    assert table["bytes_removed"] > 0
    assert table["old_versions_removed"] == 3
    assert done["bytes_removed"] == sum(item["bytes_removed"] for item in done["tables"])
    assert call(*arguments, "--confirm")[1].splitlines()[0] == (
        "removed 0 versions and 0 bytes of stock"
    )
    assert call("verify", "stock", "--deep")[0] == 0


def test_verify(folder: Path, full: Omnigraph) -> None:
    sound = omnigraph("verify", "stock", folder=folder)
    assert (sound.returncode, sound.stderr) == (0, "")
    assert sound.stdout.splitlines()[0] == "sound"
    full.branch_create("review")
    entry = full.snapshot().table("node:Part")
    table = full.table(full.snapshot(), "node:Part")
    name = table.dataset.get_fragments()[0].metadata.files[0].path
    (folder / "stock" / entry.location / "data" / name).unlink()
    broken = omnigraph("verify", "stock", "--deep", folder=folder)
    assert (broken.returncode, broken.stderr) == (1, "")
    first, *_, verdict, _ = broken.stdout.splitlines()
    assert first.startswith("error file.missing ")
    assert name in first
    assert verdict == "damaged: 1 error"
    document = json.loads(omnigraph("verify", "stock", "--json", folder=folder).stdout)
    assert (document["uri"], document["is_sound"]) == ("stock", False)
    assert document["findings"][0]["code"] == "file.missing"


def test_verify_a_branch(call: Call, full: Omnigraph) -> None:
    full.branch_create("review")
    code, output, _ = call("verify", "stock", "--branch", "review", "--json")
    assert code == 0
    document = json.loads(output)
    assert (document["branch"], document["checked"]["branches"]) == ("review", 1)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["cleanup", "stock"], 2, "give --keep, --older-than or both"),
        (["cleanup", "stock", "--keep", "0"], 2, "--keep"),
        (["cleanup", "stock", "--older-than", "1.5h"], 2, "no duration"),
        (["cleanup", "stock", "--keep", "1", "--grace", "soon"], 2, "no duration"),
        (["cleanup", "stock", "--keep", "1", "--grace", "1s"], 1, "writers need twice"),
        (["cleanup", "stock", "--keep", "1", "--branch", "nope"], 1, "no branch `nope`"),
        (["optimize"], 2, "URI must be provided"),
        (["optimize", "stock", "--branch", "nope"], 1, "no branch `nope`"),
        (["verify", "stock", "--branch", "nope"], 1, "no branch `nope`"),
        (["verify", "nowhere"], 1, "nowhere"),
    ],
)
def test_mistakes(call: Call, arguments: list[str], code: int, text: str) -> None:
    ended, output, errors = call(*arguments)
    assert (ended, output) == (code, "")
    assert text in errors


@each(
    ("text", "seconds"),
    [
        ("90", 90),
        ("0s", 0),
        ("30m", 1800),
        ("12h", 43_200),
        ("7d", 604_800),
        ("2w", 1_209_600),
        ("1h30m", 5400),
        ("1w2d3h4m5s", 788_645),
    ],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@each("text", ["", "1.5h", "-1s", "h", "1y", "1h 30m", "1H", "٣s", "m5", "5 ", "9" * 400, "1h9"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"duration|too long"):
        parse_duration(text)
