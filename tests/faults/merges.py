"""Merges, picks, reverts, resets and runs as fault tests do them: each takes a word.

The word names the branch, the commit or the run it is about. Main and the branches have changed the
same tables, each other rows.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from omnigraph_core.engine.merge_branches import merge_into
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.runs import OPERATION
from omnigraph_core.errors import BranchNotFound
from omnigraph_core.merge.model import MergeOptions
from tests.faults.writes import make_written, records

if TYPE_CHECKING:
    from omnigraph_core.history.runs import RunRecord

WORDS: Final = ("first", "second")
_CHANGED: Final = {"first": "a1", "second": "a2"}
_DELETED: Final = {"first": "d1", "second": "d2"}
_KEPT: Final = {"first": "m1", "second": "m2"}
_DROP: Final = "query drop($sku: String) { delete Part where sku = $sku }"
_FILLED: Final = "  {word}: I64 @default(7)\n"
_OWN_TYPE: Final = "\nnode {title} {{\n  code: String @key\n}}\n"


def merge(og: Omnigraph, word: str) -> None:
    og.branch_merge(word, actor="tester")


def merge_and_delete(og: Omnigraph, word: str) -> None:
    """Into a branch that has not moved; whoever asks again may find the branch gone."""
    with suppress(BranchNotFound):
        og.branch_merge(word, into="behind", delete_branch=True, actor="tester")


def merge_behind(og: Omnigraph, word: str) -> None:
    og.branch_merge(word, into="behind", actor="tester")


def cherry_pick(og: Omnigraph, word: str) -> None:
    og.cherry_pick(og.head_commit_id_for_branch(word), actor="tester")


def revert(og: Omnigraph, word: str) -> None:
    og.revert(_commit_by(og, word), actor="tester")


def reset(og: Omnigraph, word: str) -> None:
    og.branch_reset("main", _commit_by(og, word), confirm=True, actor="tester")


def publish_run(og: Omnigraph, word: str) -> None:
    og.publish_run(_run(og, word).run_id, actor="tester")


def merge_run(og: Omnigraph, word: str) -> None:
    """What publishing does before the run is told to have ended."""
    run = _run(og, word)
    merge_into(
        og._context,
        run.run_branch,
        run.target_branch,
        MergeOptions(),
        is_internal_allowed=True,
        operation=OPERATION,
        if_commit=None,
        actor="tester",
    )


def _commit_by(og: Omnigraph, actor: str) -> str:
    return next(item.graph_commit_id for item in og.list_commits() if item.actor_id == actor)


def _run(og: Omnigraph, word: str) -> RunRecord:
    return next(run for run in og.list_runs() if run.operation_hash == word)


def make_diverged(address: str) -> None:
    """Main has a commit by each word; `first` and `second` have updated, inserted and deleted."""
    og = _with_more(address)
    for word in WORDS:
        og.branch_create(word)
        og.mutate(_DROP, {"sku": _DELETED[word]}, branch=word, actor="tester")
        _change(og, word, word)
    for word in WORDS:
        og.load(records([_KEPT[word], f"m {word}"], stock=len(word)), actor=word)
    _change(og, "main", "a3")
    _record_all(og)


def make_behind(address: str) -> None:
    """`behind` is where `first` and `second` were forked from."""
    og = _with_more(address)
    for name in ("behind", *WORDS):
        og.branch_create(name)
    for word in WORDS:
        _change(og, word, word)
    _record_all(og)


def make_evolved_apart(address: str) -> None:
    """Each of main, `first` and `second` has added a filled column and a type of its own."""
    make_diverged(address)
    og = Omnigraph.open(address)
    for branch in ("main", *WORDS):
        source = og.schema_show(branch).source
        added = "stock: I64?\n" + _FILLED.format(word=f"of_{branch}")
        source = source.replace("stock: I64?\n", added) + _OWN_TYPE.format(title=branch.title())
        og.schema_apply(source, branch=branch, actor="tester")


def make_running(address: str) -> None:
    """Work is done in two runs; nothing has happened on main since."""
    og = _with_more(address)
    for word in WORDS:
        run = og.begin_run(operation_hash=word, actor="tester")
        _change(og, run.run_branch, word)


def _with_more(address: str) -> Omnigraph:
    make_written(address)
    og = Omnigraph.open(address)
    og.load(records(["d1", "d2", "m1", "m2"]), actor="tester")
    return og


def _record_all(og: Omnigraph) -> None:
    """Nothing is missing in the log of commits: no operation has to append to it at first."""
    for branch in og.branch_list():
        og.list_commits(branch)


def _change(og: Omnigraph, branch: str, word: str) -> None:
    """An old row of each table and a new one, with one commit."""
    ids = [_CHANGED.get(word, word), f"{word} on {branch[:6]}"]
    og.load(records(ids, stock=len(word)), branch=branch, actor="tester")
