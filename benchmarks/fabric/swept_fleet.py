"""Runs the rounds of a sweep on a fleet: all groups of a round at the same time, so that they share links.

The idea: the hops of all groups are flows on one network, and their max-min fair rates are what the groups measure. A
group is as fast as its slowest rail and hop, and no faster than the GPUs of its slowest node. A node alone measures
only itself. All rates are those of the steady state: no group of a wave starts later or ends earlier than the others.
Members decline, vanish and crash, and what they report takes the way that it takes in a coordinator.

Example: 64 nodes at four leaves, 2:1 oversubscribed. 32 pairs across leaves put 16 flows on the uplinks of each rail,
which have room for eight: each pair measures 200 of 400 GB/s. Two pairs in the next round have room enough and measure
400 GB/s, though nothing has been repaired.

A round of n nodes takes O(n) for each step of `flows`.
"""

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from benchmarks.fabric.collectives import Collective
from benchmarks.fabric.contention import Wave
from benchmarks.fabric.defects import HANGS, BrokenPart, Defect, shares_with, showing
from benchmarks.fabric.disturbances import Disturbances, DisturbedFleet
from benchmarks.fabric.flows import Floats
from benchmarks.fabric.membership import HangEnding, Membership, busy_nodes, name_of
from benchmarks.fabric.network import RAILS, FatTree, PartShares
from benchmarks.fabric.reports import BUSY, FAILED, KILLED, LATE, VANISHED, MemberFault, ended, measured

from muster_coordinator.model.probes import GroupRun, Probe, RunOutcome, Site
from muster_coordinator.model.sweep_records import Blame, Ending
from muster_coordinator.sweeps.formation import Formation, form_again, formations, nearest_spare


@dataclass(frozen=True, kw_only=True)
class FleetSetup:
    """A fleet and all that is wrong with it. `max_parallel` bounds how many nodes run at the same time."""

    network: FatTree
    defects: tuple[Defect, ...] = ()
    disturbances: Disturbances = field(default_factory=Disturbances)
    membership: Membership = field(default_factory=Membership)
    collective: Collective = Collective.RING
    queue_pairs: int = 1
    max_parallel: int | None = None


