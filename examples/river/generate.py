"""Make the whole example: the story of the river Alder, and eight more rivers around it.

`python -m examples.river.generate --out FILE` writes the same bytes each time, on every machine and
Python: chance comes from a seed and from `Random.random` alone, whose numbers never change. What
is made obeys the schema, and every edge has an id, so that the file can be merged again.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

from examples.river import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Record = dict[str, Any]

T = TypeVar("T")

SEED: Final = 20300702
STORY: Final = Path(__file__).parent / "story.jsonl"
_FIRST_DAY: Final = date(2028, 1, 1)
_DAYS: Final = 1000
_STEM, _BROOKS = 8, 6
_STATIONS, _SENSORS, _READINGS = 12, 3, 14
_SURVEYS, _FACILITIES, _INCIDENTS, _NOTES = 20, 8, 8, 24
_USUAL: Final = {
    "oxygen": (9.5, 2.0),
    "acidity": (7.4, 0.6),
    "temperature": (12.0, 8.0),
    "conductivity": (420.0, 160.0),
    "level": (140.0, 90.0),
}
"""The middle of what a sensor shows, and how far from it."""


def main() -> None:
    """Write the file that the command line asks for."""
    parser = argparse.ArgumentParser(description="Make the records of the river example.")
    parser.add_argument("--out", type=Path, required=True, help="the file to write, as JSONL")
    out: Path = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f"{out.name}.part")
    part.write_bytes(whole())
    part.replace(out)  # who watches the directory never sees half a file


def whole() -> bytes:
    """The story as it is written, then one line for every record that is made."""
    lines = (json.dumps(record, ensure_ascii=False) for record in World(Random(SEED)).records())
    return STORY.read_bytes() + b"\n// More rivers.\n" + "\n".join([*lines, ""]).encode()


class World:
    """Everything beside the story. Its parts are made in one order: each draws from one chance."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._species: list[str] = []
        self._crews: list[str] = []
        self._edges = 0

    def records(self) -> Iterator[Record]:
        yield from self._make_crews()
        yield from self._make_species()
        for slug, name, letters, basin in words.RIVERS:
            yield _node("River", slug=slug, name=name, basin=basin)
            yield from self._make_river(slug, name, letters)

    def _make_river(self, slug: str, name: str, letters: str) -> Iterator[Record]:
        reaches = [f"{letters}-{number:02}" for number in range(1, _STEM + _BROOKS + 1)]
        yield from self._make_reaches(slug, name, reaches)
        readings: list[str] = []
        yield from self._make_stations(letters, reaches, readings)
        yield from self._make_surveys(letters, reaches)
        facilities = [f"{slug}-{number}" for number in range(1, _FACILITIES + 1)]
        yield from self._make_facilities(name, letters, reaches, facilities)
        incidents: list[str] = []
        yield from self._make_incidents(letters, reaches, readings, facilities, incidents)
        yield from self._make_notes(letters, incidents)

    def _make_crews(self) -> Iterator[Record]:
        for number, name in enumerate(words.CREWS, start=1):
            self._crews.append(name.lower())
            yield _node(
                "Crew", code=name.lower(), name=f"Crew {name}", size=self._whole(2, 9),
                radio=f"channel {number + 20}",
            )  # fmt: skip

    def _make_species(self) -> Iterator[Record]:
        for look in words.LOOKS:
            for kind, family in words.KINDS:
                name = f"{look} {kind}"
                habitat = f"{self._one(words.WATERS)} {self._one(words.PLACES)}"
                yield _node(
                    "Species", name=name, family=family, isProtected=self._chance.random() < 0.15,
                    habitat=habitat,
                )  # fmt: skip
                # Only what was made before is eaten: nothing ends up in its own food.
                for food in self._some(self._species, self._whole(0, 2)):
                    yield self._edge("FeedsOn", name, food)
                self._species.append(name)

    def _make_reaches(self, slug: str, river: str, reaches: list[str]) -> Iterator[Record]:
        for number, code in enumerate(reaches):
            is_stem = number < _STEM
            name = f"{river} {number + 1}" if is_stem else f"{self._one(words.BROOKS)} of {river}"
            kilometres = round(2 + self._chance.random() * 25, 1)
            bed = self._one(("rock", "gravel", "gravel", "sand", "silt"))
            yield _node("Reach", code=code, name=name, kilometres=kilometres, bed=bed)
            yield self._edge("PartOf", code, slug)
            # The stem flows down to its last reach, brooks flow into the stem.
            if is_stem and number + 1 < _STEM:
                yield self._edge("FlowsInto", code, reaches[number + 1])
            elif not is_stem:
                yield self._edge("FlowsInto", code, reaches[self._whole(1, _STEM - 1)])

    def _make_stations(
        self, letters: str, reaches: list[str], readings: list[str]
    ) -> Iterator[Record]:
        for number in range(1, _STATIONS + 1):
            code = f"ST-{letters}{number}"
            opened = self._day()
            status = self._one(("running",) * 6 + ("paused", "closed"))
            closed = {"closedOn": str(opened + timedelta(days=200))} if status == "closed" else {}
            yield _node(
                "Station", code=code, name=f"{self._one(words.SPOTS)} {number}", status=status,
                openedOn=str(opened), tags=self._some(words.TAGS, self._whole(0, 2)), **closed,
            )  # fmt: skip
            kilometre = round(self._chance.random() * 2, 1)
            yield self._edge("StandsOn", code, self._one(reaches), kilometre=kilometre)
            for crew in self._some(self._crews, self._whole(0, 2)):
                yield self._edge("LookedAfterBy", code, crew)
            if status == "running":
                yield from self._make_sensors(code, opened, readings)

    def _make_sensors(self, station: str, since: date, readings: list[str]) -> Iterator[Record]:
        for number in range(1, _SENSORS + 1):
            quantity = self._one(tuple(_USUAL))
            serial = f"{station[3:]}-{quantity[:2].upper()}{number}"
            yield _node(
                "Sensor", serial=serial, quantity=quantity, calibratedOn=str(self._day()),
                accuracy=self._whole(1, 50) / 100,
            )  # fmt: skip
            yield self._edge("MountedAt", serial, station, since=str(since))
            if self._chance.random() < 0.1:
                yield _node("Sensor", serial=f"{serial}-old", quantity=quantity)
                yield self._edge("Succeeds", serial, f"{serial}-old")
            if number == 1:
                yield from self._make_readings(serial, quantity, readings)

    def _make_readings(self, serial: str, quantity: str, readings: list[str]) -> Iterator[Record]:
        start = self._moment()
        middle, spread = _USUAL[quantity]
        for hour in range(_READINGS):
            number = f"{serial}-{hour}"
            value = round(middle + (self._chance.random() * 2 - 1) * spread, 2)
            quality = self._one(("good",) * 17 + ("doubtful", "doubtful", "rejected"))
            yield _node(
                "Reading", number=number, value=value, quality=quality,
                recordedAt=_text(start + timedelta(hours=hour)),
            )  # fmt: skip
            yield self._edge("GivenBy", number, serial)
            readings.append(number)

    def _make_surveys(self, letters: str, reaches: list[str]) -> Iterator[Record]:
        known = [*self._species, "brook trout", "mayfly", "water crowfoot"]
        for number in range(1, _SURVEYS + 1):
            code = f"{letters}-S{number}"
            yield _node(
                "Survey", code=code, day=str(self._day()), method=self._one(words.METHODS),
                minutes=self._whole(20, 240),
            )  # fmt: skip
            for crew in self._some(self._crews, self._whole(1, 2)):
                yield self._edge("CarriedOutBy", code, crew)
            for reach in self._some(reaches, self._whole(1, 3)):
                yield self._edge("Covers", code, reach)
            for species in self._some(known, self._whole(1, 5)):
                health = self._one(("good", "good", "fair", "poor"))
                yield self._edge("Found", code, species, amount=self._whole(1, 90), health=health)

    def _make_facilities(
        self, river: str, letters: str, reaches: list[str], facilities: list[str]
    ) -> Iterator[Record]:
        for number, code in enumerate(facilities, start=1):
            kind, title = self._one(words.FACILITIES)
            yield _node(
                "Facility", code=code, name=f"{river} {title} {number}", kind=kind,
                permit=f"P-{letters}{number:02}", openSince=str(self._day()),
            )  # fmt: skip
            for reach in self._some(reaches, self._whole(1, 2)):
                litres = round(1 + self._chance.random() * 300, 1)
                yield self._edge("DischargesInto", code, reach, litresPerSecond=litres)

    def _make_incidents(
        self,
        letters: str,
        reaches: list[str],
        readings: list[str],
        facilities: list[str],
        incidents: list[str],
    ) -> Iterator[Record]:
        for place in range(1, _INCIDENTS + 1):
            moment = self._moment()
            number = f"IN-{moment.year}-{1000 + self._edges}"  # edges only ever grow in number
            incidents.append(number)
            title, text = self._one(words.INCIDENTS)
            status = self._one(("open", "watched", "closed", "closed"))
            closed = {"closedAt": _text(moment + timedelta(days=30))} if status == "closed" else {}
            yield _node(
                "Incident", number=number, title=title, text=f"{text} {self._one(words.AFTER)}",
                severity=self._one(("low", "medium", "high")), status=status,
                recordedAt=_text(moment), **closed,
            )  # fmt: skip
            yield self._edge("HappenedAt", number, self._one(reaches))
            for reading in self._some(readings, self._whole(0, 2)):
                yield self._edge("ShownBy", number, reading)
            for species in self._some(self._species, self._whole(0, 2)):
                yield self._edge("Harmed", number, species, dead=self._whole(0, 60))
            if self._chance.random() < 0.7:
                cause = self._one(facilities)
                sure = self._whole(3, 10) / 10
                yield self._edge("CausedBy", number, cause, confidence=sure)
                yield from self._make_measure(f"{letters}-M{place}", number, cause, moment.date())

    def _make_measure(self, code: str, incident: str, payer: str, day: date) -> Iterator[Record]:
        kind, title = self._one(words.MEASURES)
        yield _node(
            "Measure", code=code, title=title, kind=kind, budget=self._whole(1, 90) * 500,
            startsOn=str(day + timedelta(days=self._whole(3, 60))),
        )  # fmt: skip
        yield self._edge("Answers", code, incident)
        yield self._edge("PaidBy", code, payer, share=self._whole(1, 10) / 10)

    def _make_notes(self, letters: str, incidents: list[str]) -> Iterator[Record]:
        for place in range(1, _NOTES + 1):
            number = f"{letters}-N{place}"
            title, text = self._one(words.NOTES)
            yield _node(
                "Note", number=number, title=title, text=f"{text} {self._one(words.AFTER)}",
                recordedAt=_text(self._moment()),
            )  # fmt: skip
            yield self._edge("WrittenBy", number, self._one(self._crews))
            for incident in self._some(incidents, self._whole(0, 1)):
                yield self._edge("Mentions", number, incident)

    def _edge(self, name: str, start: str, end: str, /, **data: object) -> Record:
        self._edges += 1
        return {"edge": name, "from": start, "to": end, "data": {"id": f"g{self._edges}", **data}}

    def _whole(self, least: int, most: int) -> int:
        return least + int(self._chance.random() * (most - least + 1))

    def _one(self, choices: Sequence[T]) -> T:
        return choices[int(self._chance.random() * len(choices))]

    def _some(self, choices: Sequence[T], number: int) -> list[T]:
        """That many different ones, or all there are."""
        left = list(choices)
        wanted = min(number, len(left))
        return [left.pop(int(self._chance.random() * len(left))) for _ in range(wanted)]

    def _day(self) -> date:
        return _FIRST_DAY + timedelta(days=self._whole(0, _DAYS))

    def _moment(self) -> datetime:
        day = self._day()
        return datetime(day.year, day.month, day.day, self._whole(0, 23), tzinfo=UTC)


def _node(kind: str, /, **data: object) -> Record:
    return {"type": kind, "data": data}


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    main()
