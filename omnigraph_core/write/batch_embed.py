"""A backfill by the provider's batch API: pending texts go out as files, vectors come back beside
the graph.

Answers go to where every backfill looks for vectors that were paid for, so the backfill that
follows asks only for what is left, and publishes. What was submitted is recorded at once: a process
that is killed and started again waits for the same batches. Nothing here holds a lease or a version
of a table while it waits.
"""

from __future__ import annotations

import logging
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.constants import EMBED_BATCH_FILE_BYTES, EMBED_BATCH_FILE_TEXTS
from omnigraph_core.embedding.batch_client import Batch, BatchState
from omnigraph_core.embedding.batch_jobs import BatchJobs, wait
from omnigraph_core.embedding.config import Provider
from omnigraph_core.embedding.retry import masked
from omnigraph_core.errors import EmbeddingError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.write.batch_answers import Collector
from omnigraph_core.write.batch_records import BatchRecords
from omnigraph_core.write.paid_vectors import KEY_BYTES, PaidVectors, paid_vectors
from omnigraph_core.write.pending_texts import (
    KeySet,
    iter_pending_texts,
    key_numbers,
    without_cached,
)
from omnigraph_core.write.progress import Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.embedding.client import Ask
    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.write.batch_records import BatchRecord
    from omnigraph_core.write.pending_texts import PendingText
    from omnigraph_core.write.progress import Reporter

_log = logging.getLogger(__name__)

_FIRST_WAIT: Final = 1 / 16
"""Of the longest wait between two looks at a batch."""
_FAILED_LOOKS: Final = 10
"""In a row, after which a service that does not answer is given up: a day has short outages."""
_BUFFERED_LINES: Final = 1_000
_SHOWN_ROWS: Final = 1_000
"""Rows that an error names at most."""


def embed_in_batches(
    context: GraphContext, branch: str, embedder: Embedder, reporter: Reporter
) -> None:
    """Have the batch API make the vectors that a branch lacks, if they are enough; wait for them.

    Batches that an earlier backfill has submitted are collected, however few they are.

    Raises:
        EmbeddingError: a batch or some of its texts failed; vectors that came are kept.
    """
    ref, state = context.head(branch)
    nodes = accepted_catalog(state.snapshot.schema).nodes.values()
    if not any(node.embeddings for node in nodes) or embedder.config.provider is Provider.MOCK:
        return
    config, incarnation = embedder.config, ref.incarnation
    records = BatchRecords(context.store, incarnation)
    known = records.read_all(config.base_url)
    if config.batch_from is None and not known:
        return
    paid = PaidVectors(paid_vectors(context.store, incarnation))
    with closing(BatchJobs(config)) as jobs:
        _Batches(context, branch, embedder, records, paid, jobs, reporter).run(known)


