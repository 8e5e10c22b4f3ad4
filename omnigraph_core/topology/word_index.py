"""The words of a column of texts as arrays: texts come in, words by row and rows by word go out.

Rows are dense numbers. A form is a word as it was written, up to case and accents: its raw text,
its stem, and whether searches index it. Numbers of texts and forms only ever grow: an index of more
rows keeps those of the index it was extended from. No array is ever written to.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.storage.words import analyse_pieces
from omnigraph_core.topology.lexicon import Lexicon, extended_lexicon
from omnigraph_core.topology.pieces import cut_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from omnigraph_core.topology.pieces import Cut

_SCANNED: Final = 4 << 20
"""Words looked at in one go, so that no scan needs memory beyond that."""
_FEW: Final = 1_000
"""Words whose new rows are put in one by one rather than by copying all to new places."""
_RARE: Final = 32
"""Where one word in so many is a hit, hits are counted rather than looked up one by one."""


@dataclass(frozen=True, slots=True)
class WordIndex:
    """Row `r` has the forms `stream[stream_offsets[r]:stream_offsets[r + 1]]`, in the text's order.

    The text `t` as an indexed word is in the rows
    `posting_rows[posting_offsets[t]:posting_offsets[t + 1]]`, ascending.
    """

    lexicon: Lexicon
    form_raw: np.ndarray
    """int32, a text by form."""
    form_stem: np.ndarray
    """int32, a text by form."""
    form_is_indexed: np.ndarray
    stream: np.ndarray
    """int32, forms."""
    stream_offsets: np.ndarray
    """int64."""
    posting_offsets: np.ndarray
    """int64, by text."""
    posting_rows: np.ndarray
    """int32."""
    posting_counts: np.ndarray
    """int32, how often the word is in that row, beside `posting_rows`."""
    lengths: np.ndarray
    """int32, indexed words by row; -1 where the text is null."""

    @property
    def count(self) -> int:
        return len(self.lengths)

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays().values())

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything by name, to be kept in a file."""
        own = {item.name: getattr(self, item.name) for item in fields(self)[1:]}
        return {**self.lexicon.arrays(), **own}

    @staticmethod
    def of_arrays(arrays: Mapping[str, np.ndarray]) -> WordIndex:
        own = {item.name: arrays[item.name] for item in fields(WordIndex)[1:]}
        return WordIndex(Lexicon.of_arrays(arrays), **own)

    @property
    def is_whole(self) -> bool:
        """Whether the arrays are of lengths that fit each other, as read from a file."""
        forms = {len(self.form_raw), len(self.form_stem), len(self.form_is_indexed)}
        return (
            self.lexicon.is_whole
            and len(forms) == 1
            and _fit(self.stream_offsets, self.count, self.stream)
            and _fit(self.posting_offsets, len(self.lexicon), self.posting_rows)
            and len(self.posting_rows) == len(self.posting_counts)
        )

    def postings(self, text: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows that have a text as an indexed word, and how often each."""
        start, stop = self.posting_offsets[text], self.posting_offsets[text + 1]
        return self.posting_rows[start:stop], self.posting_counts[start:stop]

    def rows_with(self, is_wanted: np.ndarray) -> np.ndarray:
        """Which rows have a form that is wanted: a mask by form comes in, one by row goes out."""
        is_found = np.zeros(self.count, np.bool_)
        for start in range(0, len(self.stream), _SCANNED):
            is_hit = is_wanted.take(self.stream[start : start + _SCANNED])
            if np.count_nonzero(is_hit) * _RARE < len(is_hit):
                is_found[self.rows_at(np.flatnonzero(is_hit) + start)] = True
            else:
                bounds = self.stream_offsets.clip(start, start + len(is_hit)) - start
                before = _offsets(is_hit).take(bounds)
                is_found |= before[1:] > before[:-1]
        return is_found

    def rows_at(self, places: np.ndarray) -> np.ndarray:
        """The rows that ascending places of the stream belong to."""
        rows: np.ndarray = np.searchsorted(self.stream_offsets, places, side="right") - 1
        return rows


def empty_index() -> WordIndex:
    """The index of no rows: what every other one is extended from."""
    none = np.empty(0, np.int32)
    start = np.zeros(1, np.int64)
    is_none = np.empty(0, np.bool_)
    lexicon = Lexicon(np.empty(0, np.uint8), start, none)
    return WordIndex(lexicon, none, none, is_none, none, start, start, none, none, none)


def extended(
    base: WordIndex, batches: Iterable[pa.StringArray], check: Callable[[], None]
) -> WordIndex:
    """The index with the rows of more texts after its own: only those are analysed.

    Args:
        check: asked between portions of the work; it may raise.
    """
    cuts, pieces = cut_texts(batches, check)
    if not cuts:
        return base
    words = analyse_pieces(pieces, check)
    lexicon, (raw, stems) = extended_lexicon(base.lexicon, (words.raw, words.stems))
    forms, is_indexed, form_of_word = _extended_forms(base, raw, stems, words.is_indexed)
    form_word = np.where(is_indexed, forms[1], -1)
    parts: list[_Part] = []
    rows = base.count
    for cut in cuts:
        check()
        parts.append(_part(cut, words.counts, form_of_word, form_word, rows))
        rows += len(cut.offsets) - 1
    check()
    offsets, posting_rows, counts = _postings(base, len(lexicon), [part.run for part in parts])
    return WordIndex(
        lexicon,
        *forms,
        is_indexed,
        np.concatenate([base.stream, *(part.stream for part in parts)]),
        _joined_offsets([base.stream_offsets, *(part.offsets for part in parts)]),
        offsets,
        posting_rows,
        counts,
        np.concatenate([base.lengths, *(part.lengths for part in parts)]),
    )


def selected_rows(base: WordIndex, is_kept: np.ndarray) -> WordIndex:
    """The index of some of the rows, numbered anew in the same order."""
    if is_kept.all():
        return base
    sizes = np.diff(base.stream_offsets)
    is_kept_posting = is_kept.take(base.posting_rows)
    numbers = (np.cumsum(is_kept) - 1).astype(np.int32)
    return WordIndex(
        base.lexicon,
        base.form_raw,
        base.form_stem,
        base.form_is_indexed,
        base.stream[np.repeat(is_kept, sizes)],
        _offsets(sizes[is_kept]),
        _offsets(is_kept_posting).take(base.posting_offsets),
        numbers.take(base.posting_rows[is_kept_posting]),
        base.posting_counts[is_kept_posting],
        base.lengths[is_kept],
    )


def _extended_forms(
    base: WordIndex, raw: np.ndarray, stems: np.ndarray, is_indexed: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """Raw texts and stems by form, whether indexed, and the form of each new word."""
    known = _keys(base.form_raw, base.form_stem, base.form_is_indexed)
    order = np.argsort(known)
    keys, places = np.unique(_keys(raw, stems, is_indexed), return_inverse=True)
    found = np.searchsorted(known, keys, sorter=order)
    numbers = order.take(found, mode="clip") if len(known) else np.zeros(len(keys), np.int64)
    is_new = known.take(numbers) != keys if len(known) else np.ones(len(keys), np.bool_)
    added = keys[is_new]
    numbers[is_new] = len(known) + np.arange(len(added))
    forms = (
        np.concatenate([base.form_raw, (added >> 32).astype(np.int32)]),
        np.concatenate([base.form_stem, ((added & 0xFFFF_FFFF) >> 1).astype(np.int32)]),
    )
    flags = np.concatenate([base.form_is_indexed, (added & 1).astype(np.bool_)])
    return forms, flags, numbers.astype(np.int32).take(places)


def _keys(raw: np.ndarray, stems: np.ndarray, is_indexed: np.ndarray) -> np.ndarray:
    packed: np.ndarray = raw.astype(np.int64) << 32
    packed |= stems.astype(np.int64) << 1
    packed |= is_indexed
    return packed


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows by word for some neighbouring rows: `words` ascending, `sizes` rows of each."""

    words: np.ndarray
    sizes: np.ndarray
    rows: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True, slots=True)
