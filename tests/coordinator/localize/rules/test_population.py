"""Nodes that are slow alike in themselves are a population and no culprits."""

import pytest
from tests.coordinator.localize.runs import culprits, diagnosed, fleet, ran

from muster_coordinator.localize.rules.population import FEWEST
from muster_coordinator.localize.wording.missing_evidence import missing_evidence
from muster_coordinator.model.probes import GroupRun


def fleet_with_slow(slow: dict[str, float]) -> list[GroupRun]:
    """Of 16 nodes in pairs, n0 and others of each pair are slow; then they run alone, beside controls."""
    pairs = [(f"n{number}", f"n{number + 1}") for number in range(0, 16, 2)]
    together = [ran(one, other, at=1.5 * slow.get(one, 1.0)) for one, other in pairs]
    alone = [ran(node, at=2.0 * share) for node, share in slow.items() for _ in range(2)]
    fast = [ran(f"n{number}", at=2.0) for number in range(1, 16, 2)]
    return [*together, *alone, *fast]


@pytest.mark.parametrize(("count", "named"), [(FEWEST - 1, True), (FEWEST, False)])
def test_a_quarter_of_the_fleet_that_is_slow_alike_has_something_in_common(count: int, *, named: bool) -> None:
    """Nobody is at fault, and it is said what to look for; fewer may have broken one by one."""
    slow = {f"n{2 * number}": 0.5 + number / 100 for number in range(count)}
    diagnosis = diagnosed(fleet(16), *fleet_with_slow(slow))
    assert diagnosis.convicted == (slow.keys() if named else frozenset())
    assert bool(culprits(diagnosis)) is named
    if not named:
        assert slow.keys() <= {*diagnosis.inconclusive}
        assert missing_evidence(diagnosis)["n0"].startswith("alone it is as slow as n2, n4, n6: look what they have")


def test_nodes_that_are_slow_differently_are_at_fault() -> None:
    """However many they are: hardware breaks node by node."""
    slow = {f"n{2 * number}": 0.2 + number / 12 for number in range(FEWEST + 1)}
    assert diagnosed(fleet(16), *fleet_with_slow(slow)).convicted == slow.keys()


def test_nodes_behind_a_bad_leaf_do_not_count_for_the_share() -> None:
    """Of 32 nodes, 16 stand behind a bad leaf. Of the others, five are slow alike, and not of the whole fleet."""
    slow = {f"n{number}": 0.6 for number in range(0, 10, 2)}
    outside = [ran(f"n{number}", f"n{number + 16}", at=0.4) for number in range(16)]
    inside = [ran(f"n{number}", f"n{number + 1}", at=0.4) for number in (16, 18)]
    runs = [*outside, *inside, *fleet_with_slow(slow)]
    assert not diagnosed(fleet(32, leaf_of=8), *runs).nodes.convicted
