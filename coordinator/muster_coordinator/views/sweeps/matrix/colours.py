"""Colours for amounts: dark blue for low values, yellow for high ones.

Colour-blind people can distinguish them, and a black-and-white print, too: a higher value is always lighter.
"""

_ANCHORS = ((0, 32, 77), (66, 77, 108), (124, 123, 120), (187, 175, 113), (255, 234, 70))
"""The colour map cividis at five places (J. Nuñez, C. Anderton, R. Renslow, 2018, doi:10.1371/journal.pone.0199239)."""

STEPS = 32
"""Number of different colours, so that pictures group the cells of one colour."""


def step_of(value: float, most: float) -> int:
    """The step of a value between 0 and `most`."""
    return round((STEPS - 1) * min(max(value / most, 0.0), 1.0)) if most > 0 else 0


def colour(step: int) -> str:
    """The colour of a step, as `#rrggbb`."""
    along = step / (STEPS - 1) * (len(_ANCHORS) - 1)
    before = min(int(along), len(_ANCHORS) - 2)
    share = along - before
    mixed = (
        round(one + share * (other - one)) for one, other in zip(_ANCHORS[before], _ANCHORS[before + 1], strict=True)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)
