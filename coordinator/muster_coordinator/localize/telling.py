"""How a judgement is told: in records, and in sentences with the numbers that speak for it."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.culprit import Culprit, Part
from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.direction import Direction, OneWay, level_one_way, one_way
from muster_coordinator.localize.hints import hints_of, in_words
from muster_coordinator.localize.level import Level
from muster_coordinator.localize.trial import Trial
from muster_coordinator.localize.wording import amount, quantity
from muster_coordinator.model.sweep_records import FailedFabric, FailedLink, FailedNode

OF_NODE = frozenset({Part.NODE, Part.NODE_LINK, Part.RAIL})

ONE_WAY = {Direction.SEND: "it sends slowly and receives well", Direction.RECEIVE: "it receives slowly and sends well"}


@dataclass(frozen=True)
class Telling:
    """Puts what was judged about runs of `check`, whose objectives are values of `metric`, into records and words."""

    judgement: Judgement
    check: str
    metric: str | None

    def node(self, culprit: Culprit) -> FailedNode:
        """A node of which something is at fault."""
        (node,) = culprit.of
        ways = one_way(node, culprit.trials, self._level_one_way) if culprit.slow else None
        reasons = (
            *self._reasons(culprit),
            *_directions(ways),
            *in_words(hints_of(node, culprit.trials)),
        )
        return FailedNode(
            node=node,
            part=culprit.part,
            rails=culprit.rails,
            direction=None if ways is None else ways.slow,
            code=self._code(culprit),
            confidence=culprit.confidence,
            reasons=reasons,
        )

    def link(self, culprit: Culprit) -> FailedLink:
        """A link between two nodes."""
        one, other = culprit.of
        return FailedLink(
            between=(one, other),
            code=self._code(culprit),
            confidence=culprit.confidence,
            reasons=self._reasons(culprit),
        )

    def fabric(self, culprit: Culprit) -> FailedFabric:
        """A leaf, or a path between two."""
        return FailedFabric(
            leaves=culprit.of,
            code=self._code(culprit),
            confidence=culprit.confidence,
            reasons=self._reasons(culprit),
        )

    def why_slow(self, trial: Trial) -> str:
        """A sentence about a run that is slow."""
        return f"{quantity(self.metric)} {self._amount(trial.objective)} is slow: {self._typical(trial)}"

    def seen(self) -> Iterable[str]:
        """What was bad for no reason that was found, and what is hidden behind something that failed."""
        for path, trials in self.judgement.unexplained.items():
            for trial in () if path in self.judgement.paths else trials:
                if self.judgement.failed.isdisjoint(trial.members):
                    yield f"{' and '.join(trial.members)} were bad together and well otherwise"
        for node, history in self.judgement.evidence.histories.items():
            if history.own and node in self.judgement.evidence.cleared and node not in self.judgement.failed:
                why = (self._run(trial, node) for trial in history.own)
                yield f"{node} failed by itself and was well otherwise: {'; '.join(why)}"
        for leaf in self.judgement.leaves:
            hidden = [node for node in self.judgement.evidence.leaves[leaf] if node in self.judgement.behind]
            yield f"nothing can be said about {', '.join(hidden)} while leaf {leaf} is at fault"

    @cached_property
    def _level_one_way(self) -> Level | None:
        return level_one_way(self.judgement.evidence.trials)

    def _code(self, culprit: Culprit) -> str:
        return f"{self.check}.{'slow' if culprit.slow else 'failed'}"

    def _reasons(self, culprit: Culprit) -> tuple[str, ...]:
        """What it is, where that is not plain, and a sentence for each run that speaks against it."""
        of_node = culprit.of if culprit.part in OF_NODE else ()
        return (*self._nature(culprit), *(self._run(trial, *of_node) for trial in culprit.trials))

    def _nature(self, culprit: Culprit) -> Iterable[str]:
        match culprit.part:
            case Part.NODE_LINK:
                yield "it passes alone, so that its link is to blame"
            case Part.RAIL:
                yield f"only rail {', '.join(map(str, culprit.rails))} is bad"
            case Part.LEAF:
                yield f"none of the nodes of leaf {culprit.of[0]} passes with others, and those tried alone do"
        if culprit.intermittent:
            yield "it comes and goes: other runs were good"

    def _run(self, trial: Trial, of: str | None = None) -> str:
        """What a run came to, and for whom it speaks: one of its nodes, or what lies between them."""
        company = self._company(trial, of)
        if not self.judgement.evidence.is_slow(trial):
            return f"{company}: {trial.detail}"
        return f"{quantity(self.metric)} {self._amount(trial.objective)} {company}: {self._typical(trial)}"

    def _company(self, trial: Trial, of: str | None) -> str:
        if of is None:
            return f"between {' and '.join(map(self._reputation, trial.members))}"
        others = map(self._reputation, trial.others(of))
        return f"with {', '.join(others)}" if len(trial.members) > 1 else "alone"

    def _reputation(self, node: str) -> str:
        passed = node in self.judgement.cleared and node not in self.judgement.failed
        return f"{node} (which passed)" if passed else node

    def _typical(self, trial: Trial) -> str:
        level = self.judgement.evidence.level(trial)
        assert level is not None, "without a level nothing is slow"
        return f"typical here is {self._amount(level.typical)}, and less than {self._amount(level.slow_below)} is slow"

    def _amount(self, value: float | None) -> str:
        return amount(value, self.metric)


def _directions(ways: OneWay | None) -> Iterable[str]:
    """A sentence with the numbers, where one direction is slow and the other is not."""
    if ways is None or ways.slow is None:
        return
    yield (
        f"{ONE_WAY[ways.slow]}: one way at a time it sends {statistics.median(ways.sends):.3g} GB/s"
        f" and receives {statistics.median(ways.receives):.3g} GB/s;"
        f" typical here is {ways.level.typical:.3g} GB/s, and less than {ways.level.slow_below:.3g} GB/s is slow"
    )
