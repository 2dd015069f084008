"""Records and sentences about culprits and slow runs, with the numbers that are the evidence."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from muster.model import format_instant
from muster.units import with_unit
from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.direction import Direction, OneWay, one_way, one_way_threshold
from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.evidence.hints import Hints, hints_of
from muster_coordinator.localize.evidence.prior import PastSweep
from muster_coordinator.localize.evidence.threshold import Threshold
from muster_coordinator.localize.likelihood.track_record import TrackRecord
from muster_coordinator.localize.rules.culprit import Culprit, Part
from muster_coordinator.localize.wording.hardware_words import HardwareWords, with_hardware
from muster_coordinator.model.probes import GroupRun
from muster_coordinator.model.sweep_records import FailedFabric, FailedLink, FailedNode

OF_NODE = frozenset({Part.NODE, Part.NODE_LINK, Part.RAIL})

SLOW_DIRECTION = {
    Direction.SEND: "it sends slowly and receives at normal speed",
    Direction.RECEIVE: "it receives slowly and sends at normal speed",
}

OFTEN_LAST = 0.8
"""Share of rounds from which it is conspicuous that a node came last. In a group of two it is a half at random; over
the twenty rounds of a run, it gets here once in two hundred.
"""

SLOWER = 1.5
"""Healthy nodes of one kind differ by a few per cent, and by a fifth if other work runs on their hosts."""


MOST_TOLD = 20
"""Maximum number of open suspicions in the observations, the strongest first. The record of the sweep has all."""


@dataclass(frozen=True)
class Sentences:
    """Sentences about runs of `check`, whose objectives are values of `metric`."""

    diagnosis: Diagnosis
    check: str
    metric: str | None

    def node(self, culprit: Culprit) -> FailedNode:
        """The record of a node that is convicted, or whose link or rails are."""
        (node,) = culprit.of
        kind = self.diagnosis.evidence.hardware.kind_of(node)
        ways = one_way(node, culprit.runs, self._one_way_thresholds[kind]) if culprit.slow else None
        reasons = (*self._reasons(culprit), *direction_words(ways), *hint_words(hints_of(node, culprit.runs)))
        return FailedNode(
            node=node,
            part=culprit.part,
            rails=culprit.rails,
            direction=None if ways is None else ways.slow,
            intermittent=culprit.intermittent,
            code=self._code(culprit),
            confidence=culprit.confidence,
            reasons=reasons,
        )

    def link(self, culprit: Culprit) -> FailedLink:
        """The record of a link between two nodes."""
        one, other = culprit.of
        return FailedLink(
            between=(one, other),
            code=self._code(culprit),
            confidence=culprit.confidence,
            reasons=self._reasons(culprit),
        )

    def fabric(self, culprit: Culprit) -> FailedFabric:
        """The record of a leaf, or of a path between two leaves."""
        return FailedFabric(
            leaves=culprit.of,
            code=self._code(culprit),
            confidence=culprit.confidence,
            reasons=self._reasons(culprit),
        )

    def why_slow(self, run: GroupRun) -> str:
        """A sentence about a slow run."""
        return f"{quantity(self.metric)} {self._amount(run.objective)} is slow: {self._typical(run)}"

    def observations(self) -> Iterable[str]:
        """Sentences about kinds of hardware, bad runs of unknown cause, and nodes that a convicted leaf hides."""
        diagnosis, evidence = self.diagnosis, self.diagnosis.evidence
        yield from self.hardware.sentences()
        for path, runs in diagnosis.paths.unexplained.items():
            for run in () if path in diagnosis.paths.convicted else runs:
                if diagnosis.convicted.isdisjoint(run.members):
                    yield f"{' and '.join(run.members)} were bad together but passed with others"
        for node, history in evidence.histories.items():
            if history.own_failures and node in evidence.cleared and node not in diagnosis.convicted:
                why = (self._run(run, node) for run in history.own_failures)
                yield f"{node} failed by itself but passed with others: {'; '.join(why)}"
        for track in diagnosis.recurring.still_suspected[:MOST_TOLD]:
            yield f"{track.node} is still suspected: {track_words(track)}"
        for leaf in diagnosis.leaves.convicted:
            hidden = [node for node in evidence.fabric.leaves[leaf] if node in diagnosis.leaves.behind]
            yield f"the health of {', '.join(hidden)} is unknown because leaf {leaf} is convicted"

    @property
    def hardware(self) -> HardwareWords:
        """How kinds of hardware were compared."""
        return HardwareWords(self.diagnosis.evidence, self._amount)

    @cached_property
    def _one_way_thresholds(self) -> Mapping[ComparedKind, Threshold | None]:
        evidence = self.diagnosis.evidence
        return {kind: one_way_threshold(evidence.thresholds.among(kind).runs) for kind in evidence.hardware.kinds}

    def _code(self, culprit: Culprit) -> str:
        return f"{self.check}.{'slow' if culprit.slow else 'failed'}"

    def _reasons(self, culprit: Culprit) -> tuple[str, ...]:
        """The kind of fault, and a sentence for each run that is evidence against the culprit."""
        of_node = culprit.of if culprit.part in OF_NODE else ()
        return (*self._kind(culprit), *(self._run(run, *of_node) for run in culprit.runs))

    def _kind(self, culprit: Culprit) -> Iterable[str]:
        match culprit.part:
            case Part.NODE_LINK:
                yield "it passes alone, so its link is convicted"
            case Part.RAIL:
                yield f"only rail {', '.join(map(str, culprit.rails))} is bad"
            case Part.LEAF:
                yield f"no node of leaf {culprit.of[0]} passes with others, and those that ran alone pass"
        if culprit.track is not None:
            yield track_words(culprit.track)
        if culprit.intermittent:
            yield "it is intermittent: other runs were good"

    def _run(self, run: GroupRun, of: str | None = None) -> str:
        """The result of a run for one of its nodes, or between its nodes."""
        company = self._company(run, of)
        if not self.diagnosis.evidence.thresholds.is_slow(run):
            return f"{company}: {run.detail}"
        return f"{quantity(self.metric)} {self._amount(run.objective)} {company}: {self._typical(run)}"

    def _company(self, run: GroupRun, of: str | None) -> str:
        if of is None:
            return f"between {' and '.join(map(self._with_standing, run.members))}"
        others = map(self._with_standing, run.others(of))
        return f"with {', '.join(others)}" if len(run.members) > 1 else "alone"

    def _with_standing(self, node: str) -> str:
        passed = node in self.diagnosis.cleared and node not in self.diagnosis.convicted
        return f"{node} (which passed)" if passed else node

    def _typical(self, run: GroupRun) -> str:
        threshold = self.diagnosis.evidence.thresholds.of(run)
        assert threshold is not None, "without a threshold no run is slow"
        typical, slow_below = self._amount(threshold.typical), self._amount(threshold.slow_below)
        compared = with_hardware(self.diagnosis.evidence.hardware, run.members)
        return f"typical{compared} here is {typical}, and less than {slow_below} is slow"

    def _amount(self, value: float | None) -> str:
        return amount(value, self.metric)


def track_words(track: TrackRecord) -> str:
    """A sentence about the bad runs of a node in this and earlier sweeps."""
    earlier = (f"with {', '.join(others)}" if others else "alone" for others in track.bad_earlier)
    return (
        f"suspected since {sweep_words(track.since)}; since then {len(track.bad)} of {track.runs} runs were bad for no"
        f" other known reason, in earlier sweeps {', '.join(earlier)}"
    )


def sweep_words(sweep: PastSweep) -> str:
    """An earlier sweep and its day."""
    return f"sweep {sweep.id} of {format_instant(sweep.ended_at)[:10]}"


def direction_words(ways: OneWay | None) -> Iterable[str]:
    """A sentence with the numbers if one direction is slow and the other is not."""
    if ways is None or ways.slow is None:
        return
    sends, receives = statistics.median(ways.sends), statistics.median(ways.receives)
    typical, slow_below = ways.threshold.typical, ways.threshold.slow_below
    yield (
        f"{SLOW_DIRECTION[ways.slow]}: in one direction at a time,"
        f" it sends {sends:.3g} GB/s and receives {receives:.3g} GB/s;"
        f" typical here is {typical:.3g} GB/s, and less than {slow_below:.3g} GB/s is slow"
    )


def hint_words(hints: Hints) -> Iterable[str]:
    """Sentences about the hints that stand out clearly."""
    if hints.slower >= SLOWER:
        yield f"its own work took {hints.slower:.1f} times as long as that of the others"
    if hints.latest >= OFTEN_LAST:
        yield f"it came last in {hints.latest:.0%} of the rounds"


def quantity(metric: str | None) -> str:
    """The name of the quantity that a metric measures."""
    return (metric or "objective").removesuffix("_gbps")


def amount(value: float | None, metric: str | None) -> str:
    """A value of the metric with its unit."""
    return "?" if value is None else with_unit(f"{value:.3g}", metric)
