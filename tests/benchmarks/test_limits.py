"""The page about the limits of sweeps, its figures and its picture belong together."""

import json
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from benchmarks.localisation.limits import LOSSES, Faulty, Setting, smallest_found, swept
from benchmarks.localisation.limits_plot import plot

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_picture_shows_the_figures() -> None:
    """Both were written by the same call."""
    figures = json.loads((REFERENCE / "limits.json").read_text(encoding="utf-8"))
    assert (REFERENCE / "limits.svg").read_text(encoding="utf-8") == plot(figures), "measure again"


def test_the_smallest_loss_is_one_from_which_on_nearly_all_are_found() -> None:
    """A lucky smaller one does not count."""
    hits = dict.fromkeys(LOSSES, 20) | {0.2: 18, 0.25: 19}
    assert smallest_found([*hits.values()], 20) == 0.25
    assert smallest_found([0] * len(LOSSES), 20) is None


def test_a_large_loss_is_found_and_a_small_one_is_not() -> None:
    """In a fleet of 64 nodes with usual noise."""
    setting = Setting(64, 0.02, 1)
    assert [swept(Faulty(setting, loss, 1)).touched for loss in (0.1, 0.4)] == [0, 1]
