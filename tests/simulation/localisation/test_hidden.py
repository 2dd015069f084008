"""Which faults some sweep can name, on a network of flows with 16 nodes at four leaves."""

import random
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import cases

np = pytest.importorskip("numpy")

from benchmarks.fabric.collectives import Collective  # noqa: E402  it needs numpy
from benchmarks.fabric.defects import BrokenPart, Defect  # noqa: E402  it needs numpy
from benchmarks.fabric.disturbances import Disturbances, OlderNodes  # noqa: E402  it needs numpy
from benchmarks.fabric.membership import labelled, name_of  # noqa: E402  it needs numpy
from benchmarks.fabric.network import FatTree, Wiring, even_leaves  # noqa: E402  it needs numpy
from benchmarks.fabric.swept_fleet import FleetSetup  # noqa: E402  it needs numpy
from benchmarks.localisation.hidden import KnownFleet  # noqa: E402  it needs numpy
from benchmarks.localisation.scenarios import truth_of  # noqa: E402  it needs numpy
from benchmarks.localisation.truth import Hidden  # noqa: E402

NODE, LINK, RAIL, LEAF, PATH = (
    Defect(part=part, of=of, share=0.4)
    for part, of in [
        (BrokenPart.NODE, (0,)),
        (BrokenPart.LINK, (0,)),
        (BrokenPart.RAIL, (0, 3)),
        (BrokenPart.LEAF, (0,)),
        (BrokenPart.PATH, (0, 1)),
    ]
)
ALL = (NODE, LINK, RAIL, LEAF, PATH)

NOBODY: frozenset[int] = frozenset()
EVERYBODY = frozenset(range(16))


def fleet_of(
    *defects: Defect,
    busy: frozenset[int] = NOBODY,
    unlabelled: frozenset[int] = NOBODY,
    old: frozenset[int] = NOBODY,
    speed: float = 0.5,
    collective: Collective = Collective.RING,
    **wiring: Any,
) -> KnownFleet:
    """Nodes 0 to 3 stand at leaf 0, 4 to 7 at leaf 1, and so on. The `old` ones reach `speed` of normal."""
    setup = FleetSetup(
        network=FatTree(Wiring(leaves=even_leaves(16), **wiring)),
        defects=defects,
        disturbances=Disturbances(older=(OlderNodes(0.5, speed),)),
        collective=collective,
    )
    sites = labelled(setup.network, setup.membership, random.Random("labels"))
    sites |= {name_of(node): replace(sites[name_of(node)], leaf=None) for node in unlabelled}
    generation = [int(node in old) for node in range(16)]
    return KnownFleet(setup=setup, sites=sites, busy=frozenset(map(name_of, busy)), generation=generation)


@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("wiring", [{}, {"oversubscription": 2.0}, {"ways": 4}, {"uplink_speed": 0.4}])
def test_links_that_carry_less_hide_nothing(collective, wiring: dict[str, Any]) -> None:
    """One pair runs alone, and a pair inside a leaf crosses none of them. What a bad path carries is less still."""
    assert [fleet_of(collective=collective, **wiring).reason_hidden(defect) for defect in ALL] == [None] * 5


@cases("defect, busy, reason", [
    (NODE, {0}, Hidden.ABSENT),
    (LINK, {0}, Hidden.ABSENT),
    (RAIL, {0}, Hidden.ABSENT),
    (NODE, EVERYBODY - {0, 9}, None),
    (LEAF, {0}, None),
    (LEAF, {0, 1}, Hidden.ABSENT),
    (LEAF, EVERYBODY - {0, 1, 2}, None),
    (PATH, {0, 1, 2}, None),
    (PATH, {4, 5, 6, 7}, Hidden.ABSENT),
])  # fmt: skip
def test_who_declines_shows_nothing(defect: Defect, busy: set[int], reason: Hidden | None) -> None:
    """A leaf needs three nodes that take part, a path one at each end."""
    assert fleet_of(busy=frozenset(busy)).reason_hidden(defect) is reason


