"""Which groups a sweep forms, and how one that could not be formed is formed again."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from muster_coordinator.model.probes import Probe, Site
from muster_coordinator.model.sweep_records import Blame
from muster_coordinator.sweeps.member import UNREACHABLE

MAX_REFORMED = 2
"""A group that loses members this often shall not keep the others from work any longer."""

Spares = Callable[[str], str | None]
"""Hands out a node that can stand in for another, if there is one."""


@dataclass(frozen=True, slots=True)
class Formation:
    """A group to be formed: members in rank order, why, and what was tried before.

    With `by_rail` its ranks exchange on one rail after the other.
    """

    members: tuple[str, ...]
    reason: str
    by_rail: bool = False
    turned: bool = False
    reformed: int = 0


def formations(probes: Iterable[Probe]) -> list[Formation]:
    """The groups that a strategy wants."""
    return [Formation(probe.members, probe.reason, probe.by_rail) for probe in probes]


def form_again(formation: Formation, blamed: Iterable[Blame], spares: Spares) -> Formation | None:
    """How to form a group that the blamed members kept from forming; None when it shall rest there."""
    why = {blame.node: blame.reason for blame in blamed}
    first, *others = formation.members
    if others and why.get(first) == UNREACHABLE and not formation.turned:
        reason = f"nobody could reach {first} as rank 0"
        return replace(formation, members=(*others, first), reason=reason, turned=True)
    if len(formation.members) == 2 and UNREACHABLE in why.values():
        return None  # tried both ways, it is evidence about what lies between the two
    if formation.reformed == MAX_REFORMED:
        return None
    again = without(formation, why, spares)
    return again and replace(again, reason=f"formed again {again.reason}", reformed=formation.reformed + 1)


def without(formation: Formation, missing: Mapping[str, str], spares: Spares) -> Formation | None:
    """The group without the nodes that are `missing`, with spares in their place; None when that is no group."""
    if len(formation.members) < 2:
        return None
    stand_ins = {node: spares(node) for node in missing}
    members = tuple(there for node in formation.members if (there := stand_ins.get(node, node)) is not None)
    if len(members) < 2:
        return None
    lost = ", ".join(f"{node} ({reason})" for node, reason in missing.items())
    found = [f"{spare} stands in for {node}" for node, spare in stand_ins.items() if spare is not None]
    return replace(formation, members=members, reason="; ".join((f"without {lost}", *found)))


def nearest_spare(node: str, idle: Iterable[str], sites: Mapping[str, Site]) -> str | None:
    """The first of the idle nodes at the same leaf, otherwise in the same rack; None if there is none.

    Nodes whose places are unknown count as one place.
    """
    here = sites[node]
    near = [other for other in idle if sites[other].rack == here.rack]
    return next((other for other in near if sites[other].leaf == here.leaf), near[0] if near else None)
