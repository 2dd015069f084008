"""Rounds of groups on a simulated fleet: what a coordinator gets to know of them."""

import random
from typing import Any

import pytest
from tests.cases import cases

from muster_coordinator.model.probes import Probe, RunOutcome, Site

np = pytest.importorskip("numpy")

from benchmarks.fabric.defects import BrokenPart, Defect  # noqa: E402  it needs numpy
from benchmarks.fabric.disturbances import Disturbances, OlderNodes  # noqa: E402  it needs numpy
from benchmarks.fabric.membership import HangEnding, Membership, labelled  # noqa: E402  it needs numpy
from benchmarks.fabric.network import FatTree, Wiring, even_leaves  # noqa: E402  it needs numpy
from benchmarks.fabric.swept_fleet import FleetSetup, SweptFleet  # noqa: E402  it needs numpy

NETWORK = FatTree(Wiring(leaves=even_leaves(64)))
NARROW = FatTree(Wiring(leaves=even_leaves(64), oversubscription=2.0))
QUIET = Disturbances(noise=0.0)


def fleet_with(network: FatTree = NETWORK, method: str = "m", name: str = "1", **wrong: Any) -> SweptFleet:
    """A fleet with this wrong."""
    setup = FleetSetup(network=network, **{"disturbances": QUIET, **wrong})
    return SweptFleet(setup, labelled(network, setup.membership, random.Random("labels")), name, method)


def pairs(*numbers: tuple[int, int], by_rail: bool = False) -> list[Probe]:
    return [Probe((f"n{one}", f"n{other}"), "", by_rail) for one, other in numbers]


ACROSS = pairs(*((node, node + 16) for node in range(16)))


def test_a_healthy_pair() -> None:
    """It passes with its bandwidth, and on separate rails with that of each."""
    together, apart = fleet_with().run_round([*pairs((0, 16)), *pairs((1, 17), by_rail=True)])
    assert (together.outcome, together.objective, together.rails) == (RunOutcome.GOOD, 400.0, ())
    assert (apart.objective, apart.rails) == (400.0, (50.0,) * 8)


def test_fewer_nodes_at_once_get_more() -> None:
    """Sixteen pairs share what eight can fill, unless only eight may run at the same time."""
    assert {run.objective for run in fleet_with(NARROW).run_round(ACROSS)} == {200.0}
    assert {run.objective for run in fleet_with(NARROW, max_parallel=16).run_round(ACROSS)} == {400.0}


@cases("drags, crashed", [(0.0, {"n0"}), (1.0, set())])
def test_a_crash_may_drag_others_along(drags, crashed) -> None:
    """Whose own ranks were killed is said to have crashed, as a coordinator would; if all were, nobody."""
    broken = Defect(part=BrokenPart.NODE, of=(0,), crashes=True)
    run, other = fleet_with(defects=(broken,), membership=Membership(drags=drags)).run_round(pairs((0, 16), (1, 17)))
    assert (run.outcome, run.crashed, run.hard) == (RunOutcome.BAD, crashed, True)
    assert other.outcome is RunOutcome.GOOD


@cases("ending, hard", [(HangEnding.ABORTED, True), (HangEnding.TIMED_OUT, False)])
def test_a_hang_ends_all_members_alike(ending, *, hard: bool) -> None:
    """Whether all ranks are killed or end at the deadline, nobody is said to have crashed."""
    dead = Defect(part=BrokenPart.PATH, of=(0, 1))
    run, inside = fleet_with(defects=(dead,), membership=Membership(hang_ending=ending)).run_round(
        pairs((0, 16), (1, 2))
    )
    assert (run.outcome, run.crashed, run.hard, run.objective) == (RunOutcome.BAD, frozenset(), hard, None)
    assert inside.outcome is RunOutcome.GOOD


def test_who_declines_is_absent_and_a_spare_stands_in() -> None:
    """The spare is the next free node of the same rack."""
    fleet = fleet_with(membership=Membership(declining=0.25))
    declines, stays, spare = busy_and_free(fleet)
    (run,) = fleet.run_round([Probe((declines, stays), "")])
    assert (run.outcome, run.members) == (RunOutcome.GOOD, (spare, stays))
    assert declines in fleet.absent


def test_without_a_spare_the_group_has_no_result() -> None:
    """Its other member stays in the sweep."""
    fleet = fleet_with(membership=Membership(declining=0.25))
    declines, stays, _ = busy_and_free(fleet)
    rest = [Probe((node,), "") for node in fleet.sites if node not in (declines, stays)]
    run = next(run for run in fleet.run_round([Probe((declines, stays), ""), *rest]) if declines in run.members)
    assert (run.outcome, run.detail) == (RunOutcome.VOID, f"{declines}: another run has the devices")
    assert fleet.absent == fleet.busy


