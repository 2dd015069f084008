"""Which groups a sweep forms first, and how one that could not be formed is formed again."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from muster_coordinator.localize.adaptive import Adaptive
from muster_coordinator.localize.probe import Abilities, Probe, Site
from muster_coordinator.sweep_records import Ending
from muster_coordinator.sweeps.group import Group, Task
from muster_coordinator.sweeps.member import UNREACHABLE

MAX_REFORMED = 2
"""A whole sweep that loses members this often shall not keep the others from work any longer."""


NO_ABILITIES = Abilities(alone=False, by_rail=False)


class Strategy(StrEnum):
    """How a sweep groups nodes."""

    SINGLE = "single"
    PAIRS = "pairs"
    WHOLE = "whole"
    ADAPTIVE = "adaptive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A sweep that was asked for and found valid; `nodes` in topology order, with their `sites` where these are known.

    `abilities` say what the check can tell on these nodes.
    """

    id: str
    strategy: Strategy
    task: Task
    nodes: tuple[str, ...]
    sites: tuple[Site, ...] = ()
    abilities: Abilities = NO_ABILITIES


@dataclass(frozen=True, slots=True)
class Formation:
    """A group to be formed: members in rank order, why, and what was tried before."""

    members: tuple[str, ...]
    reason: str
    turned: bool = False
    reformed: int = 0


def first_round(plan: Plan) -> list[Formation]:
    """The groups that a sweep begins with; the odd node out of its pairs waits for the second round."""
    match plan.strategy:
        case Strategy.SINGLE:
            return [Formation((node,), "each node alone") for node in plan.nodes]
        case Strategy.WHOLE:
            return [Formation(plan.nodes, "all nodes together")]
        case Strategy.ADAPTIVE:
            return formations(adaptive(plan).next_groups((), frozenset()))
    # Drawn from the sweep's id, so that every sweep pairs differently and a replay pairs the same.
    places = list(range(len(plan.nodes)))
    random.Random(plan.id).shuffle(places)  # noqa: S311 - a draw of lots, not a secret
    pairs = sorted(sorted(places[i : i + 2]) for i in range(0, len(places) - 1, 2))
    return [Formation((plan.nodes[a], plan.nodes[b]), "paired by lot") for a, b in pairs]


def adaptive(plan: Plan) -> Adaptive:
    """The strategy of an adaptive sweep; nodes of which nobody said where they stand are part of it too."""
    known = {site.node: site for site in plan.sites}
    sites = {node: known.get(node, Site(node)) for node in plan.nodes}
    return Adaptive(sites, abilities=plan.abilities, seed=plan.id)


def formations(probes: Iterable[Probe]) -> list[Formation]:
    """The groups that a strategy wants."""
    return [Formation(probe.members, probe.reason) for probe in probes]


def form_again(group: Group, formation: Formation, strategy: Strategy) -> Formation | None:
    """How to form a group again that could not be formed; None when it shall rest there."""
    if group.ending is not Ending.NOT_FORMED:
        return None
    blamed = {blame.node: blame.reason for blame in group.blamed}
    first, *others = formation.members
    if blamed.get(first) == UNREACHABLE and not formation.turned:
        return Formation((*others, first), f"nobody could reach {first} as rank 0", True, formation.reformed)
    remaining = tuple(node for node in formation.members if node not in blamed)
    if strategy is not Strategy.WHOLE or formation.reformed >= MAX_REFORMED or len(remaining) < 2:
        return None
    without = ", ".join(f"{node} ({reason})" for node, reason in blamed.items())
    return Formation(remaining, f"formed again without {without}", formation.turned, formation.reformed + 1)
