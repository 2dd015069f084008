"""Which nodes of a sweep are compared with each other."""

from tests.cases import cases

from muster_coordinator.localize.evidence.hardware import KnownHardware
from muster_coordinator.model.probes import Site


def of(**kinds: int) -> KnownHardware:
    """A number of nodes of each kind; those of kind `none` have not declared any."""
    names = [(f"{kind}{number}", kind) for kind, count in kinds.items() for number in range(count)]
    return KnownHardware({node: Site(node, hardware_kind=None if kind == "none" else kind) for node, kind in names})


@cases(
    ("kinds", "compared"),
    [
        ({"new": 8}, {"new": 8}),
        ({"new": 4, "old": 4}, {"new": 4, "old": 4}),
        ({"new": 60, "old": 4}, {"new": 60, "old": 4}),
        ({"new": 13, "old": 3}, {"new": 16}),
        ({"new": 8, "old": 5, "oldest": 1}, {"new": 9, "old": 5}),
        ({"new": 3, "old": 3}, {"old": 6}),
        ({"new": 6, "none": 5}, {"new": 6, None: 5}),
        ({"new": 6, "none": 1}, {"new": 7}),
        ({"none": 6}, {None: 6}),
    ],
)
def test_four_nodes_of_a_kind_are_compared_with_each_other(kinds: dict[str, int], compared: dict) -> None:
    """Fewer count as the most frequent kind."""
    hardware = of(**kinds)
    assert {kind: len(nodes) for kind, nodes in hardware.kinds.items()} == compared
    assert hardware.are_several == (len(compared) > 1)
    assert all(node in hardware.peers(node) for node in hardware.sites)


def test_the_kinds_of_a_group_are_those_as_which_its_members_count() -> None:
    """A rare node in a group makes no other kind of it."""
    hardware = of(new=5, old=4, rare=1)
    assert hardware.kinds_of(["new0", "rare0"]) == {"new"}
    assert hardware.kinds_of(["old0", "rare0"]) == {"new", "old"}
    assert [*hardware.by_kind(["old1", "rare0", "old0", "new2"])] == [["old1", "old0"], ["rare0", "new2"]]
    assert hardware.rare == {"rare": ("rare0",)}
