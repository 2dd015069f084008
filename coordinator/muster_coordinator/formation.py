"""Which groups a sweep forms first, and how one that could not be formed is formed again."""

import random
from dataclasses import dataclass
from enum import StrEnum

from muster_coordinator.group import Group, Task
from muster_coordinator.member import UNREACHABLE
from muster_coordinator.records import Ending

MAX_REFORMED = 2
"""A whole sweep that loses members this often shall not keep the others from work any longer."""


class Strategy(StrEnum):
    """How a sweep groups nodes."""

    SINGLE = "single"
    PAIRS = "pairs"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A sweep that was asked for and found valid; `nodes` in topology order."""

    id: str
    strategy: Strategy
    task: Task
    nodes: tuple[str, ...]


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
    # Drawn from the sweep's id, so that every sweep pairs differently and a replay pairs the same.
    places = list(range(len(plan.nodes)))
    random.Random(plan.id).shuffle(places)  # noqa: S311 - a draw of lots, not a secret
    pairs = sorted(sorted(places[i : i + 2]) for i in range(0, len(places) - 1, 2))
    return [Formation((plan.nodes[a], plan.nodes[b]), "paired by lot") for a, b in pairs]


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
