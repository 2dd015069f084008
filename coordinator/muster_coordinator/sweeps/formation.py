"""The groups that a sweep forms, their task, and how a group is formed again that could not be formed.

The idea: most groups fail to form because of one member. The group is tried again without that member, with a spare
from the same leaf or rack if there is one. If no member could reach rank 0, another member gets rank 0 once. Prevents:
a is dropped for its firewall, although it reaches all others itself.

Example: a, b and c are invited, and b declines as busy. The spare d replaces b: a, d, c. If then no member reaches a,
the group is tried as d, c, a. After MAX_REFORMED replacements the group is not tried again.

Forming a group again takes O(members), plus O(nodes) for each spare.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from muster.check import Scope
from muster.model import Json
from muster_coordinator.model.probes import Probe, Site
from muster_coordinator.model.sweep_records import Blame
from muster_coordinator.sweeps.member import UNREACHABLE

MAX_REFORMED = 2
"""How often a group is formed again after losing members. Then its other nodes become free."""

Spares = Callable[[str], str | None]
"""Returns a node that can stand in for the given one, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTask:
    """The task of groups: a check with its parameters, its deadline, and the metric that groups are compared by.

    `rail_metric` names the metric with a number for each rail, which runs with the parameter `by_rail` report. A group
    is expected to take `expected_s` seconds from its invitation to its end. `scope` is the scope of the check.
    `judged_metric` is the objective if the check judges it against references.
    """

    check: str
    params: Json
    timeout_s: float
    objective: str | None
    cause: str
    rail_metric: str | None = None
    expected_s: float = 35.0
    scope: Scope = Scope.GROUP
    judged_metric: str | None = None


@dataclass(frozen=True, slots=True)
class Formation:
    """A group to be formed: its members in rank order, the reason, and what was tried before.

    `turned` says that another member got rank 0, `reformed` how often members were replaced. With `by_rail` the ranks
    exchange on one rail after the other.
    """

    members: tuple[str, ...]
    reason: str
    by_rail: bool = False
    turned: bool = False
    reformed: int = 0


def formations(probes: Iterable[Probe]) -> list[Formation]:
    """The groups that a strategy has planned."""
    return [Formation(probe.members, probe.reason, probe.by_rail) for probe in probes]


def form_again(formation: Formation, blamed: Iterable[Blame], spares: Spares) -> Formation | None:
    """How to form a group again that the blamed members kept from forming; None when it is not tried again."""
    why = {blame.node: blame.reason for blame in blamed}
    first, *others = formation.members
    if others and why.get(first) == UNREACHABLE and not formation.turned:
        reason = f"nobody could reach {first} as rank 0"
        return replace(formation, members=(*others, first), reason=reason, turned=True)
    if len(formation.members) == 2 and UNREACHABLE in why.values():
        return None  # both directions were tried, so this is evidence about the path between the two
    if formation.reformed == MAX_REFORMED:
        return None
    again = without(formation, why, spares)
    return again and replace(again, reason=f"formed again {again.reason}", reformed=formation.reformed + 1)


def without(formation: Formation, missing: Mapping[str, str], spares: Spares) -> Formation | None:
    """The group with spares in place of the `missing` nodes; None if fewer than two members remain."""
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
    """The first idle node with the same hardware at the same leaf, otherwise in the same rack; None if there is none.

    Nodes whose places are unknown count as one place.
    """
    here = sites[node]
    alike = (other for other in idle if sites[other].hardware_kind == here.hardware_kind)
    near = [other for other in alike if sites[other].rack == here.rack]
    return next((other for other in near if sites[other].leaf == here.leaf), near[0] if near else None)
