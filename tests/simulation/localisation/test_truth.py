"""Whether a named part has anything to do with what is at fault."""

from benchmarks.localisation.truth import Named, Truth
from tests.cases import cases

from muster_coordinator.localize.rules.culprit import Part

LEAF_OF = {f"n{node}": f"leaf{node // 2}" for node in range(8)}

NODE = Named(Part.NODE, ("n0",))
RAIL = Named(Part.RAIL, ("n0",), (3,))
LEAF = Named(Part.LEAF, ("leaf1",))
PATH = Named(Part.PATH, ("leaf1", "leaf2"))


@cases("fault, named, healthy", [
    (NODE, NODE, False),
    (NODE, Named(Part.NODE_LINK, ("n0",)), False),
    (NODE, Named(Part.NODE, ("n1",)), True),
    (NODE, Named(Part.LINK, ("n0", "n1")), False),
    (NODE, Named(Part.LEAF, ("leaf0",)), True),
    (RAIL, Named(Part.RAIL, ("n0",), (4,)), False),
    (LEAF, LEAF, False),
    (LEAF, Named(Part.LEAF, ("leaf0",)), True),
    (LEAF, PATH, False),
    (LEAF, Named(Part.PATH, ("leaf0", "leaf2")), True),
    (LEAF, Named(Part.NODE, ("n2",)), True),
    (LEAF, Named(Part.LINK, ("n0", "n2")), False),
    (PATH, PATH, False),
    (PATH, LEAF, True),
    (PATH, Named(Part.PATH, ("leaf1", "leaf3")), True),
    (PATH, Named(Part.LINK, ("n2", "n4")), False),
    (PATH, Named(Part.LINK, ("n2", "n6")), True),
    (PATH, Named(Part.LINK, ("n2", "n3")), True),
    (PATH, Named(Part.NODE_LINK, ("n2",)), True),
])  # fmt: skip
def test_what_is_named_is_healthy_if_nothing_in_it_is_at_fault(fault: Named, named: Named, healthy: bool) -> None:
    """A wrong name for what is bad accuses nothing healthy; a node behind a bad leaf is healthy."""
    truth = Truth(faults=frozenset({fault}), leaf_of=LEAF_OF)
    assert truth.is_healthy(named) is healthy
    assert truth.located(frozenset({named})) == (not healthy)


@cases("named, healthy", [
    (LEAF, False),
    (PATH, False),
    (Named(Part.LINK, ("n2", "n6")), False),
    (Named(Part.LINK, ("n2", "n3")), True),
    (Named(Part.PATH, ("leaf0", "leaf2")), True),
    (Named(Part.NODE_LINK, ("n2",)), True),
])  # fmt: skip
def test_a_bad_way_is_part_of_all_that_leaves_its_leaf(named: Named, healthy: bool) -> None:
    """No method can name it."""
    truth = Truth(faults=frozenset(), leaf_of=LEAF_OF, bad_ways=("leaf1",))
    assert truth.is_healthy(named) is healthy
    assert truth.located(frozenset({named})) == (not healthy)


@cases("named, healthy", [
    (LEAF, False),
    (PATH, False),
    (Named(Part.LINK, ("n2", "n3")), False),
    (Named(Part.LEAF, ("leaf0",)), True),
    (Named(Part.RAIL, ("n2",), (3,)), True),
])  # fmt: skip
def test_a_bad_switch_of_one_rail_is_part_of_its_leaf(named: Named, healthy: bool) -> None:
    """No method can name it, and the nodes behind it are healthy."""
    truth = Truth(faults=frozenset(), leaf_of=LEAF_OF, bad_switches=("leaf1",))
    assert truth.is_healthy(named) is healthy
    assert (truth.broken, truth.located(frozenset({named}))) == (1, not healthy)


def test_the_bad_nodes_are_those_with_a_fault_of_their_own() -> None:
    """Nodes behind a bad leaf are healthy."""
    assert Truth(faults=frozenset({RAIL, LEAF}), leaf_of=LEAF_OF).bad_nodes == {"n0"}