class SweptFleet:
    """Runs groups of a fleet whose nodes are known as `sites`. `absent` are the nodes that take no further part.

    Under one `name` everything that lasts is the same; what differs from run to run is drawn for each `method`. Each
    draw has a name of its own: two that share one would pick the same nodes.
    """

    def __init__(self, setup: FleetSetup, sites: Mapping[str, Site], name: str, method: str) -> None:
        self.sites = sites
        self.absent: set[str] = set()
        self._setup = setup
        self._lots = random.Random(f"{name} {method} faults")  # noqa: S311 - not a secret
        self._seed = number_of(f"{name} {method} ways")
        lasting, passing = (np.random.default_rng(number_of(drawn)) for drawn in (name, f"{name} {method}"))
        self.disturbed = DisturbedFleet(setup.network, setup.disturbances, lasting, passing)
        self.busy = busy_nodes(setup.network, setup.membership, random.Random(f"{name} busy"))  # noqa: S311 - see above
        self._number = {name_of(node): node for node in range(setup.network.nodes)}
        self._rounds = self._groups = 0

    def run_round(self, probes: Sequence[Probe]) -> list[GroupRun]:
        """What the groups show, in the order in which they ended."""
        used = {node for probe in probes for node in probe.members}
        unused = {node: None for node in self.sites if node not in used}
        runs: list[GroupRun] = []
        formed = [group for formation in formations(probes) if (group := self._form(formation, unused, runs))]
        for wave in self._waves(formed):
            runs += self._run(wave)
        self._rounds += 1
        return runs

    def _form(self, formation: Formation, unused: dict[str, None], runs: list[GroupRun]) -> Formation | None:
        """The group as it is formed in the end; None if it has too many busy members.

        The first member that declines ends an attempt, so only that one is known to be busy. It is absent from then on,
        and a spare is asked instead, as in `sweeps.sweep`.
        """
        while busy := next((node for node in formation.members if node in self.busy), None):
            self.absent.add(busy)
            again = form_again(formation, [Blame(node=busy, reason=BUSY[0])], partial(self._spare, unused))
            if again is None:
                runs.append(ended(self._next_group(), _probe(formation), {busy: BUSY}, Ending.NOT_FORMED))
                return None
            formation = again
        return formation

    def _spare(self, unused: dict[str, None], node: str) -> str | None:
        free = (other for other in unused if other not in self.absent)
        spare = nearest_spare(node, free, self.sites)
        if spare is not None:
            del unused[spare]
        return spare

    def _waves(self, formed: Iterable[Formation]) -> Iterator[list[Probe]]:
        """The groups that run at the same time; a group that is larger than allowed runs by itself."""
        wave: list[Probe] = []
        most = self._setup.max_parallel or len(self.sites)
        room = most
        for probe in map(_probe, formed):
            if wave and len(probe.members) > room:
                yield wave
                wave, room = [], most
            wave.append(probe)
            room -= len(probe.members)
        if wave:
            yield wave

    def _run(self, wave: list[Probe]) -> list[GroupRun]:
        shown = showing(self._setup.defects, self._lots)
        crashing = {name_of(defect.of[0]) for defect in shown if defect.part is BrokenPart.NODE and defect.crashes}
        parts = shares_with(self._setup.network, self.disturbed.speed(self._rounds), shown)
        rails = self._rail_rates(wave, parts)
        slowest = rails.min(axis=1, keepdims=True)
        noisy = self.disturbed.measured(np.hstack([RAILS * slowest, rails]))
        runs: list[GroupRun] = []
        for probe, (total, *by_rail), (least,) in zip(wave, noisy.tolist(), slowest, strict=True):
            faults, ending = self._faults(probe, crashing, hangs=least == HANGS)
            group = self._next_group()
            if faults:
                runs.append(ended(group, probe, faults, ending))
                self._note_absent(runs[-1], faults)
            else:
                runs.append(measured(group, probe, total, by_rail))
        sharing = sum(len(probe.members) > 1 for probe in wave)
        return [replace(run, beside=sharing - (len(run.members) > 1), round=self._rounds) for run in runs]

    def _rail_rates(self, probes: Sequence[Probe], parts: PartShares) -> Floats:
        """The bus bandwidth of each group on each rail, in GB/s, without noise."""
        wave = Wave(
            network=self._setup.network,
            collective=self._setup.collective,
            groups=[np.array([self._number[node] for node in probe.members]) for probe in probes],
            parts=parts,
            others=self.disturbed.other_traffic(),
            seed=self._seed + self._groups,
            queue_pairs=self._setup.queue_pairs,
        )
        return wave.rail_rates()

    def _faults(self, probe: Probe, crashing: set[str], *, hangs: bool) -> tuple[dict[str, MemberFault], Ending]:
        """Why members report nothing, and how the group ends. An agent that vanishes comes first, then a crash."""
        membership = self._setup.membership
        if membership.vanishing and (
            gone := [node for node in probe.members if self._lots.random() < membership.vanishing]
        ):
            return dict.fromkeys(gone, VANISHED), Ending.ABORTED
        if not crashing.isdisjoint(probe.members):
            drawn = {node: KILLED if self._lots.random() < membership.drags else FAILED for node in probe.members}
            return {node: KILLED if node in crashing else fault for node, fault in drawn.items()}, Ending.FINISHED
        if hangs and membership.hang_ending is HangEnding.ABORTED:
            return dict.fromkeys(probe.members, KILLED), Ending.FINISHED
        return dict.fromkeys(probe.members, LATE) if hangs else {}, Ending.FINISHED

    def _note_absent(self, run: GroupRun, faults: Mapping[str, MemberFault]) -> None:
        if run.outcome is RunOutcome.VOID:
            self.absent.update(node for node, fault in faults.items() if fault is VANISHED)

    def _next_group(self) -> str:
        self._groups += 1
        return f"g{self._groups}"


def number_of(name: str) -> int:
    """A number that is the same whenever it is asked for under this name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def _probe(formation: Formation) -> Probe:
    return Probe(formation.members, formation.reason, formation.by_rail)
