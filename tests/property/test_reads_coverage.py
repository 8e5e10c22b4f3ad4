"""What the comparison of engine and oracle is worth: random reads use everything the language has,
most of them find something, and the oracle says what the clauses say.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph_core.ir.lower import lower_match
from omnigraph_core.query.ast import Read
from omnigraph_core.query.checked import CheckedRead
from tests.support.cases import each
from tests.support.denotation import matches
from tests.support.oracle import Given, iter_rows
from tests.support.oracle_search import Answer
from tests.support.read_checks import difference, expected, random_question, try_check
from tests.support.read_contents import NOW, random_contents
from tests.support.read_features import features
from tests.support.read_queries import Sample
from tests.support.read_shrink import shrunk
from tests.support.read_worlds import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.support.oracle import Row

FEATURES = """
binding; binding with fields; traversal; undirected; hops; hops from two; edge variable; anonymous;
loop; not; optional; not in not; not in optional; optional in optional; several not;
several optional; shared local name; and; or;
=; !=; <; <=; >; >=; contains; starts_with; in a list; in a parameter;
list literal contains; is null; is not null; null test of Access; null test of Variable;
two properties; two nodes; .id; .src; .dst; now(); Date literal; DateTime literal; null parameter;
search(); fuzzy(); match_text(); nearest(); bm25(); rrf(); count(); count(distinct); sum(); avg();
min(); max(); having; distinct; order; several keys; descending; order by Access; order by Word;
order by Call; limit Literal; limit Variable; offset Literal; offset Variable; column Access;
column Variable; column Call; column Literal; parameter String; parameter Bool; parameter I32;
parameter I64; parameter U32; parameter U64; parameter F32; parameter F64; parameter Date;
parameter DateTime; parameter Vector; parameter String list
"""
LEAST = 4
"""Times each of them turns up in the questions below."""


def questions() -> Iterator[tuple[State, Sample, Answer]]:
    for seed in range(12):
        rng = Random(f"features {seed}")
        state = State("alone", "main", random_contents(rng))
        for _ in range(50):
            question = random_question(rng, state)
            if question is not None:
                yield state, *question


@cache
def asked() -> tuple[tuple[State, Sample, Answer], ...]:
    return tuple(questions())


def test_random_reads_use_the_whole_language() -> None:
    found = Counter(name for _, sample, _ in asked() for name in features(sample))
    wanted = [name.strip() for name in FEATURES.split(";")]
    assert {name: found[name] for name in wanted if found[name] < LEAST} == {}


def test_most_random_reads_are_valid_and_find_something() -> None:
    assert len(asked()) > 0.95 * 600
    with_rows = [wanted for _, _, wanted in asked() if wanted.rows]
    assert len(with_rows) > 0.7 * len(asked())


def test_equal_seeds_ask_equal_questions() -> None:
    for (_, sample, wanted), (_, again, answer) in zip(asked()[:40], questions(), strict=False):
        assert again == sample
        assert answer == wanted


def test_a_match_means_what_its_clauses_say() -> None:
    """The oracle runs the plain lowering; here is a third opinion, without one."""
    compared = 0
    for state, sample, _ in asked():
        checked = try_check(sample)
        assert checked is not None
        assert isinstance(checked.body, CheckedRead)
        clauses = checked.body.clauses
        if features(sample) & {"search()", "fuzzy()", "match_text()"} or len(clauses) > 4:
            continue
        given = Given(state.contents, sample.params, NOW)
        wanted = _counted(matches(clauses, {}, given))
        assert _counted(iter_rows(lower_match(clauses), {}, given)) == wanted, sample.text
        compared += 1
    assert compared > 100


def _counted(rows: Iterable[Row]) -> Counter[object]:
    return Counter(tuple(sorted(row.items(), key=lambda item: item[0])) for row in rows)


ROWS: list[dict[str, Any]] = [{"a": 1, "b": 0.1}, {"a": 2, "b": None}, {"a": 2, "b": None}]


@each(
    ("found", "is_ordered", "is_fine"),
    [
        (ROWS, True, True),
        (ROWS[::-1], True, False),
        (ROWS[::-1], False, True),
        (ROWS[:2], False, False),
        ([*ROWS, ROWS[1]], False, False),
        ([ROWS[0], ROWS[0], ROWS[1]], False, False),
        ([{"a": 1, "b": 0.1 + 1e-14}, *ROWS[1:]], True, True),
        ([{"a": 1, "b": 0.1 + 1e-6}, *ROWS[1:]], True, False),
        ([{"a": 1, "b": 0.1 + 1e-6}, *ROWS[1:]], False, False),
        ([{"a": True, "b": 0.1}, *ROWS[1:]], False, False),
        ([{"a": 1, "b": None}, *ROWS[1:]], True, False),
        ([{"b": 0.1, "a": 1}, *ROWS[1:]], True, False),
    ],
)
def test_differences(found: list[dict[str, Any]], is_ordered: bool, is_fine: bool) -> None:
    wanted = Answer(ROWS, ROWS, is_ordered)
    assert (difference(found, wanted) is None) is is_fine


def test_without_an_order_any_rows_may_be_cut_off() -> None:
    wanted = Answer(ROWS[:2], ROWS, is_ordered=False)
    assert difference(ROWS[1:], wanted) is None
    assert difference([ROWS[0], ROWS[0]], wanted) is not None


def test_a_failure_shrinks_to_what_matters() -> None:
    """Whatever a query is, if all that is wrong is a traversal, little else is left."""
    samples = (sample for _, sample, _ in asked() if "traversal" in features(sample))
    sample = next(sample for sample in samples if len(sample.text) > 400)
    smallest = shrunk(sample, lambda s: try_check(s) is not None and "traversal" in features(s))
    assert "traversal" in features(smallest)
    assert len(smallest.text.splitlines()) <= 7


def test_a_question_has_an_answer_without_its_limit() -> None:
    """What is cut off is part of what there is."""
    for state, sample, wanted in asked()[:100]:
        read = sample.query.body
        assert isinstance(read, Read)
        read = replace(read, limit=None, offset=None)
        whole = expected(Sample(replace(sample.query, body=read), sample.params), state)
        if whole is not None and "rrf()" not in features(sample):
            assert whole.rows == wanted.everything