class _Part:
    stream: np.ndarray
    offsets: np.ndarray
    lengths: np.ndarray
    run: _Run


def _part(
    cut: Cut, counts: np.ndarray, form_of_word: np.ndarray, form_word: np.ndarray, first_row: int
) -> _Part:
    stream, offsets = _stream(cut, counts, form_of_word)
    words = form_word.take(stream)
    is_word = words >= 0
    before = _offsets(is_word)
    lengths = np.diff(before.take(offsets)).astype(np.int32)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    run = _run(words[is_word], rows, len(lengths), first_row)
    if cut.is_null is not None:
        lengths[cut.is_null] = -1
    return _Part(stream, offsets, lengths, run)


def _stream(
    cut: Cut, counts: np.ndarray, form_of_word: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The forms of each text in place of its pieces, which may have any number of words."""
    firsts = _offsets(counts)[:-1]
    sizes = counts.take(cut.numbers)
    bounds = _offsets(sizes)
    starts = firsts.take(cut.numbers)
    if bounds[-1] == len(sizes) and (sizes == 1).all():
        return form_of_word.take(starts), cut.offsets
    words = np.repeat(starts - bounds[:-1], sizes) + np.arange(bounds[-1])
    return form_of_word.take(words), bounds.take(cut.offsets)


def _run(words: np.ndarray, rows: np.ndarray, row_count: int, first_row: int) -> _Run:
    """Sorted by word, then row, in one sort of packed numbers."""
    packed = words.astype(np.int64) * row_count + rows
    packed.sort()
    firsts = _firsts(packed)
    counts = np.diff(firsts, append=len(packed)).astype(np.int32)
    found, places = np.divmod(packed.take(firsts), max(row_count, 1))
    heads = _firsts(found)
    sizes = np.diff(heads, append=len(found))
    return _Run(found.take(heads), sizes, (places + first_row).astype(np.int32), counts)


def _postings(
    base: WordIndex, text_count: int, runs: Sequence[_Run]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if len(runs) == 1 and len(runs[0].words) <= _FEW:
        return _spliced(base, text_count, runs[0])
    return _merged(text_count, [_run_of(base), *runs])


def _spliced(
    base: WordIndex, text_count: int, run: _Run
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A few words with more rows: what lies between them is copied as it is."""
    sizes = np.zeros(text_count, np.int64)
    sizes[: len(base.posting_offsets) - 1] = np.diff(base.posting_offsets)
    sizes[run.words] += run.sizes
    cuts = base.posting_offsets.take(run.words + 1, mode="clip")
    bounds = _offsets(run.sizes)[1:-1]
    return (
        _offsets(sizes),
        _interleaved(np.split(base.posting_rows, cuts), np.split(run.rows, bounds)),
        _interleaved(np.split(base.posting_counts, cuts), np.split(run.counts, bounds)),
    )


def _interleaved(pieces: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> np.ndarray:
    """A piece, another, the next piece; a piece comes last."""
    between = [item for pair in zip(pieces[:-1], others, strict=False) for item in pair]
    return np.concatenate([*between, pieces[-1]])


def _run_of(index: WordIndex) -> _Run:
    sizes = np.diff(index.posting_offsets)
    words = np.flatnonzero(sizes)
    return _Run(words, sizes.take(words), index.posting_rows, index.posting_counts)


def _merged(text_count: int, runs: Sequence[_Run]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One index of runs whose rows follow each other: no sort, each entry goes to its place."""
    sizes = np.zeros(text_count, np.int64)
    for run in runs:
        sizes[run.words] += run.sizes
    offsets = _offsets(sizes)
    rows = np.empty(offsets[-1], np.int32)
    counts = np.empty(offsets[-1], np.int32)
    next_place = offsets[:-1].copy()
    for run in runs:
        shifts = next_place.take(run.words) - _offsets(run.sizes)[:-1]
        places = np.repeat(shifts, run.sizes) + np.arange(len(run.rows))
        rows[places] = run.rows
        counts[places] = run.counts
        next_place[run.words] += run.sizes
    return offsets, rows, counts


def _firsts(values: np.ndarray) -> np.ndarray:
    """Where a sorted array begins another value."""
    is_first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def _fit(offsets: np.ndarray, count: int, items: np.ndarray) -> bool:
    return len(offsets) == count + 1 and offsets[-1] == len(items)


def _offsets(sizes: np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _joined_offsets(parts: Sequence[np.ndarray]) -> np.ndarray:
    return _offsets(np.concatenate([np.diff(part) for part in parts]))