@cases("defect, busy, unlabelled, reason", [
    (NODE, set(), EVERYBODY, None),
    (RAIL, set(), EVERYBODY, None),
    (LEAF, set(), {0}, None),
    (LEAF, set(), {0, 1}, Hidden.UNLABELLED),
    (LEAF, {3}, {0}, Hidden.UNLABELLED),
    (LEAF, set(), EVERYBODY - {0, 1, 2, 3}, None),
    (PATH, set(), {0, 1, 2, 5, 6, 7}, None),
    (PATH, set(), {0, 1, 2, 3}, Hidden.UNLABELLED),
    (PATH, {0}, {1, 2, 3}, Hidden.UNLABELLED),
])  # fmt: skip
def test_a_leaf_without_labels_has_no_name(
    defect: Defect, busy: set[int], unlabelled: set[int], reason: Hidden | None
) -> None:
    """Only labels of nodes that take part count. A node has a name without one."""
    fleet = fleet_of(busy=frozenset(busy), unlabelled=frozenset(unlabelled))
    assert fleet.reason_hidden(defect) is reason


def test_a_wrong_label_names_another_leaf() -> None:
    """Two nodes with the right label are too few for a leaf, whatever the others say."""
    fleet = fleet_of()
    wrong = {node: replace(fleet.sites[node], leaf="leaf2") for node in ("n0", "n1")}
    mislabelled = replace(fleet, sites={**fleet.sites, **wrong})
    assert mislabelled.reason_hidden(LEAF) is Hidden.UNLABELLED


@cases("part, share, old, speed, reason", [
    (BrokenPart.LINK, 0.6, {0}, 0.5, Hidden.HARMLESS),
    (BrokenPart.LINK, 0.4, {0}, 0.5, None),
    (BrokenPart.LINK, 0.6, {0}, 0.75, None),
    (BrokenPart.LINK, 0.6, EVERYBODY - {0}, 0.5, Hidden.HARMLESS),
    (BrokenPart.LINK, 0.6, EVERYBODY - {0, 9}, 0.5, None),
    (BrokenPart.NODE, 0.6, {0}, 0.5, None),
    (BrokenPart.LEAF, 0.6, EVERYBODY, 0.5, Hidden.HARMLESS),
    (BrokenPart.LEAF, 0.6, {0, 1, 2}, 0.5, None),
    (BrokenPart.LEAF, 0.6, EVERYBODY - {0, 1}, 0.5, None),
    (BrokenPart.PATH, 0.6, {0, 1, 2, 3}, 0.5, Hidden.HARMLESS),
    (BrokenPart.PATH, 0.6, {0, 1, 2, 4, 5, 6}, 0.5, None),
    (BrokenPart.LINK, 0.0, {0}, 0.5, None),
])  # fmt: skip
def test_a_part_may_give_enough_for_old_nodes(
    part: BrokenPart, share: float, old: set[int], speed: float, reason: Hidden | None
) -> None:
    """One pair that is slower is enough, whoever the partner is. What is bad in a node itself slows old ones, too."""
    of = (0, 1) if part is BrokenPart.PATH else (0,)
    fleet = fleet_of(old=frozenset(old), speed=speed)
    assert fleet.reason_hidden(Defect(part=part, of=of, share=share)) is reason


def test_chance_hides_nothing() -> None:
    """A fault that comes and goes shows in some sweep; a crash fails a pair."""
    rare = Defect(part=BrokenPart.LINK, of=(0,), share=0.4, chance=0.01)
    crash = Defect(part=BrokenPart.NODE, of=(0,), crashes=True)
    assert [fleet_of().reason_hidden(defect) for defect in (rare, crash)] == [None, None]


def test_the_truth_has_all_faults_and_says_which_are_hidden() -> None:
    """A hidden fault stays a fault, so that naming it accuses nothing healthy."""
    truth = truth_of(fleet_of(NODE, PATH, unlabelled=EVERYBODY))
    assert {fault.part.name for fault in truth.faults} == {"NODE", "PATH"}
    assert {fault.part.name: reason for fault, reason in truth.hidden.items()} == {"PATH": Hidden.UNLABELLED}
    assert {fault.part.name for fault in truth.visible} == {"NODE"}
    assert all(not truth.is_healthy(fault) for fault in truth.faults)
