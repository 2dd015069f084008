"""Who can stand in for a node that a group has to do without."""

from collections.abc import Iterable, Mapping

from muster_coordinator.localize.probe import Site


def nearest(node: str, idle: Iterable[str], sites: Mapping[str, Site]) -> str | None:
    """The first of the idle nodes at the same leaf, otherwise in the same rack; None when there is none.

    Nodes of which nobody said where they stand share a place.
    """
    here = sites[node]
    near = [other for other in idle if sites[other].rack == here.rack]
    return next((other for other in near if sites[other].leaf == here.leaf), near[0] if near else None)
