"""Running a lost race again, and taking turns."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph_core.constants import PREPARE_BUDGET
from omnigraph_core.errors import AlreadyExists, PublishContention
from omnigraph_core.manifest import retry
from omnigraph_core.manifest.retry import Turns, prepare_again


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_FIRST_WAIT", 0.0)


class Race:
    """Is lost a number of times."""

    def __init__(self, lost: int) -> None:
        self.lost, self.runs = lost, 0

    def __call__(self) -> str:
        self.runs += 1
        if self.runs <= self.lost:
            raise PublishContention("lost")
        return "won"


@pytest.mark.parametrize("lost", [0, 1, PREPARE_BUDGET.value])
def test_a_race_that_is_won_in_the_end(lost: int) -> None:
    race = Race(lost)
    assert prepare_again(race) == "won"
    assert race.runs == lost + 1


@pytest.mark.parametrize(("retries", "runs"), [(0, 1), (3, 4), (PREPARE_BUDGET.value, 16)])
def test_a_race_that_is_always_lost(retries: int, runs: int) -> None:
    race = Race(1000)
    with pytest.raises(PublishContention):
        prepare_again(race, retries=retries)
    assert race.runs == runs


def test_what_trying_again_cannot_mend() -> None:
    asked = []

    def refuse() -> None:
        asked.append(1)
        raise AlreadyExists("taken")

    with pytest.raises(AlreadyExists):
        prepare_again(refuse)
    assert asked == [1]


def test_one_has_the_turn_at_a_time() -> None:
    turns, inside, most = Turns(), [], []

    def work(number: int) -> None:
        with turns.turn("main", patience=60):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(200)))
    assert most == [1] * 200


def test_turns_of_other_names_are_not_waited_for() -> None:
    turns = Turns()
    with turns.turn("main"), turns.turn("review", patience=60):
        pass


def test_who_has_waited_long_enough_goes_without() -> None:
    turns = Turns()
    with turns.turn("main"):
        with turns.turn("main", patience=0):
            pass
        was_free = threading.Event()

        def wait() -> None:
            with turns.turn("main", patience=60):
                was_free.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not was_free.is_set(), "going without does not end the turn of another"
    waiting.join()
    assert was_free.is_set()


def test_a_turn_ends_with_an_error() -> None:
    turns = Turns()
    with pytest.raises(AlreadyExists), turns.turn("main"):
        raise AlreadyExists("taken")
    with turns.turn("main", patience=60):
        pass
