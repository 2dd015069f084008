"""Which partner a suspect gets."""

from tests.coordinator.localize.runs import fleet

from muster_coordinator.localize.planning.partners import MOST_NEAR, PartnerPool
from muster_coordinator.model.probes import Site

SEEDS = [str(seed) for seed in range(20)]


def pool(sites: dict[str, Site], seed: str, *, without: str) -> PartnerPool:
    """All nodes but one, of which none had a bad run."""
    return PartnerPool((node for node in sites if node != without), sites, seed, sites.keys())


def leaves_of_partners(sites: dict[str, Site], node: str, met: set[str], healthy: set[str]) -> set[str | None]:
    """Where the next partner may come from, over many draws."""
    partners = (pool(sites, seed, without=node).take_near(node, met, healthy) for seed in SEEDS)
    return {sites[partner].leaf for partner in partners if partner is not None}


def test_partners_come_from_its_own_leaf_until_a_healthy_one_does() -> None:
    """But not more than three of them: liars may declare the leaf of their victim."""
    sites = fleet(32, leaf_of=8)
    assert leaves_of_partners(sites, "n0", set(), set()) == {"leaf0"}
    assert "leaf0" not in leaves_of_partners(sites, "n0", {"n1"}, {"n1"})
    near = {f"n{number}" for number in range(1, MOST_NEAR + 1)}
    assert leaves_of_partners(sites, "n0", near - {"n1"}, set()) == {"leaf0"}
    assert "leaf0" not in leaves_of_partners(sites, "n0", near, set())


def test_leaves_of_liars_do_not_attract_a_suspect() -> None:
    """n0 has met the two real leaves; the others were made up by nodes that declare a leaf each."""
    sites = fleet(40, leaf_of=19)
    sites |= {node: Site(node, leaf=f"leaf of {node}") for node in ("n38", "n39")}
    assert leaves_of_partners(sites, "n0", {"n1", "n20"}, {"n1"}) & {"leaf0", "leaf1"}


def test_partners_are_near_where_leaves_are_unknown() -> None:
    """Neighbours in topology order usually share a leaf; after one of them, partners come from anywhere."""
    sites = fleet(60)
    first = {pool(sites, seed, without="n30").take_near("n30", set(), set()) for seed in SEEDS}
    assert first <= {"n29", "n31"}
    then = {pool(sites, seed, without="n30").take_near("n30", {"n29"}, set()) for seed in SEEDS}
    assert len(then) > 10


def test_a_leaf_with_most_nodes_does_not_keep_its_suspects() -> None:
    """n0 has failed with a healthy node of its own leaf, which has 40 of 64 nodes. Others tell more."""
    sites = {f"n{number}": Site(f"n{number}", leaf=f"leaf{max(number - 32, 0) // 8}") for number in range(64)}
    assert leaves_of_partners(sites, "n0", {"n1", "n2"}, {"n1"}) == {"leaf1", "leaf2", "leaf3"}
