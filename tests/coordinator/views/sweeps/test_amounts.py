import pytest

from muster.model import Topology, Verdict
from muster_coordinator.views.sweeps.amounts import amounts_of


def test_single_nodes_are_compared_with_single_nodes(bad_link):
    """The unit is that of the metric by which groups are compared."""
    amounts = amounts_of(bad_link, {})
    first, second, *_ = bad_link.rounds
    assert amounts.words(amounts.typical(first.groups[0])) == "10.2 GB/s"
    assert amounts.words(amounts.typical(second.groups[0])) == "91 GB/s"


def test_groups_that_failed_do_not_say_what_is_typical(group, sweep):
    """Nor does one alone."""
    failed = group("n1", "n2", at=1.0)
    places = tuple(place.model_copy(update={"verdict": Verdict.FAIL}) for place in failed.places)
    failed = failed.model_copy(update={"places": places})
    third, fourth = group("n3", "n4", at=10.0), group("n5", "n6", at=10.0)
    assert amounts_of(sweep([failed, third]), {}).typical(third) is None
    assert amounts_of(sweep([failed, third, fourth]), {}).typical(third) == 10.0


def test_who_is_slow_and_tried_often_does_not_say_what_is_typical(group, sweep):
    """Its runs are told beside the same amount by which they were judged."""
    slow = [group("n1", f"n{number}", at=1.0 + number / 100) for number in range(2, 8)]
    well = [group("n2", "n3", at=10.0), group("n4", "n5", at=10.0), group("n6", "n7", at=10.0)]
    assert amounts_of(sweep(well, *([it] for it in slow)), {}).typical(well[0]) == 10.0


@pytest.mark.parametrize(("controls", "typical"), [(1, None), (2, None), (3, 90.0)])
def test_nodes_alone_are_compared_only_when_the_sweep_compares_them(group, sweep, controls, typical):
    """Of 40 nodes two may lie: the sweep judges runs alone by three controls, and so does its explanation."""
    nodes = [f"n{number:02}" for number in range(40)]
    well = [group(one, other, at=10.0) for one, other in zip(nodes[2::2], nodes[3::2], strict=True)]
    suspects = [group("n00", "n01", at=1.0)]
    alone = [group("n00", at=50.0), *(group(node, at=90.0) for node in nodes[2 : 2 + controls])]
    assert amounts_of(sweep([*suspects, *well], alone), {}).typical(alone[0]) == typical


def test_groups_that_were_formed_again_say_nothing(group, sweep):
    """Another group stands in for each, and the sweep judges by that one alone."""
    again = group("n1", "n2", at=100.0, formed_again=True)
    others = [group("n3", "n4", at=10.0), group("n5", "n6", at=10.0)]
    assert amounts_of(sweep([again, *others]), {}).typical(others[0]) == 10.0


@pytest.mark.parametrize("metric", [None, "points"])
def test_without_a_unit_amounts_are_told_as_they_are(group, sweep, metric):
    """The unit stands at the end of a metric's name."""
    amounts = amounts_of(sweep([group("n1", "n2", at=7.0)], metric=metric), {})
    assert (amounts.words(7.0), amounts.words(None)) == ("7", "?")


def test_groups_inside_a_leaf_and_across_leaves_are_compared_among_themselves(group, sweep):
    """Where links between leaves carry less than a NIC, each kind has its own typical amount, as in the judgement."""
    leaves = {f"n{number:02}": f"l{number % 4}" for number in range(16)}
    places = {node: Topology(leaf=leaf) for node, leaf in leaves.items()}
    by_leaf = [[node for node in leaves if leaves[node] == leaf] for leaf in ("l0", "l1", "l2", "l3")]
    across = [
        group(*pair, at=5.0)
        for one, other in ((0, 1), (2, 3), (1, 2), (0, 3))
        for pair in zip(by_leaf[one], by_leaf[other], strict=True)
    ]
    inside = [group(*nodes[:2], at=10.0) for nodes in by_leaf]
    amounts = amounts_of(sweep(across, inside), places)
    assert (amounts.typical(across[0]), amounts.kind(across[0])) == (5.0, "across leaves")
    assert (amounts.typical(inside[0]), amounts.kind(inside[0])) == (10.0, "inside a leaf")


def test_without_leaves_groups_of_several_nodes_are_of_one_kind(group, sweep):
    """Nobody knows which of them cross leaves."""
    pair = group("n1", "n2", at=7.0)
    assert amounts_of(sweep([pair]), {}).kind(pair) == "of several nodes"


def test_kinds_of_hardware_are_compared_among_themselves(group, sweep):
    """As the record says which nodes were."""
    new = [group(f"n{n}", f"n{n + 1}", at=400.0) for n in range(0, 6, 2)]
    old = [group(f"o{n}", f"o{n + 1}", at=200.0) for n in range(0, 6, 2)]
    hardware = {kind: tuple(f"{kind[0]}{n}" for n in range(6)) for kind in ("new", "old")}
    amounts = amounts_of(sweep([*new, *old], hardware=hardware), {})
    assert (amounts.typical(new[0]), amounts.typical(old[0])) == (400.0, 200.0)
    assert amounts.kind(old[0]) == "of several nodes with hardware old"
