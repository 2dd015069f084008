"""Who meets whom in a sweep of pairs."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from tests.cases import cases

from muster_coordinator.localize.strategies.pairs import across_racks, at_random, rail_by_rail, within_racks
from muster_coordinator.model.probes import Probe, Site

RACKS = {"r1": 4, "r2": 3, "r3": 1, None: 2}
SITES = {
    site.node: site
    for site in (Site(f"{rack or 'x'}-{number}", rack) for rack, count in RACKS.items() for number in range(count))
}
PAIRINGS = [at_random, rail_by_rail, within_racks, across_racks]


def even(count: int) -> dict[str, Site]:
    """So many nodes in racks of four."""
    return {f"n{number:02}": Site(f"n{number:02}", f"r{number // 4}") for number in range(count)}


def racks(probe: Probe, sites: dict[str, Site]) -> set[str | None]:
    return {sites[node].rack for node in probe.members}


@cases("paired", PAIRINGS)
@cases("count", [2, 3, 8, 9, 16, 31])
def test_everybody_has_one_partner(paired: Callable[[Mapping[str, Site], str, int], list[Probe]], count: int) -> None:
    """Of an odd number one waits, or joins a pair; the same seed gives the same pairs, and another one others."""
    sites = even(count)
    members = Counter(node for probe in paired(sites, "s", 0) for node in probe.members)
    assert set(members.values()) == {1}
    assert len(members) >= count - 1
    assert paired(sites, "s", 0) == paired(sites, "s", 0)


def test_only_pairs_with_as_many_devices_run_by_rail() -> None:
    """Between others there are no rails to tell apart."""
    sites = {node: replace(site, devices=7 if node == "n05" else 8) for node, site in even(16).items()}
    assert {probe.by_rail: "n05" in probe.members for probe in rail_by_rail(sites, "s", 0)} == {
        True: False,
        False: True,
    }


@pytest.mark.parametrize("paired", PAIRINGS)
def test_every_turn_brings_other_partners(paired: Callable[[Mapping[str, Site], str, int], list[Probe]]) -> None:
    """As long as there are any."""
    sites = even(16)
    pairs = [frozenset(probe.members) for turn in range(3) for probe in paired(sites, "s", turn)]
    assert len(set(pairs)) == len(pairs) == 24


def test_lots_differ_from_sweep_to_sweep() -> None:
    """Or the same links would be tried for ever."""
    assert len({tuple(probe.members for probe in at_random(even(8), f"s{draw}", 0)) for draw in range(20)}) > 10


def test_rails_are_tried_one_after_the_other() -> None:
    """By the same pairs that lots draw."""
    rails, lots = rail_by_rail(even(8), "s", 0), at_random(even(8), "s", 0)
    assert [probe.members for probe in rails] == [probe.members for probe in lots]
    assert (all(probe.by_rail for probe in rails), any(probe.by_rail for probe in lots)) == (True, False)


def test_within_racks_as_far_as_they_go() -> None:
    """The odd one out of a rack, the only one of its rack and those of unknown racks meet the nearest that is left."""
    for turn in range(3):
        probes = within_racks(SITES, "s", turn)
        inside = [probe for probe in probes if len(racks(probe, SITES)) == 1 and probe.members[0][0] == "r"]
        assert {probe.reason for probe in inside} == {"both are in rack r1", "both are in rack r2"}
        assert len(inside) == 3
        odd, unknown = (probe for probe in probes if probe not in inside)
        assert odd.members[1] == "r3-0"
        assert odd.reason.startswith("no other node is left in the rack of ")
        assert unknown.members == ("x-0", "x-1")
        assert unknown.reason == "the rack of x-0 is unknown; it runs with the nearest node that is left"


def test_across_racks_as_far_as_they_go() -> None:
    """No pair stays within its rack while others are there."""
    sites = even(16)
    assert all(len(racks(probe, sites)) == 2 for probe in across_racks(sites, "s", 0))
    assert all(probe.reason.endswith("are in different racks") for probe in across_racks(sites, "s", 0))
    same = {node: Site(node, "r1") for node in "abcd"}
    assert all(
        "are paired at random, although both are in rack r1" in probe.reason for probe in across_racks(same, "s", 0)
    )
    unknown = {node: Site(node) for node in "abcd"}
    assert all("the rack of one or both is unknown" in probe.reason for probe in across_racks(unknown, "s", 0))
