"""Colours for amounts: red for low values, blue for high ones; colour-blind people can distinguish them."""

_ANCHORS = ((215, 25, 28), (253, 174, 97), (255, 255, 191), (171, 217, 233), (44, 123, 182))
"""The scheme RdYlBu in five classes (https://colorbrewer2.org, C. Brewer), safe for the colour-blind."""

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