def test_each_attempt_to_form_a_group_finds_one_busy_member() -> None:
    """After two others have been asked in vain, the group is given up."""
    fleet = fleet_with(membership=Membership(declining=0.25))
    (run,) = fleet.run_round([Probe((*fleet.sites,), "")])
    assert run.outcome is RunOutcome.VOID
    assert len(fleet.absent) == 3


def busy_and_free(fleet: SweptFleet) -> tuple[str, str, str]:
    """A node that declines, and two of its rack that do not."""
    racks: dict[str | None, list[str]] = {}
    for node, site in fleet.sites.items():
        racks.setdefault(site.rack, []).append(node)
    nodes = next(nodes for nodes in racks.values() if 0 < len(fleet.busy.intersection(nodes)) < 7)
    free = [node for node in nodes if node not in fleet.busy]
    return next(node for node in nodes if node in fleet.busy), free[1], free[0]


def test_an_agent_that_vanishes_is_absent_and_its_run_void() -> None:
    """Nothing is said about its partner."""
    fleet = fleet_with(membership=Membership(vanishing=1.0))
    (run,) = fleet.run_round(pairs((0, 16)))
    assert (run.outcome, run.crashed) == (RunOutcome.VOID, frozenset())
    assert fleet.absent == {"n0", "n16"}


def test_an_intermittent_defect_shows_in_its_share_of_runs() -> None:
    """Here in three of ten."""
    fleet = fleet_with(defects=(Defect(part=BrokenPart.LINK, of=(0,), share=0.5, chance=0.3),))
    slow = [fleet.run_round(pairs((0, 16)))[0].objective == 200.0 for _ in range(1000)]
    assert np.mean(slow) == pytest.approx(0.3, abs=0.05)


DISTURBED = {
    "noise": (Disturbances(noise=0.02), 380, 420),
    "stragglers": (Disturbances(noise=0.0, straggling=1.0), 400 / 3, 400 / 3),
    "a heavy tail": (Disturbances(noise=0.0, straggling=1.0, heavy_tail=True), 20, 400 / 1.2),
    "unequal nodes": (Disturbances(noise=0.0, node_spread=0.04), 320, 400),
    "hot nodes": (Disturbances(noise=0.0, node_drift=0.1), 350, 400),
    "hot racks": (Disturbances(noise=0.0, rack_drift=0.1), 350, 400),
    "an older generation": (Disturbances(noise=0.0, older=(OlderNodes(1.0),)), 200, 200),
    "congestion": (Disturbances(noise=0.0, congestion=1.0), 8 * 50 / 1.5, 8 * 50 / 1.5),
}


@cases("disturbances, least, most", DISTURBED.values(), ids=DISTURBED)
def test_a_disturbance_slows_healthy_nodes(disturbances, least, most) -> None:
    """By as much as it says."""
    reached = [run.objective or 0 for run in fleet_with(disturbances=disturbances).run_round(ACROSS)]
    assert least <= min(reached) * (1 + 1e-9)
    assert max(reached) <= most * (1 + 1e-9)
    assert min(reached) < 400


def test_what_lasts_is_the_same_for_all_methods() -> None:
    """The slower nodes, and the heat; not the noise."""
    wrong: dict[str, Any] = {"disturbances": Disturbances(older=(OlderNodes(0.5),), node_drift=0.1)}
    one, same, other = (fleet_with(method=method, **wrong) for method in ("a", "a", "b"))
    assert [*one.disturbed.generation] == [*other.disturbed.generation]
    assert [*one.disturbed.speed(3)] == [*other.disturbed.speed(3)]
    assert one.run_round(ACROSS) == same.run_round(ACROSS) != other.run_round(ACROSS)
    assert [*fleet_with(name="2", **wrong).disturbed.generation] != [*one.disturbed.generation]


def test_labels_may_be_wrong_and_missing() -> None:
    """A tenth of the nodes stands elsewhere, a quarter has no label and comes first; one is labelled by hand."""
    sites = labelled(NETWORK, Membership(mislabelled=0.1, unlabelled=0.25, labels={0: 3}), random.Random("1"))
    true = labelled(NETWORK, Membership(), random.Random("1"))
    assert true["n17"] == Site("n17", "rack2", "leaf1")
    assert [*true] == [f"n{node}" for node in range(64)]
    missing = [node for node, site in sites.items() if site.leaf is None]
    assert missing == [*sites][:16]
    wrong = {node for node, site in sites.items() if site.leaf not in (None, true[node].leaf)}
    assert 1 <= len(wrong) <= 7
    assert all(sites[node].rack is not None for node in wrong)
    assert sites.keys() == true.keys()
