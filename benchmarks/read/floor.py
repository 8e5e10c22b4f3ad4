"""The floor: the same answers from plain arrays in memory, with no query language before them.

Numbers for people, sorted neighbours, codes for cities, scaled vectors, weighted postings. What it
costs to get there is not counted: an engine with warm caches has the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.read.data import matrix
from benchmarks.read.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.read.data import Case, Graph
    from benchmarks.read.operations import Ask, Rows

_PORTION = 4_000_000
_FILTER_BITS = 27
_K1, _B = 1.2, 0.75


class Floor:
    def __init__(self, graph: Graph, directory: Path) -> None:
        self._people = _People(graph)
        self._count = len(graph.people)
        self._links = _Links(graph, self._people.numbers, self._count)
        self._words = _Words(graph.people["bio"].to_pylist())
        self._stamp = np.zeros(self._count, np.int32)

    @property
    def asks(self) -> Mapping[str, Ask]:
        return {
            operation.name: getattr(self, operation.name)
            for operation in OPERATIONS
            if hasattr(self, operation.name)
        }

    def rows(self, answer: Any) -> Rows:
        columns = [
            column.to_pylist() if isinstance(column, pa.Array) else np.asarray(column).tolist()
            for column in answer
        ]
        return list(zip(*columns, strict=True))

    def lookup(self, case: Case) -> Any:
        number = self._people.numbers[case.start]
        return [self._people.names[number].as_py()], [self._people.ages[number]]

    def lookups(self, case: Case) -> Any:
        found = self._numbers(case.many)
        return self._people.names.take(pa.array(found)), self._people.ages.take(found)

    def filter_count(self, case: Case) -> Any:
        return ([len(self._filtered(case))],)

    def filter_top(self, case: Case) -> Any:
        found = self._filtered(case)
        ages = self._people.ages.take(found)
        if len(found) > 20:
            least = np.partition(ages, len(ages) - 20)[len(ages) - 20]
            found, ages = found[ages >= least], ages[ages >= least]
        names = self._people.names.take(pa.array(found))
        order = np.lexsort((pc.rank(names).to_numpy(), -ages))[:20]
        return names.take(pa.array(order)), ages.take(order)

    def hop_1(self, case: Case) -> Any:
        return self._hops(case, 1)

    def hop_2(self, case: Case) -> Any:
        return self._hops(case, 2)

    def hop_3(self, case: Case) -> Any:
        return self._hops(case, 3)

    def hop_2_counts(self, case: Case) -> Any:
        starts = self._numbers(case.many)
        friends, first = self._links.after(starts), self._links.degrees.take(starts)
        owners = np.repeat(np.arange(len(starts)), first)
        owners = np.repeat(owners, self._links.degrees.take(friends))
        pairs = np.sort(owners * self._count + self._links.after(friends))
        is_new = np.concatenate(([True], pairs[1:] != pairs[:-1]))
        counts = np.bincount(pairs[is_new] // self._count, minlength=len(starts))
        found = np.flatnonzero(counts)
        return pa.array(case.many).take(pa.array(found)), counts.take(found)

    def reachable(self, case: Case) -> Any:
        start = self._people.numbers[case.start]
        seen = np.zeros(self._count, np.bool_)
        front = np.array([start])
        for _ in range(4):
            reached = self._links.after(front)
            reached = reached[~seen.take(reached)]
            seen[reached] = True
            front = self._distinct(reached)
        seen[start] = False
        return ([int(np.count_nonzero(seen))],)

    def triangles(self, _case: Case) -> Any:
        return ([self._links.triangles()],)

    def without_job(self, _case: Case) -> Any:
        return ([int(np.count_nonzero(self._links.jobs == 0))],)

    def edges_by_city(self, _case: Case) -> Any:
        counts = np.bincount(self._people.cities, self._links.degrees, self._people.city_count)
        return self._people.city_names, counts.astype(np.int64)

    def age_by_city(self, _case: Case) -> Any:
        ages = np.concatenate(([0], np.cumsum(self._people.ages.take(self._links.targets))))
        sums = np.diff(ages.take(self._links.offsets))
        size = self._people.city_count
        counts = np.bincount(self._people.cities, self._links.degrees, size)
        return self._people.city_names, np.bincount(self._people.cities, sums, size) / counts

    def vector_exact(self, case: Case) -> Any:
        return (self._people.codes.take(pa.array(self._nearest(case, None, 10))),)

    def vector_index(self, case: Case) -> Any:
        return self.vector_exact(case)

    def vector_hop_2(self, case: Case) -> Any:
        reached = self._links.after(self._links.of(self._people.numbers[case.start]))
        return (
            self._people.codes.take(pa.array(self._nearest(case, self._distinct(reached), 10))),
        )

    def bm25_top(self, case: Case) -> Any:
        return (self._people.codes.take(pa.array(self._best_texts(case)[:10])),)

    def hybrid_top(self, case: Case) -> Any:
        fused: dict[int, float] = {}
        for arm in (self._nearest(case, None, 10), self._best_texts(case)):
            for rank, number in enumerate(arm.tolist(), 1):
                fused[number] = fused.get(number, 0.0) + 1 / (60 + rank)
        best = sorted(fused, key=fused.__getitem__, reverse=True)[:10]
        return (self._people.codes.take(pa.array(best)),)

    # What answers are judged by; not timed.

    def names_within(self, case: Case, hops: int) -> set[str]:
        return set(self._people.names.take(pa.array(self.reached(case, hops))).to_pylist())

    def similarity(self, case: Case) -> dict[str, float]:
        vector = np.asarray(case.vector, np.float64)
        scores = self._people.units @ (vector / np.linalg.norm(vector))
        return dict(zip(self._people.codes.to_pylist(), scores.tolist(), strict=True))

    def relevance(self, case: Case) -> dict[str, float]:
        texts, scores = self._words.scores(case.words)
        codes = self._people.codes.take(pa.array(texts)).to_pylist()
        return dict(zip(codes, scores.tolist(), strict=True))

    def fused(self, case: Case) -> dict[str, float]:
        """Reciprocal ranks of the ten nearest and of all texts with a hit."""
        codes = self._people.codes
        scores: dict[str, float] = {}
        for arm in (self._nearest(case, None, 10), self._best_texts(case)):
            for rank, code in enumerate(codes.take(pa.array(arm)).to_pylist(), 1):
                scores[code] = scores.get(code, 0.0) + 1 / (60 + rank)
        return scores

    def reached(self, case: Case, hops: int) -> np.ndarray:
        front = np.array([self._people.numbers[case.start]])
        for _ in range(hops):
            front = self._distinct(self._links.after(front))
        return front

    def _numbers(self, codes: tuple[str, ...]) -> np.ndarray:
        return np.array([self._people.numbers[code] for code in codes])

    def _filtered(self, case: Case) -> np.ndarray:
        wanted = self._people.cities == self._people.city_numbers[case.city]
        return np.flatnonzero(wanted & (self._people.ages > case.age))

    def _hops(self, case: Case, count: int) -> Any:
        return (self._people.names.take(pa.array(self.reached(case, count)[:100])),)

    def _distinct(self, numbers: np.ndarray) -> np.ndarray:
        """Each once: the last to write its place in the stamps stays."""
        places = np.arange(len(numbers), dtype=np.int32)
        self._stamp[numbers] = places
        return numbers[self._stamp.take(numbers) == places]

    def _nearest(self, case: Case, among: np.ndarray | None, count: int) -> np.ndarray:
        vector = np.asarray(case.vector, np.float32)
        rows = self._people.units if among is None else self._people.units.take(among, axis=0)
        scores = rows @ (vector / np.linalg.norm(vector))
        if len(scores) > count:
            best = np.argpartition(-scores, count)[:count]
            best = best[np.argsort(-scores[best])]
        else:
            best = np.argsort(-scores)
        return best if among is None else among[best]

    def _best_texts(self, case: Case) -> np.ndarray:
        numbers, scores = self._words.scores(case.words)
        return numbers[np.argsort(-scores, kind="stable")]


class _People:
    def __init__(self, graph: Graph) -> None:
        self.codes = graph.people["code"].combine_chunks()
        self.names = graph.people["name"].combine_chunks()
        self.ages = graph.people["age"].to_numpy()
        self.numbers = {code: number for number, code in enumerate(self.codes.to_pylist())}
        cities = graph.people["city"].combine_chunks().dictionary_encode()
        self.cities = cities.indices.to_numpy()
        self.city_names = cities.dictionary
        self.city_count = len(cities.dictionary)
        self.city_numbers = {name: n for n, name in enumerate(cities.dictionary.to_pylist())}
        vectors = matrix(graph.people["vector"])
        self.units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class _Links:
    def __init__(self, graph: Graph, numbers: dict[str, int], count: int) -> None:
        codes = pa.array(list(numbers))
        src = pc.index_in(graph.knows["src"].combine_chunks(), codes).to_numpy()
        dst = pc.index_in(graph.knows["dst"].combine_chunks(), codes).to_numpy()
        self._keys = np.sort(src.astype(np.int64) * count + dst)
        self._count = count
        self.sources, self.targets = (
            part.astype(np.int32) for part in np.divmod(self._keys, count)
        )
        self.degrees = np.bincount(src, minlength=count)
        self.offsets = np.concatenate(([0], np.cumsum(self.degrees)))
        workers = pc.index_in(graph.works_at["src"].combine_chunks(), codes).to_numpy()
        self.jobs = np.bincount(workers, minlength=count)

    def of(self, number: int) -> np.ndarray:
        return self.targets[self.offsets[number] : self.offsets[number + 1]]

    def after(self, numbers: np.ndarray) -> np.ndarray:
        """The neighbours of all of them, one after the other."""
        counts = self.degrees.take(numbers)
        ends = np.cumsum(counts)
        places = np.repeat(self.offsets.take(numbers) - ends + counts, counts)
        places += np.arange(len(places))
        return self.targets.take(places)

    def triangles(self) -> int:
        """Paths of two edges whose ends are linked; a bitmap refuses most of them cheaply."""
        bitmap = np.zeros(1 << _FILTER_BITS, np.bool_)
        bitmap[_spread(self._keys)] = True
        paths = np.concatenate(([0], np.cumsum(self.degrees.take(self.targets))))
        found = start = 0
        while start < len(self.targets):
            stop = max(int(np.searchsorted(paths, paths[start] + _PORTION)) - 1, start + 1)
            ends = self.after(self.targets[start:stop])
            counts = np.diff(paths[start : stop + 1])
            keys = np.repeat(self.sources[start:stop].astype(np.int64) * self._count, counts)
            keys += ends
            likely = keys[bitmap.take(_spread(keys))]
            at = np.searchsorted(self._keys, likely)
            found += int(np.count_nonzero(self._keys.take(at, mode="clip") == likely))
            start = stop
        return found


def _spread(keys: np.ndarray) -> np.ndarray:
    mixed = keys * 0x9E3779B97F4A7C1
    mixed >>= 64 - _FILTER_BITS - 1
    mixed &= (1 << _FILTER_BITS) - 1
    return mixed


class _Words:
    """For each word the texts it is in, with what it adds to their score."""

    def __init__(self, texts: list[str]) -> None:
        split = [text.split() for text in texts]
        lengths = np.array([len(words) for words in split])
        owners = np.repeat(np.arange(len(texts)), lengths)
        encoded = pa.array([word for words in split for word in words]).dictionary_encode()
        pairs, counts = np.unique(
            encoded.indices.to_numpy().astype(np.int64) * len(texts) + owners, return_counts=True
        )
        words, self._texts = np.divmod(pairs, len(texts))
        self._numbers = {word: n for n, word in enumerate(encoded.dictionary.to_pylist())}
        self._offsets = np.searchsorted(words, np.arange(len(self._numbers) + 1))
        holders = np.diff(self._offsets)
        rarity = np.log((len(texts) - holders + 0.5) / (holders + 0.5) + 1)
        relative = _K1 * (1 - _B + _B * lengths / lengths.mean())
        self._weights = rarity[words] * counts * (_K1 + 1) / (counts + relative[self._texts])
        self._total = np.zeros(len(texts))

    def scores(self, words: str) -> tuple[np.ndarray, np.ndarray]:
        """Texts with a hit, and their scores."""
        hit = []
        for word in dict.fromkeys(words.split()):
            number = self._numbers[word]
            part = slice(self._offsets[number], self._offsets[number + 1])
            hit.append(self._texts[part])
            self._total[hit[-1]] += self._weights[part]
        texts = np.unique(np.concatenate(hit)) if hit else np.empty(0, np.int64)
        scores = self._total.take(texts)
        self._total[texts] = 0
        return texts, scores
