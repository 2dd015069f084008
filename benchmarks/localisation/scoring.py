"""What a strategy costs and how right it is, on one case of a simulated fabric."""

import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from benchmarks.localisation.fabric import Fabric, Faults

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.strategies.strategy import RoundPlanner
from muster_coordinator.model.probes import GroupRun, Probe, Site

OF_NODE = frozenset((Part.NODE, Part.NODE_LINK, Part.RAIL))

KIB_PER_MIB = 1024


class Named(NamedTuple):
    """A part that is, or is said to be, at fault."""

    part: Part
    of: tuple[str, ...]
    rails: tuple[int, ...] = ()


class Answer(NamedTuple):
    """What a strategy says in the end; `open` are the nodes that it cannot tell about."""

    named: frozenset[Named]
    open: int


@dataclass(slots=True)
class Played:
    """The rounds of a sweep, what they showed, and the most processor time that planning one took, in seconds."""

    rounds: list[list[Probe]]
    runs: list[GroupRun]
    slowest_plan_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One case. `node_runs` counts each node once for every group that it was in.

    `exact` counts the faults that were named as what they are, `located` the bad nodes that were named, `accused` the
    nodes that were named though nothing of them is at fault, `mistaken` all else that was. `crossed` counts the pairs
    of leaves that groups had members at, of all `paths`. `peak_mib` is what the process has held at most so far.
    """

    nodes: int
    rounds: int
    groups: int
    node_runs: int
    slowest_plan_s: float
    peak_mib: float
    faults: int
    exact: int
    bad_nodes: int
    located: int
    accused: int
    mistaken: int
    named: int
    open: int
    paths: int
    crossed: int


def truth_of(faults: Faults) -> frozenset[Named]:
    """Everything that is at fault."""
    return frozenset(
        (
            *(Named(Part.NODE, (node,)) for node in faults.nodes),
            *(Named(Part.NODE_LINK, (node,)) for node in faults.links),
            *(Named(Part.RAIL, (node,), (rail,)) for node, rail in faults.rails),
            *(Named(Part.LEAF, (leaf,)) for leaf in faults.leaves),
            *(Named(Part.PATH, path) for path in faults.paths),
        )
    )


def play(policy: RoundPlanner, fabric: Fabric) -> Played:
    """Runs rounds as the policy wants them, until it wants no more or has had as many as it may."""
    played = Played([], [], 0.0)
    while len(played.rounds) < policy.max_rounds:
        began = time.process_time()
        probes = policy.next_groups(played.runs, frozenset())
        played.slowest_plan_s = max(played.slowest_plan_s, time.process_time() - began)
        if not probes:
            break
        played.rounds.append(probes)
        played.runs += [fabric.run(probe) for probe in probes]
    return played


def score(sites: dict[str, Site], played: Played, answer: Answer, faults: Faults) -> Score:
    """Compares the answer with what is at fault."""
    probes = [probe for those in played.rounds for probe in those]
    truth = truth_of(faults)
    wrong = answer.named - truth
    accused = {named.of[0] for named in wrong if named.part in OF_NODE}
    located = {named.of[0] for named in answer.named if named.part in OF_NODE} & faults.bad_nodes
    return Score(
        nodes=len(sites),
        rounds=len(played.rounds),
        groups=len(probes),
        node_runs=sum(len(probe.members) for probe in probes),
        slowest_plan_s=played.slowest_plan_s,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB,
        faults=len(truth),
        exact=len(truth & answer.named),
        bad_nodes=len(faults.bad_nodes),
        located=len(located),
        accused=len(accused - faults.bad_nodes),
        mistaken=sum(named.part not in OF_NODE for named in wrong),
        named=len(answer.named),
        open=answer.open,
        paths=len(crossed_by([tuple(sites)], sites)),
        crossed=len(crossed_by((probe.members for probe in probes), sites)),
    )


def crossed_by(groups: Iterable[tuple[str, ...]], sites: dict[str, Site]) -> set[tuple[str, str]]:
    """The pairs of leaves that some group had members at."""
    spans = {frozenset(leaf for node in group if (leaf := sites[node].leaf) is not None) for group in groups}
    return {ends for leaves in spans for ends in combinations(sorted(leaves), 2)}
