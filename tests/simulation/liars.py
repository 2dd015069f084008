"""A simulation of lying nodes: how they spoil groups on a simulated fabric, and what they claim to be.

A liar decides what its own ranks report, and what happens to the ranks of its partners: it can make them slow, make
them crash or wait, or send them wrong elements. It cannot make an honest partner report more than that measures. So
only a group of liars alone can claim any bandwidth. Liars know each other, see every group of each of them, and agree
on whom to accuse. Partners are drawn at random, and no claim of a liar changes how often it is drawn.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from benchmarks.localisation.fabric import Fabric, Faults, lots_of, sites_of

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.strategies.adaptive import Adaptive
from muster_coordinator.model.probes import CheckAbilities, GroupRun, Probe, RunOutcome, Site

Sites = dict[str, Site]

IMPOSSIBLE = 1e29

NOTHING: dict[str, Any] = {"outcome": RunOutcome.VOID, "objective": None}
FAILED: dict[str, Any] = {"outcome": RunOutcome.BAD, "objective": None, "hard": True}

ALONE: dict[str, dict[str, Any]] = {
    "honest": {},
    "impossible": {"outcome": RunOutcome.GOOD, "objective": IMPOSSIBLE},
    "slow": {"outcome": RunOutcome.GOOD, "objective": 0.3},
    "fail": FAILED,
    "nothing": NOTHING,
}
"""What a liar reports of a run alone."""

SPOILT: dict[str, dict[str, Any]] = {
    "slow": {"outcome": RunOutcome.GOOD, "objective": 0.5},
    "fail": FAILED,
    "echo": {"outcome": RunOutcome.BAD, "objective": None},
    "nothing": NOTHING,
    "zero": {"outcome": RunOutcome.GOOD, "objective": 0.0},
    "rails": {"outcome": RunOutcome.GOOD, "objective": 0.4, "rails": (1.0, 1.0, 0.01)},
    "same host": {"outcome": RunOutcome.GOOD, "objective": 0.3, "on_one_host": True},
}
"""What becomes of a run with other nodes that a liar spoils."""

CRASHES = ("crash", "crash partner", "crash all")
"""Whose ranks crash in a spoilt run: the liar's, those of a partner, or all."""

TOGETHER = (*SPOILT, *CRASHES)


@dataclass
class Liars:
    """Nodes that lie by a strategy; `victims` are the nodes that they have agreed to accuse."""

    nodes: frozenset[str]
    strategy: str
    lots: random.Random
    victims: set[str] = field(default_factory=set)
    style: str = "slow"

    def decide_to_spoil(self, probe: Probe, number: int) -> bool:
        """Whether they spoil this run; it is the `number`-th run of the sweep in which they meet honest nodes."""
        honest = {*probe.members} - self.nodes
        match self.strategy:
            case "random":
                return self.lots.random() < 0.5
            case "always":
                return True
            case "targeted":
                return bool(honest & self.victims)
            case "first partners":
                if len(self.victims) < len(self.nodes) and not self.has_slept(number):
                    self.victims |= honest
                return bool(honest & self.victims)
            case "sleeper":
                return self.has_slept(number)
        raise AssertionError(self.strategy)

    def has_slept(self, number: int) -> bool:
        """Whether the first round is over, in which each of them had one run."""
        return number > len(self.nodes)


STRATEGIES = ("random", "always", "targeted", "first partners", "sleeper")


class LyingFabric(Fabric):
    """Runs groups with lying members. `hurt` has the liars that spoilt a run of each honest node."""

    def __init__(self, sites: Sites, faults: Faults, liars: Liars, lots: random.Random) -> None:
        super().__init__(sites, faults, 0.02, lots)
        self.hurt: dict[str, set[str]] = {}
        self._liars = liars
        self._accused = 0

    def run(self, probe: Probe) -> GroupRun:
        """The true result of the group, or what its liars make of it."""
        run, lying = super().run(probe), self._liars.nodes.intersection(probe.members)
        if not lying:
            return run
        if lying.issuperset(probe.members):
            return self._among_themselves(run)
        self._accused += 1
        if not self._liars.decide_to_spoil(probe, self._accused):
            return run
        for node in {*probe.members} - lying:
            self.hurt.setdefault(node, set()).update(lying)
        return self._spoilt(run, min(lying))

    def _among_themselves(self, run: GroupRun) -> GroupRun:
        """They report any result, alone or for each other."""
        told = self._liars.lots.choice([*ALONE]) if len(run.members) == 1 else "impossible"
        return replace(run, **ALONE[told])

    def _spoilt(self, run: GroupRun, liar: str) -> GroupRun:
        lots = self._liars.lots
        style = lots.choice(TOGETHER) if self._liars.style == "any" else self._liars.style
        if style in SPOILT:
            return replace(run, **SPOILT[style])
        by = {"crash": (liar,), "crash partner": (lots.choice(run.others(liar)),), "crash all": run.members}[style]
        return replace(run, **FAILED, rails=(), crashed=frozenset(by))


Placed = Callable[[Sites, frozenset[str], str], Sites]