class _Batches:
    """The batches of one backfill."""

    def __init__(
        self,
        context: GraphContext,
        branch: str,
        embedder: Embedder,
        records: BatchRecords,
        paid: PaidVectors,
        jobs: BatchJobs,
        reporter: Reporter,
    ) -> None:
        self._context = context
        self._branch = branch
        self._embedder = embedder
        self._config = embedder.config
        self._records = records
        self._paid = paid
        self._jobs = jobs
        self._reporter = reporter
        self._open: list[BatchRecord] = []
        self._failed_looks = 0
        """In a row."""
        self._problems: list[str] = []
        """What became of batches that did not complete."""
        self._deferred: list[str] = []
        """The same of those that found the queue of the account full."""
        self._is_retryable = True
        self._refused: dict[bytes, str] = {}
        """Why texts got no vector and would get none if they were sent again, by key."""

    def run(self, known: Sequence[BatchRecord]) -> None:
        self._open = list(self._adopted(known))
        self._submit()
        # A full queue takes more once batches of ours have left it.
        while self._finish() and self._deferred:
            self._deferred.clear()
            self._submit()
        self._raise_problems()

    def _adopted(self, known: Sequence[BatchRecord]) -> Iterator[BatchRecord]:
        """The batches of earlier backfills. Of one that was killed while it submitted, only the
        provider knows whether there is a batch."""
        for record in known:
            if record.batch_id is not None:
                yield record
                continue
            batch = self._jobs.find(record.label)
            if batch is None:
                self._records.remove(record)
            else:
                yield self._records.mark_submitted(record, batch.id)

    def _submit(self) -> None:
        """Submit the texts that no batch covers, if the texts without vectors are enough."""
        least = self._config.batch_from
        snapshot = self._context.head(self._branch)[1].snapshot
        if least is None or not self._has_pending(snapshot, least):
            return
        with tempfile.TemporaryDirectory(prefix="omnigraph-batch-") as folder:
            files = _Files(Path(folder), self._jobs)
            for ask, rows in self._iter_uncovered(snapshot):
                for file in files.add(ask, rows):
                    self._submit_file(file)
            for file in files.end():
                self._submit_file(file)

    def _has_pending(self, snapshot: Snapshot, least: int) -> bool:
        count = sum(record.count for record in self._open)
        for _, rows in self._iter_uncovered(snapshot):
            if count >= least:
                break
            count += len(rows)
        return count >= least

    def _iter_uncovered(self, snapshot: Snapshot) -> Iterator[tuple[Ask, list[PendingText]]]:
        """Texts without a vector that no batch covers, each once."""
        covered = [self._records.read_keys(record)[:, 0] for record in self._open]
        refused = key_numbers(list(self._refused))
        seen = KeySet(np.concatenate([self._paid.key_numbers(), refused, *covered]))
        for ask, rows in iter_pending_texts(self._context, snapshot, self._embedder):
            yield ask, without_cached(ask, seen.take_new(rows), self._embedder)

    def _submit_file(self, file: _File) -> None:
        file.flush()
        uploaded = self._jobs.upload(file.path)
        # Recorded before it exists: whoever finds the record looks for a batch with its label.
        record = self._records.add_planned(
            self._config.base_url, file.ask, file.keys, file=uploaded
        )
        batch = self._jobs.create(uploaded, record.label, file.ask)
        self._open.append(self._records.mark_submitted(record, batch.id))
        file.path.unlink()
        _log.info("submitted %d texts as batch %s", record.count, batch.id)

    def _finish(self) -> int:
        """Wait for all batches and collect them; how many vectors came."""
        answered = 0
        seconds = self._config.batch_poll * _FIRST_WAIT
        while self._open:
            for record in tuple(self._open):
                batch = self._look(record)
                if self._failed_looks:
                    break  # in an outage the others would only fail, too
                if batch is not None and batch.state is BatchState.RUNNING:
                    continue
                if batch is not None:
                    answered += self._collect(record, batch)
                self._open.remove(record)
            if self._open:
                wait(seconds)
                seconds = min(2 * seconds, self._config.batch_poll)
        return answered

    def _look(self, record: BatchRecord) -> Batch | None:
        """A batch; None if another backfill has collected it meanwhile."""
        id = record.batch_id or ""
        try:
            batch = self._jobs.try_get(id)
        except EmbeddingError as problem:
            self._failed_looks += 1
            if not problem.retryable or self._failed_looks >= _FAILED_LOOKS:
                raise
            _log.warning("%s; it is asked again later", problem.message)
            return Batch(id, BatchState.RUNNING)
        self._failed_looks = 0
        if batch is None and self._records.exists(record):
            raise self._lost(record, f"batch {record.batch_id}")
        return batch

    def _collect(self, record: BatchRecord, batch: Batch) -> int:
        """Keep the vectors of a batch that has ended; how many they are."""
        keys = self._records.read_keys(record)
        if not len(keys):  # another backfill has collected it meanwhile
            return 0
        collector = Collector(self._paid, self._jobs, record, keys)
        with tempfile.TemporaryDirectory(prefix="omnigraph-batch-") as folder:
            for result in batch.results:
                path = Path(folder) / "answers.jsonl"
                if self._jobs.try_download(result, path):
                    collector.add_file(path)
                elif self._records.exists(record):
                    raise self._lost(record, f"the answers {result} of batch {batch.id}")
                else:
                    return 0
                path.unlink()
        unanswered = collector.end(is_complete=batch.state is BatchState.COMPLETED)
        self._refused |= collector.refused
        self._problems += [f"batch {batch.id}, {problem}" for problem in collector.problems]
        if batch.state is not BatchState.COMPLETED:
            reason = f" ({batch.reason})" if batch.reason else ""
            problems = self._deferred if batch.is_queue_full else self._problems
            problems.append(
                f"batch {batch.id} {batch.state}{reason}: "
                f"{unanswered} of {record.count} texts have no vector"
            )
            self._is_retryable &= batch.state is BatchState.EXPIRED or batch.is_queue_full
        self._records.remove(record)
        for name in (record.file, *batch.results):
            if (failure := self._jobs.delete_file(name)) is not None:
                _log.info("the provider keeps file %s: %s", name, failure.message)
        self._reporter.add(Step.BATCHED, collector.answered)
        _log.info("batch %s %s: %d vectors", batch.id, batch.state, collector.answered)
        return collector.answered

    def _lost(self, record: BatchRecord, what: str) -> EmbeddingError:
        return EmbeddingError(
            f"{self._config.provider} does not have {what}, which covers {record.count} texts",
            hint="check that the key belongs to the account that submitted it; if it is gone, "
            f"remove {self._records.uri(record)} to submit its texts again",
        )

    def _raise_problems(self) -> None:
        problems = [*self._problems, *self._deferred]
        failed = self._failed_rows()
        if failed:
            problems.append(f"vectors of {len(failed)} rows could not be made:")
            problems += failed[:_SHOWN_ROWS]
            if len(failed) > _SHOWN_ROWS:
                problems.append(f"  and {len(failed) - _SHOWN_ROWS} more")
        if problems:
            message = masked("\n".join(problems), self._config.key)
            raise EmbeddingError(
                f"{self._config.provider}: {message}",
                hint="the other vectors are kept; start the backfill again to ask for these alone",
                retryable=self._is_retryable and not failed,
            )

    def _failed_rows(self) -> list[str]:
        """The rows of the texts that were refused, and why."""
        if not self._refused:
            return []
        snapshot = self._context.head(self._branch)[1].snapshot
        return [
            f"  {row.type_name} {row.id!r}, {row.property}: {reason}"
            for _, rows in iter_pending_texts(self._context, snapshot, self._embedder)
            for row in rows
            if (reason := self._refused.get(row.key[:KEY_BYTES])) is not None
        ]


