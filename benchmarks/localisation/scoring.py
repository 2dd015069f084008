"""What a strategy costs and how right it is, on one case of a simulated fabric."""

import resource
import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, Protocol

from benchmarks.localisation.truth import OF_NODE, Named, Truth

from muster_coordinator.localize.strategies.strategy import RoundPlanner
from muster_coordinator.model.probes import GroupRun, Probe, Site

KIB_PER_MIB = 1024


class RoundRunner(Protocol):
    """A fabric: runs the groups of one round after another. `absent` are the nodes that take no further part."""

    @property
    def absent(self) -> Set[str]: ...

    def run_round(self, probes: Sequence[Probe]) -> list[GroupRun]:
        """What the groups show; all of them run at the same time."""


class Answer(NamedTuple):
    """What a strategy says in the end.

    `open` is the number of nodes and paths that it cannot tell about. With `fleet_wide`, it says that the fleet as a
    whole is not as it should be, for example that its nodes are of two kinds.
    """

    named: frozenset[Named]
    open: int
    fleet_wide: bool = False

    @property
    def verdict(self) -> str:
        """As `sweeps.conclusion` gives it."""
        if self.named:
            return "FAIL"
        return "UNKNOWN" if self.open or self.fleet_wide else "PASS"


@dataclass(slots=True)
class Played:
    """The rounds of a sweep, what they showed, and the processor time of planning: the most for one, and of all."""

    rounds: list[list[Probe]]
    runs: list[GroupRun]
    slowest_plan_s: float
    plan_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One case. `node_runs` counts each node once for every group that it was in.

    `exact` counts the faults that were named as what they are, `located` the bad nodes that were named, `accused` the
    nodes that were named though nothing of them is at fault, `mistaken` all else that was. `crossed` counts the pairs
    of leaves that groups had members at, of all `paths`. `peak_mib` is what the process has held at most so far.

    `healthy_named` counts the named parts in which nothing is at fault, `touched` the faults that are somewhere in what
    is named, of all that are `broken`, also those that no method can name. `plan_s` is the processor time of planning
    and judging. `visible` counts the faults that some sweep can name, `visible_exact` those of them that were named.
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
    healthy_named: int = 0
    broken: int = 0
    touched: int = 0
    verdict: str = ""
    fleet_wide: bool = False
    plan_s: float = 0.0
    visible: int = 0
    visible_exact: int = 0


def play(policy: RoundPlanner, fabric: RoundRunner) -> Played:
    """Runs rounds as the policy wants them, until it wants no more or has had as many as it may."""
    played = Played([], [], 0.0)
    while len(played.rounds) < policy.max_rounds:
        began = time.process_time()
        probes = policy.next_groups(played.runs, frozenset(fabric.absent))
        took = time.process_time() - began
        played.plan_s += took
        played.slowest_plan_s = max(played.slowest_plan_s, took)
        if not probes:
            break
        played.rounds.append(probes)
        played.runs += fabric.run_round(probes)
    return played


def score(sites: dict[str, Site], played: Played, answer: Answer, truth: Truth) -> Score:
    """Compares the answer with what is at fault."""
    probes = [probe for those in played.rounds for probe in those]
    wrong = answer.named - truth.faults
    accused = {named.of[0] for named in wrong if named.part in OF_NODE}
    located = {named.of[0] for named in answer.named if named.part in OF_NODE} & truth.bad_nodes
    return Score(
        nodes=len(sites),
        rounds=len(played.rounds),
        groups=len(probes),
        node_runs=sum(len(probe.members) for probe in probes),
        slowest_plan_s=played.slowest_plan_s,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB,
        faults=len(truth.faults),
        exact=len(truth.faults & answer.named),
        bad_nodes=len(truth.bad_nodes),
        located=len(located),
        accused=len(accused - truth.bad_nodes),
        mistaken=sum(named.part not in OF_NODE for named in wrong),
        named=len(answer.named),
        open=answer.open,
        paths=len(crossed_by([tuple(sites)], sites)),
        crossed=len(crossed_by((probe.members for probe in probes), sites)),
        healthy_named=sum(map(truth.is_healthy, answer.named)),
        broken=truth.broken,
        touched=truth.located(answer.named),
        verdict=answer.verdict,
        fleet_wide=answer.fleet_wide,
        plan_s=played.plan_s,
        visible=len(truth.visible),
        visible_exact=len(truth.visible & answer.named),
    )


def crossed_by(groups: Iterable[tuple[str, ...]], sites: dict[str, Site]) -> set[tuple[str, str]]:
    """The pairs of leaves that some group had members at."""
    spans = {frozenset(leaf for node in group if (leaf := sites[node].leaf) is not None) for group in groups}
    return {ends for leaves in spans for ends in combinations(sorted(leaves), 2)}
