"""Several sweeps of one simulated fleet, one after the other."""

import pytest

pytest.importorskip("numpy")

from benchmarks.localisation.history import FAULTY, Chain, played

SWEEPS = 12
SEEDS = range(5)


@pytest.mark.parametrize("case", FAULTY)
def test_history_finds_faults_that_come_and_go(case: str) -> None:
    """More of them than sweeps that know nothing of each other, and names nothing healthy."""
    found = {}
    for with_history in (False, True):
        series = [played(Chain(case, 64, with_history, SWEEPS, seed), 0.02) for seed in SEEDS]
        found[with_history] = sum(sum(one.found) for one in series)
        assert not any(any(one.false) for one in series)
    assert found[True] > found[False]


def test_history_costs_a_healthy_fleet_nothing() -> None:
    """Where nothing is suspected, every node runs once."""
    series = played(Chain("calm: healthy", 64, True, 3, 0), 0.02)
    assert series.runs == (1.0, 1.0, 1.0)