class _File:
    """Requests of one batch, on the disk of this machine."""

    def __init__(self, path: Path, ask: Ask) -> None:
        self.path = path
        self.ask = ask
        self.keys: list[bytes] = []
        self._bytes = 0
        self._lines: list[bytes] = []

    def has_room(self, line: bytes) -> bool:
        return (
            len(self.keys) < EMBED_BATCH_FILE_TEXTS.value
            and self._bytes + len(line) <= EMBED_BATCH_FILE_BYTES.value
        )

    def add(self, key: bytes, line: bytes) -> None:
        self.keys.append(key[:KEY_BYTES])
        self._bytes += len(line)
        self._lines.append(line)
        if len(self._lines) >= _BUFFERED_LINES:
            self.flush()

    def flush(self) -> None:
        with self.path.open("ab") as content:
            content.writelines(self._lines)
        self._lines.clear()


class _Files:
    """Texts as files of bounded size, one at a time for each model and dimension."""

    def __init__(self, folder: Path, jobs: BatchJobs) -> None:
        self._folder = folder
        self._jobs = jobs
        self._count = 0
        self._current: dict[Ask, _File] = {}

    def add(self, ask: Ask, rows: Sequence[PendingText]) -> Iterator[_File]:
        """Add texts; the files that are full by that."""
        for row in rows:
            line = self._jobs.request_line(row.key[:KEY_BYTES].hex(), row.text, ask)
            file = self._current.get(ask)
            if file is not None and not file.has_room(line):
                yield self._current.pop(ask)
                file = None
            if file is None:
                file = self._current[ask] = self._begin(ask)
            file.add(row.key, line)

    def end(self) -> Iterator[_File]:
        """The files that are not full."""
        yield from self._current.values()

    def _begin(self, ask: Ask) -> _File:
        self._count += 1
        return _File(self._folder / f"texts-{self._count}.jsonl", ask)
