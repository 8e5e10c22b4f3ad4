"""The words from which the made part of the example is put together."""

from __future__ import annotations

from typing import Final

RIVERS: Final = (
    ("bracken", "Bracken", "BR", "north"),
    ("clover", "Clover", "CL", "east"),
    ("dune", "Dune", "DU", "west"),
    ("ember", "Ember", "EM", "south"),
    ("fennel", "Fennel", "FE", "east"),
    ("gorse", "Gorse", "GO", "west"),
    ("hazel", "Hazel", "HA", "north"),
    ("ivy", "Ivy", "IV", "south"),
)
CREWS: Final = (
    "Avocet", "Bittern", "Curlew", "Dipper", "Egret", "Godwit",
    "Lapwing", "Merlin", "Plover", "Sandpiper", "Teal", "Wigeon",
)  # fmt: skip
LOOKS: Final = ("pale", "banded", "lesser", "spotted", "river")
KINDS: Final = (
    ("starwort", "plant"), ("pondweed", "plant"), ("caddis", "insect"), ("stonefly", "insect"),
    ("snail mussel", "mussel"), ("loach", "fish"), ("grayling", "fish"), ("wagtail", "bird"),
)  # fmt: skip
WATERS: Final = (
    "slow water over silt",
    "cold water that is rich in oxygen",
    "shallow water in the sun",
    "deep pools with little current",
    "fast water between stones",
)
PLACES: Final = (
    "near roots of old trees",
    "below weirs",
    "along banks of reed",
    "on beds of gravel",
    "where brooks come in",
)
BROOKS: Final = ("Fern brook", "Mossy beck", "Otter run", "Stony brook", "Willow ditch")
SPOTS: Final = ("Footbridge", "Weir", "Old ford", "Railway arch", "Boat house", "Pump house")
TAGS: Final = ("bridge", "night", "outfall", "remote", "flood")
METHODS: Final = ("netting", "diving", "counting", "sampling")
FACILITIES: Final = (
    ("mill", "board mill"),
    ("treatment", "treatment works"),
    ("farm", "dairy farm"),
    ("quarry", "gravel quarry"),
    ("power", "turbine house"),
)
INCIDENTS: Final = (
    ("Oil on the water", "A thin film of oil from bank to bank, strongest below the outfall."),
    ("Fish at the surface", "Fish gasped at the surface before sunrise; the oxygen was low."),
    ("Milky water", "White water out of a drain for an hour, with a smell of the dairy."),
    ("Warm discharge", "The water below the turbines was six degrees warmer than above."),
    ("Silt after blasting", "Grey silt from the quarry lay a hand deep on the gravel."),
    ("Foam below the weir", "Foam that stayed for two days and smelled of soap."),
    ("Green bloom", "Algae covered the slow water; acidity rose in the afternoon."),
    ("Broken dam", "A dam of branches broke and took the bank with it."),
)
AFTER: Final = (
    "It was gone the next morning.",
    "Samples are in the cold box.",
    "Nobody else has seen it.",
    "The station was cleaned and checked.",
    "We will come back after the rain.",
    "Photographs are in the usual place.",
)
NOTES: Final = (
    ("Round", "All sensors were clean, and the battery was changed."),
    ("High water", "The path was under water; the level was read from the bridge."),
    ("New neighbours", "A pair of kingfishers has dug into the bank below the station."),
    ("Weed", "Pondweed had grown around the oxygen sensor and was cut back."),
    ("Visit", "The valve at the outfall was shut, and the pump was not running."),
    ("Lost bottle", "One of the bottles broke on the way; the sample is to be taken again."),
    ("Gravel", "Fresh gravel was put in, and trout were over it within a week."),
)
MEASURES: Final = (
    ("repair", "New seals for the tank"),
    ("barrier", "Boom before the outfall"),
    ("order", "Discharge only by day"),
    ("planting", "Willows along the bank"),
    ("restocking", "Young fish from upstream"),
)
