"""The smallest loss that a sweep would have found, and the nodes that were compared with nothing."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.cases import cases
from tests.coordinator.localize.runs import diagnosed, failed, fleet, nowhere, ran, well

from muster_coordinator.model.probes import GroupRun


@cases(
    ("runs", "uncompared"),
    [
        ([ran("a", "b")], "ab"),
        ([ran("a", "b"), ran("b", "a")], "ab"),
        ([ran("a", "b", "c")], "abc"),
        ([ran("a", "b"), ran("b", "c")], "b"),
        ([ran("a", "b"), ran("b", "c"), ran("a", "c")], ""),
        ([ran("a", "b"), ran("c", "d")], ""),
        ([ran("a", "b"), failed("c", "d")], "ab"),
        ([ran("a", "b", "c", "d")], "abcd"),
        ([replace(ran("a", "b"), objective=None)], ""),
        ([replace(ran("a", "b"), is_judged=True)], ""),
        ([ran("a"), ran("b")], "ab"),
        ([ran("a"), ran("b"), ran("c")], ""),
    ],
    ids=[
        "one pair",
        "one pair twice",
        "three at once",
        "one node in both runs",
        "each pair of three",
        "two pairs",
        "the other pair has failed",
        "one group of all",
        "nothing is measured",
        "a reference judges",
        "two alone, one of them may lie",
        "three alone",
    ],
)
def test_a_node_in_every_run_is_compared_with_nothing(runs: Sequence[GroupRun], uncompared: str) -> None:
    """A slow node would slow all runs down, and they would be as usual."""
    assert diagnosed(nowhere("abcd"), *runs).sensitivity.uncompared == {*uncompared}


@cases(
    ("runs", "loss"),
    [
        ([], None),
        ([failed("n0", "n1")], None),
        ([ran("n0", "n1")], 1.0),
        (well(8, 0), 0.2),
        (well(40, 0), 0.15),
        ([*well(8, 2), ran("n0", "n1", at=1.35)], 0.28),
    ],
    ids=["no run", "nothing measured", "nothing to compare", "few alike", "many alike", "few that differ"],
)
def test_the_smallest_loss(runs: Sequence[GroupRun], loss: float | None) -> None:
    """It is smaller the more runs there are and the less they differ."""
    assert diagnosed(fleet(40), *runs).sensitivity.smallest_loss == pytest.approx(loss, abs=0.005)


def test_less_than_the_smallest_loss_passes_and_more_does_not() -> None:
    """The figure says where the border is."""
    others = well(8, 2)
    loss = diagnosed(fleet(8), *others, ran("n0", "n1")).sensitivity.smallest_loss
    assert loss is not None
    found = {
        share: diagnosed(fleet(8), *others, ran("n0", "n1", at=1.5 * (1 - share)))
        for share in (loss - 0.01, loss + 0.01)
    }
    assert [bool(diagnosis.nodes.suspects) for diagnosis in found.values()] == [False, True]


def test_slow_uplinks_hide_a_loss() -> None:
    """Runs across leaves reach 75 % of those inside, so a node may have lost as much and hardly more."""
    sites = fleet(16, leaf_of=4)
    across = [ran(f"n{node}", f"n{(node + 4) % 16}", at=0.75) for node in (0, 1, 2, 3, 8, 9, 10, 11)]
    inside = [ran("n0", "n1", at=1.0), ran("n4", "n5", at=1.0), ran("n8", "n9", at=1.0)]
    loss = diagnosed(sites, *across, *inside).sensitivity.smallest_loss
    assert loss == pytest.approx(0.27, abs=0.03)


def test_a_shared_host_hides_more() -> None:
    """There only less than half is slow, and what reached 60 % of the best is cleared."""
    runs = [replace(run, on_one_host=True) for run in well(40, 0)]
    assert diagnosed(fleet(40), *runs).sensitivity.smallest_loss == pytest.approx(0.4)
