"""Group runs and sites as the tests of the rules write them."""

import itertools
from collections.abc import Mapping

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.model.probes import CheckAbilities, GroupRun, RunOutcome, Site

_numbers = itertools.count()

THREE_LEAVES = {
    f"{leaf}{number}": Site(f"{leaf}{number}", f"rack-{leaf}", leaf) for leaf in "abc" for number in range(1, 5)
}
"""Twelve nodes: a1 to a4 at leaf a, and so on."""


def nowhere(nodes: str) -> dict[str, Site]:
    """Nodes of one letter each whose leaves are unknown."""
    return {node: Site(node) for node in nodes}


def fleet(count: int, *, leaf_of: int = 0, places_itself: bool = True) -> dict[str, Site]:
    """Nodes n0, n1, … of which `leaf_of` share a leaf; with 0, the leaves are unknown."""
    leaves = {number: f"leaf{number // leaf_of}" if leaf_of else None for number in range(count)}
    return {f"n{number}": Site(f"n{number}", leaf=leaf, places_itself=places_itself) for number, leaf in leaves.items()}


def ran(*members: str, at: float = 1.5, rails: tuple[float, ...] = ()) -> GroupRun:
    """A run that went well at `at` GB/s, or at the lowest of these rails."""
    return GroupRun(
        group=f"g{next(_numbers)}",
        members=members,
        outcome=RunOutcome.GOOD,
        objective=min(rails, default=at),
        rails=rails,
    )


def crashed(*members: str, by: tuple[str, ...]) -> GroupRun:
    """A run in which the ranks of some members crashed."""
    return GroupRun(
        group=f"g{next(_numbers)}", members=members, outcome=RunOutcome.BAD, crashed=frozenset(by), hard=True
    )


def failed(*members: str) -> GroupRun:
    """A run with a verdict FAIL."""
    return GroupRun(group=f"g{next(_numbers)}", members=members, outcome=RunOutcome.BAD, hard=True)


def void(*members: str) -> GroupRun:
    """A run that says nothing."""
    return GroupRun(group=f"g{next(_numbers)}", members=members, outcome=RunOutcome.VOID)


def well(count: int, first: int = 2) -> list[GroupRun]:
    """Pairs of nodes that passed, from node `first` on."""
    return [ran(f"n{number}", f"n{number + 1}") for number in range(first, count - 1, 2)]


def diagnosed(sites: Mapping[str, Site], *runs: GroupRun, alone: bool = True) -> Diagnosis:
    """What follows from the runs, of a check that tells something about a node `alone`."""
    return Diagnosis(GroupEvidence(sites, runs), CheckAbilities(alone=alone))


def culprits(diagnosis: Diagnosis) -> set[tuple[Part, str]]:
    """What is at fault, without the rails."""
    return {(culprit.part, " ".join(culprit.of)) for culprit in diagnosis.culprits}
