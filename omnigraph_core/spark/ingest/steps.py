"""A load in steps that run apart: each may run in a process of its own, again, and after a crash.

    plan     what is loaded where, and how
    read     every record is read, checked by itself and written, as files nobody refers to
    inspect  the keys of one table meet those of the newest rows
    stage    a version of one table that nobody sees
    audit    what remains to be checked, for all tables together
    commit   one compare-and-swap for all tables

What a step finds lies in `_scratch/<run>`, so a step takes no more than the name of its run. Steps
that were left out are made up for by `commit`, as are those whose tables have moved since.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.errors import ConfigError, ConflictError
from omnigraph_core.job_report import job_facts
from omnigraph_core.spark.ingest.kept import Kept, Resumed, source_document, source_of
from omnigraph_core.spark.ingest.load import Loader
from omnigraph_core.spark.ingest.parts import within_reach
from omnigraph_core.storage.fragments import StagedFragments
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.write.batches import Places
from omnigraph_core.write.commit import WriteOptions
from omnigraph_core.write.embed import EmbedMode
from omnigraph_core.write.load_model import LoadMode, LoadOptions
from omnigraph_core.write.sources import places_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.job_report import SparkReport
    from omnigraph_core.spark.runner import Runner
    from omnigraph_core.write.load_model import LoadResult
    from omnigraph_core.write.progress import Listener
    from omnigraph_core.write.sources import Source

_RUN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")


class LoadSteps:
    """The steps of one load, known by the name of its run."""

    def __init__(self, context: GraphContext, branch: str, run: str, runner: Runner) -> None:
        """
        Raises:
            ConfigError: no run can have such a name.
        """
        if _RUN.fullmatch(run) is None:
            raise ConfigError(
                f"{run!r} cannot name a run",
                hint="give up to 80 letters, digits, `_` and `-` of ASCII",
            )
        self._context = context
        self._branch = branch
        self._run = run
        self._runner = runner
        self._scratch = Scratch(context.store, run)
        self._kept = Kept(context.store, run)

    def plan(self, sources: Sequence[Source], options: LoadOptions) -> None:
        """Say what the run loads. The same plan again is nothing new.

        The plan names the files of directories and patterns, so every later step reads the same.

        Raises:
            ConflictError: the run has another plan, also if a directory has other files now.
            ConfigError: files for rejects, dry runs and keys of callers do not go with steps.
        """
        write = options.write
        if options.rejects is not None or options.is_dry_run or write.idempotency_key is not None:
            raise ConfigError(
                "a load in steps takes no file for rejects, no dry run and no idempotency key",
                hint="the name of the run is its key",
            )
        plan = {
            "branch": write.branch,
            "if_commit": write.if_commit,
            "actor": write.actor,
            "mode": str(options.mode),
            "embed": str(options.embed),
            "skip_bad": options.is_skipping_bad,
            "only": None if options.only is None else list(options.only),
            "given": [_about(source) for source in sources],
        }
        known = self._kept.plan()
        if known is None:
            reached = [within_reach(source, self._scratch) for source in sources]
            documents = [source_document(one) for one in reached]
            self._kept.keep_plan(plan | {"sources": documents, "units": places_of(sources).units})
        elif any(known[name] != value for name, value in plan.items()):
            raise ConflictError(
                f"the run `{self._run}` loads something else",
                hint="choose another name; `load_steps` goes on with the files of the first plan",
            )

    def read(self, progress: Listener | None = None) -> Mapping[str, int]:
        """Read and check every record; by table key the rows that go on.

        Problems of records are told by `commit`, with those of rows together.
        """
        with self._facts():
            return self._loader(progress).read()

    def written_bytes(self) -> Mapping[str, int]:
        """By table key the size of the files that `read` has written; none before it has."""
        known = self._kept.read()
        sizes: Counter[str] = Counter()
        for part in [] if known is None else known[1]:
            for table_key, files in part.files.items():
                sizes[table_key] += StagedFragments.from_json(files).byte_count
        return sizes

    def problem_count(self) -> int:
        """How many problems `read` has found; with any, there is nothing to stage."""
        with self._facts():
            return self._loader().problem_count()

    def inspect(self, table_key: str) -> int:
        """Compare the keys of a table's rows with the newest state; how many rows are suspected."""
        with self._facts(table_key):
            return self._loader().inspect(table_key)

    def stage(self, table_key: str) -> int:
        """Stage a version of a table with its rows; the rows that version has, if any is staged."""
        with self._facts(table_key):
            change = self._loader().stage(table_key)
        return 0 if change is None else change.row_count

    def audit(self) -> None:
        """Check all tables together against the newest state.

        Raises:
            DataError: records are malformed or break a rule; carries all of them.
        """
        with self._facts():
            self._loader().audit()
        self._kept.keep_audited()

    def commit(self) -> LoadResult:
        """Publish all tables with one commit; repeated, the result of the first time.

        Raises:
            DataError: records are malformed or break a rule; carries all of them.
            ConflictError: others changed the branch meanwhile.
        """
        with self._facts() as report:
            loaded = self._loader().run()
        self.clear()
        return replace(loaded, spark=report.result)

    def _facts(self, table_key: str | None = None) -> AbstractContextManager[SparkReport]:
        return job_facts(operation="load", run=self._run, branch=self._branch, type=table_key)

    def clear(self) -> None:
        """Remove what the steps have left; the plan stays, so that a repeat is known as one."""
        plan = self._kept.plan()
        self._scratch.clear()
        if plan is not None:
            self._kept.keep_plan(plan)

    def _planned(self) -> dict[str, Any]:
        plan = self._kept.plan()
        if plan is None:
            raise ConfigError(
                f"there is no run `{self._run}`",
                hint="plan it first; cleanup removes what runs left longer ago than its grace",
            )
        if plan["branch"] != self._branch:
            raise ConfigError(
                f"the run `{self._run}` does not load into `{self._branch}`",
                hint=f"its branch is `{plan['branch']}`",
            )
        return plan

    def _loader(self, progress: Listener | None = None) -> Loader:
        plan = self._planned()
        options = LoadOptions(
            LoadMode(plan["mode"]),
            WriteOptions(plan["branch"], plan["if_commit"], self._run, plan["actor"]),
            EmbedMode(plan["embed"]),
            is_skipping_bad=plan["skip_bad"],
            progress=progress,
            only=None if plan["only"] is None else tuple(plan["only"]),
        )
        sources = [source_of(one) for one in plan["sources"]]
        digest = hashlib.sha256(json.dumps(plan["given"]).encode()).hexdigest()
        places = Places(tuple(source.name for source in sources), tuple(plan["units"]))
        resumed = Resumed(self._kept, digest, places)
        return Loader(self._context, sources, options, self._runner, self._scratch, resumed)


def _about(source: Source) -> list[object]:
    """What tells a source of a plan from another."""
    return [source.name, str(source.format), source.type_name, source.size]
