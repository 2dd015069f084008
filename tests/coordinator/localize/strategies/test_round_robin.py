"""Everybody meets everybody."""

from itertools import combinations
from statistics import fmean

import pytest
from tests.cases import cases

from muster_coordinator.localize.strategies.round_robin import RoundRobin
from muster_coordinator.model.probes import CheckAbilities, GroupRun, Probe, RunOutcome, Site


def tournament(count: int) -> list[list[Probe]]:
    """The rounds when everybody is well."""
    found = RoundRobin({f"n{number}": Site(f"n{number}") for number in range(count)}, CheckAbilities(), "s")
    rounds: list[list[Probe]] = []
    runs: list[GroupRun] = []
    while probes := found.next_groups(runs, frozenset()):
        rounds.append(probes)
        runs += [
            GroupRun(group=f"{len(rounds)} {p.members}", members=p.members, outcome=RunOutcome.GOOD) for p in probes
        ]
    assert len(rounds) <= found.max_rounds
    return rounds


def distance(rounds: list[Probe]) -> float:
    """How far apart in topology order those are that meet."""
    return fmean(abs(int(one[1:]) - int(other[1:])) for one, other in (probe.members for probe in rounds))


@cases("count", range(2, 18))
def test_everybody_meets_everybody_exactly_once(count: int) -> None:
    """In as few rounds as can be."""
    rounds = tournament(count)
    pairs = [frozenset(probe.members) for probes in rounds for probe in probes]
    assert len(pairs) == len(set(pairs)) == len([*combinations(range(count), 2)])
    assert len(rounds) == count - 1 + count % 2
    assert rounds[0][0].reason == f"every node with every other one, round 1 of {len(rounds)}"


@pytest.mark.parametrize("count", [16, 32, 64])
def test_near_neighbours_meet_first(count: int) -> None:
    """Those who stand farthest apart meet last."""
    apart = [distance(probes) for probes in tournament(count)]
    assert apart[0] == 1
    quarters = [fmean(apart[start : start + count // 4]) for start in range(0, count, count // 4)]
    assert quarters == sorted(quarters)
    assert max(apart[: count // 4]) < min(apart[-count // 4 :])


def test_who_is_absent_is_met_by_nobody() -> None:
    """Its partners wait, and meet all others."""
    found = RoundRobin({node: Site(node) for node in "abcd"}, CheckAbilities(), "s")
    assert [probe.members for probe in found.next_groups((), frozenset("b"))] == [("c", "d")]
