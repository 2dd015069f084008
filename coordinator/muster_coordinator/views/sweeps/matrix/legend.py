"""The legend of the matrix: the amounts of the colours, and the meaning of the other cells."""

import xml.etree.ElementTree as ET

from muster_coordinator.views.sweeps.amounts import Amounts
from muster_coordinator.views.sweeps.matrix.colours import STEPS, colour
from muster_coordinator.views.sweeps.matrix.style import (
    CELL,
    CHARACTER_PX,
    CROSS,
    FONT_PX,
    GAP_PX,
    INK,
    LINE_PX,
    UNMEASURED,
)
from muster_coordinator.views.sweeps.matrix.svg import element

_STEP_PX = 12.0
_QUARTERS = 4

_LINES = "strong lines separate leaves, pale ones racks, where these are known"

WIDTH_PX = CHARACTER_PX * len(_LINES)
"""Maximum length of a line."""

HEIGHT_PX = 6 * LINE_PX


def draw_legend(parent: ET.Element, amounts: Amounts, most: float) -> None:
    """The scale from 0 to `most`, which is 0 if nothing was measured; below it the marks and lines."""
    if most > 0:
        _draw_scale(parent, amounts, most)
    else:
        element(parent, "text", "no pair has measured anything", y=FONT_PX)
    marks = element(parent, "g", transform=f"translate(0 {3.5 * LINE_PX:g})")
    below = _draw_mark(marks, 0.0, "failed")
    element(below, "path", d=CROSS.format(0, 0), stroke=INK, stroke_width=0.1, fill="none")
    _draw_mark(marks, 16 * CHARACTER_PX, "no run of these two alone", UNMEASURED)
    element(parent, "text", _LINES, y=5.5 * LINE_PX)


def _draw_scale(parent: ET.Element, amounts: Amounts, most: float) -> None:
    for step in range(STEPS):
        element(parent, "rect", x=step * _STEP_PX, width=_STEP_PX, height=FONT_PX, fill=colour(step))
    for quarter in range(_QUARTERS + 1):
        share = quarter / _QUARTERS
        anchor = "middle" if quarter else "start"
        amount = amounts.words(share * most)
        element(parent, "text", amount, x=share * STEPS * _STEP_PX, y=2 * LINE_PX, text_anchor=anchor)


def _draw_mark(parent: ET.Element, x: float, meaning: str, fill: str = "none") -> ET.Element:
    """A cell with what it means beside it; answers where a mark can be drawn into it, with the side 1."""
    cell = element(parent, "g", transform=f"translate({x:g} 0) scale({FONT_PX:g})")
    element(cell, "path", d=CELL.format(0, 0), fill=fill, stroke=INK, stroke_width=0.05)
    element(parent, "text", meaning, x=x + FONT_PX + GAP_PX, y=FONT_PX - 1)
    return cell
