"""Who can stand in for a node."""

from tests.cases import cases

from muster_coordinator.model.probes import Site
from muster_coordinator.sweeps.formation import nearest_spare

PLACES = {
    "a": ("r1", "l1"),
    "b": ("r1", "l2"),
    "c": ("r1", "l1"),
    "d": ("r2", "l3"),
    "x": (None, None),
    "y": (None, None),
}
SITES = {node: Site(node, *place) for node, place in PLACES.items()}


@cases(
    ("node", "idle", "spare"),
    [
        ("a", "bcd", "c"),
        ("a", "bd", "b"),
        ("a", "d", None),
        ("a", "", None),
        ("a", "xd", None),
        ("x", "ay", "y"),
    ],
)
def test_the_nearest_is_behind_the_same_leaf_or_in_the_same_rack(node: str, idle: str, spare: str | None) -> None:
    """Never in another rack; nodes of which nobody said where they stand share a place."""
    assert nearest_spare(node, iter(idle), SITES) == spare


def test_a_spare_has_the_same_hardware() -> None:
    """With another one, the group would be as slow as the slower kind."""
    sites = {**SITES, "c": Site("c", "r1", "l1", "old")}
    assert nearest_spare("a", iter("cb"), sites) == "b"
    assert nearest_spare("a", iter("c"), sites) is None
