"""The pairs that cross paths between leaves of different hardware."""

from tests.coordinator.localize.runs import diagnosed, ran

from muster_coordinator.localize.planning.between_kinds import between_kinds
from muster_coordinator.localize.planning.follow_up import follow_up
from muster_coordinator.model.probes import Site


def by_leaf(nodes: int, **leaves: str) -> dict[str, Site]:
    """Leaves with this number of nodes of one kind: with `a="new"`, a0, a1 and so on are new."""
    names = ((f"{leaf}{n}", leaf, kind) for leaf, kind in leaves.items() for n in range(nodes))
    return {node: Site(node, leaf=leaf, hardware_kind=kind) for node, leaf, kind in names}


def paths_of(probes, sites):
    return sorted("".join(sorted(sites[node].leaf for node in probe.members)) for probe in probes)


def test_every_path_between_kinds_is_crossed_once() -> None:
    """After the nodes have passed with their own kind. Then nothing is left to do."""
    sites = by_leaf(4, a="new", b="new", c="old", d="old")
    pairs = [f"{leaf}{n} {leaf}{n + 1}" for leaf in "abcd" for n in (0, 2)]
    passed = [*(ran(*pair.split()) for pair in pairs), ran("a0", "b0"), ran("c0", "d0")]
    probes = follow_up(diagnosed(sites, *passed), frozenset(), seed="s", passes=1)
    assert paths_of(probes, sites) == ["ac", "ad", "bc", "bd"]
    assert len({node for probe in probes for node in probe.members}) == 8
    crossed = [ran(*probe.members) for probe in probes]
    assert not follow_up(diagnosed(sites, *passed, *crossed), frozenset(), seed="s", passes=1)


def test_a_quarter_of_a_leaf_crosses_them_in_one_sweep() -> None:
    """Of 32 nodes at a leaf eight, although it has nine such paths."""
    others = {f"old{n}": "old" for n in range(9)}
    sites = by_leaf(32, new="new", **others)
    diagnosis = diagnosed(sites, ran("new0", "new1"))
    probes = [*between_kinds(diagnosis.evidence, sites, "s")]
    assert len(probes) == len({*paths_of(probes, sites)}) == 8
    again = diagnosed(sites, *(ran(*probe.members) for probe in probes))
    assert not [*between_kinds(again.evidence, sites, "s")]


def test_leaves_of_three_nodes_or_of_both_kinds_need_no_pair() -> None:
    """Three pairs convict no path, and where both kinds stand at one leaf, pairs of one kind cross its paths."""
    small = by_leaf(3, a="new", b="old", c="old")
    assert not [*between_kinds(diagnosed(small).evidence, small, "s")]
    mixed = by_leaf(4, a="new", b="old", c="old") | {"a4": Site("a4", leaf="a", hardware_kind="old")}
    assert not [*between_kinds(diagnosed(mixed).evidence, mixed, "s")]
