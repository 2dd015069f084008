"""What a round has changed about the judgement."""

from typing import Any

import pytest

from muster_coordinator.localize.ruling import Ruling
from muster_coordinator.model.sweep_records import FailedFabric, FailedLink, FailedNode
from muster_coordinator.sweeps.learning import MOST_NAMES, learned


def ruling(**found: Any) -> Ruling:
    nothing: dict[str, Any] = {
        "failed_nodes": (),
        "failed_links": (),
        "failed_fabric": (),
        "cleared": frozenset(),
        "suspects": (),
        "unsettled": {},
        "why_slow": {},
        "seen": (),
    }
    return Ruling(**nothing | found)


FAILED = ruling(
    failed_nodes=(FailedNode(node="a", confidence=0.5, reasons=()),),
    failed_links=(FailedLink(between=("b", "c"), confidence=0.5, reasons=()),),
    failed_fabric=(FailedFabric(leaves=("l1", "l2"), confidence=0.5, reasons=()),),
)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (ruling(), ruling(), ()),
        (FAILED, FAILED, ()),
        (ruling(), ruling(cleared=frozenset("ba"), suspects=("c",)), ("cleared: a, b", "suspected: c")),
        (ruling(cleared=frozenset("ab")), ruling(cleared=frozenset("a")), ("no longer cleared: b",)),
        (ruling(), FAILED, ("convicted: a", "convicted link: b - c", "convicted fabric: l1 - l2")),
        (FAILED, ruling(), ("no longer convicted: a",)),
        (ruling(suspects=("a", "b")), ruling(suspects=("b",)), ()),
    ],
)
def test_only_what_has_changed_is_told(before: Ruling, after: Ruling, lines: tuple[str, ...]) -> None:
    """A line for each kind of change."""
    assert learned(before, after) == lines


def test_many_names_are_only_counted() -> None:
    """With some of them as examples."""
    nodes = frozenset(f"n{number}" for number in range(MOST_NAMES + 1))
    (line,) = learned(ruling(), ruling(cleared=nodes))
    assert line == f"cleared: {MOST_NAMES + 1}, among them {', '.join(sorted(nodes)[:MOST_NAMES])}"