def where_they_are(sites: Sites, liars: frozenset[str], victim: str) -> Sites:
    """All nodes claim their true places."""
    return sites


def nowhere(sites: Sites, liars: frozenset[str], victim: str) -> Sites:
    """No node claims a place."""
    return {node: replace(site, rack=None, leaf=None) for node, site in sites.items()}


def beside_the_victim(sites: Sites, liars: frozenset[str], victim: str) -> Sites:
    """All liars claim the rack and leaf of the node that they blame."""
    beside = {node: replace(sites[node], rack=sites[victim].rack, leaf=sites[victim].leaf) for node in liars}
    return _in_order({**sites, **beside})


def at_a_leaf_of_their_own(sites: Sites, liars: frozenset[str], victim: str) -> Sites:
    """All liars claim the same leaf, at which no other node stands."""
    return _in_order({**sites, **{node: replace(sites[node], rack="evil", leaf="evil") for node in liars}})


def each_at_another_leaf(sites: Sites, liars: frozenset[str], victim: str) -> Sites:
    """Each liar claims a leaf at which no other node stands."""
    return _in_order({**sites, **{node: replace(sites[node], rack=node, leaf=f"leaf of {node}") for node in liars}})


def all_of_one_kind(sites: Sites, liars: frozenset[str], victim: str) -> Sites:
    """Half of the honest nodes have other hardware, and all liars claim the hardware of the node that they blame."""
    honest = [node for node in sites if node not in liars | {victim}]
    others = {*honest[::2]}
    return {node: replace(site, hardware_kind="other" if node in others else "its") for node, site in sites.items()}


PLACES: tuple[Placed, ...] = (
    where_they_are,
    nowhere,
    beside_the_victim,
    at_a_leaf_of_their_own,
    each_at_another_leaf,
    all_of_one_kind,
)


def _in_order(sites: Sites) -> Sites:
    ordered = sorted(sites.values(), key=lambda site: (site.rack or "", site.leaf or "", site.node))
    return {site.node: site for site in ordered}


@dataclass(frozen=True)
class Ended:
    """The result of a sweep with liars."""

    liars: Liars
    fabric: LyingFabric
    diagnosis: Diagnosis
    rounds: int

    @property
    def accused(self) -> frozenset[str]:
        """The healthy nodes that are convicted."""
        return self.diagnosis.convicted - self.liars.nodes

    @property
    def fabric_accused(self) -> set[tuple[str, ...]]:
        """The healthy leaves, paths and links that are convicted; a link at whose ends a liar stands does not count."""
        return {
            culprit.of
            for culprit in (*self.diagnosis.leaves.convicted.values(), *self.diagnosis.paths.convicted.values())
            if culprit.part is not Part.LINK or self.liars.nodes.isdisjoint(culprit.of)
        }

    @cached_property
    def suspected(self) -> set[str]:
        """The nodes that are convicted or inconclusive, or at the end of a convicted link."""
        links = (culprit.of for culprit in self.diagnosis.paths.convicted.values() if culprit.part is Part.LINK)
        return {
            *self.diagnosis.convicted,
            *self.diagnosis.inconclusive,
            *self.diagnosis.leaves.behind,
            *(node for ends in links for node in ends),
        }

    @property
    def unnoticed(self) -> dict[str, set[str]]:
        """For each honest node that a lie left suspected: its liars, if none of them is suspected too."""
        hurt = {node: by for node, by in self.fabric.hurt.items() if node in self.suspected}
        return {node: by for node, by in hurt.items() if self.suspected.isdisjoint(by)}


@cache
def true_sites(count: int) -> Sites:
    """A fleet of `count` nodes at the places that they declare; nobody changes it."""
    return {node: replace(site, places_itself=True) for node, site in sites_of(count).items()}


def sweep(
    seed: str, nodes: int, *, strategy: str, style: str, placed: Placed, alone: bool = True, faults: int = 0
) -> Ended:
    """Simulates a sweep of `nodes` nodes: a twentieth of them lies, and `faults` of the others are slow."""
    lots = lots_of(f"liars {seed} {nodes} {strategy} {style} {placed.__name__} {alone}")
    true = true_sites(nodes)
    lying = frozenset(lots.sample([*true], max(1, nodes // 20)))
    honest = [node for node in true if node not in lying]
    victim = lots.choice(honest)
    liars = Liars(lying, strategy, lots, {victim} if strategy == "targeted" else set(), style)
    said = placed(true, lying, victim)
    slow = Faults(nodes=dict.fromkeys(lots.sample(honest, faults), 0.5))
    adaptive = Adaptive(said, CheckAbilities(alone=alone, by_rail=alone), seed=seed)
    fabric = LyingFabric(true, slow, liars, lots)
    runs: list[GroupRun] = []
    rounds = 0
    while rounds < adaptive.max_rounds and (probes := adaptive.next_groups(runs, frozenset())):
        runs += [fabric.run(probe) for probe in probes]
        rounds += 1
    return Ended(liars, fabric, adaptive.diagnose(runs), rounds)
