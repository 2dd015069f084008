"""What the evidence of a sweep comes to, as the sweep's record tells it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster_coordinator.localize.case import Case, Conviction
from muster_coordinator.localize.culprits import Culprit, Judgement, Part
from muster_coordinator.localize.trial import Trial
from muster_coordinator.localize.wording import amount, quantity
from muster_coordinator.sweep_records import FailedFabric, FailedLink, FailedNode

PARTS_OF_NODE = frozenset({Part.NODE, Part.NODE_LINK, Part.RAIL})
PARTS_OF_FABRIC = frozenset({Part.LEAF, Part.PATH})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """Who is at fault, cleared, suspected and open; by group why it counts as slow; and what else was seen."""

    failed_nodes: tuple[FailedNode, ...]
    failed_links: tuple[FailedLink, ...]
    failed_fabric: tuple[FailedFabric, ...] = ()
    cleared: frozenset[str]
    suspects: tuple[str, ...]
    open: tuple[str, ...]
    why_slow: Mapping[str, str]
    seen: tuple[str, ...] = ()

    @property
    def anything_failed(self) -> bool:
        return bool(self.failed_nodes or self.failed_links or self.failed_fabric)


def ruling_by_case(case: Case, check: str) -> Ruling:
    """From convictions by partners, as sweeps of single nodes, pairs and whole fleets make them."""
    return Ruling(
        failed_nodes=tuple(
            FailedNode(node=found.of[0], code=_code(check, found), confidence=found.confidence, reasons=found.reasons)
            for found in case.failed_nodes
        ),
        failed_links=tuple(
            FailedLink(
                between=(found.of[0], found.of[1]),
                code=_code(check, found),
                confidence=found.confidence,
                reasons=found.reasons,
            )
            for found in case.failed_links
        ),
        cleared=frozenset(case.cleared),
        suspects=case.suspects,
        open=case.open,
        why_slow={trial.group: case.why_slow(trial) for trial in case.trials if case.is_slow(trial)},
        seen=tuple(f"the link between {' and '.join(link)} was bad once only" for link in case.intermittent_links),
    )


def ruling_by_judgement(judgement: Judgement, check: str, metric: str | None) -> Ruling:
    """From an adaptive sweep."""
    told = _Told(judgement, check, metric)
    open_ = judgement.behind.union(judgement.open)
    return Ruling(
        failed_nodes=tuple(map(told.node, (c for c in judgement.culprits if c.part in PARTS_OF_NODE))),
        failed_links=tuple(map(told.link, (c for c in judgement.culprits if c.part is Part.LINK))),
        failed_fabric=tuple(map(told.fabric, (c for c in judgement.culprits if c.part in PARTS_OF_FABRIC))),
        cleared=judgement.evidence.cleared - judgement.failed,
        suspects=tuple(node for node in judgement.open if node in judgement.stuck),
        open=tuple(node for node in judgement.evidence.sites if node in open_),
        why_slow={t.group: told.why_slow(t) for t in judgement.evidence.trials if judgement.evidence.is_slow(t)},
        seen=tuple(told.seen()),
    )


def _code(check: str, found: Conviction | Culprit) -> str:
    return f"{check}.{'slow' if found.slow else 'failed'}"


@dataclass(frozen=True, slots=True)
class _Told:
    """Puts what was judged about the runs of `check` into records and words."""

    judgement: Judgement
    check: str
    metric: str | None

    def node(self, culprit: Culprit) -> FailedNode:
        return FailedNode(
            node=culprit.of[0],
            part=culprit.part,
            rails=culprit.rails,
            code=_code(self.check, culprit),
            confidence=culprit.confidence,
            reasons=self._reasons(culprit),
        )

    def link(self, culprit: Culprit) -> FailedLink:
        return FailedLink(
            between=(culprit.of[0], culprit.of[1]),
            code=_code(self.check, culprit),
            confidence=culprit.confidence,
            reasons=self._reasons(culprit),
        )

    def fabric(self, culprit: Culprit) -> FailedFabric:
        return FailedFabric(
            leaves=culprit.of,
            code=_code(self.check, culprit),
            confidence=culprit.confidence,
            reasons=self._reasons(culprit),
        )

    def why_slow(self, trial: Trial) -> str:
        """A sentence about a run that is slow."""
        return f"{quantity(self.metric)} {self._amount(trial.objective)} is slow: {self._typical(trial)}"

    def seen(self) -> Iterable[str]:
        """What was bad for no reason that was found, and what is hidden behind something that failed."""
        for path in self.judgement.passable:
            for trial in self.judgement.unexplained[path]:
                if self.judgement.failed.isdisjoint(trial.members):
                    yield f"{' and '.join(trial.members)} were bad together and well otherwise"
        if self.judgement.failed and not self.judgement.evidence.leaves:
            yield "nobody said which nodes share a leaf: where several failed together, its switch may be to blame"
        for leaf in self.judgement.leaves:
            hidden = [node for node in self.judgement.evidence.leaves[leaf] if node in self.judgement.behind]
            yield f"nothing can be said about {', '.join(hidden)} while leaf {leaf} is at fault"

    def _reasons(self, culprit: Culprit) -> tuple[str, ...]:
        """What it is, where that is not plain, and a sentence for each run that speaks against it."""
        return (*self._nature(culprit), *(self._run(trial, culprit) for trial in culprit.trials))

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

    def _run(self, trial: Trial, culprit: Culprit) -> str:
        company = self._company(trial, culprit)
        if not self.judgement.evidence.is_slow(trial):
            return f"{company}: {trial.detail}"
        return f"{quantity(self.metric)} {self._amount(trial.objective)} {company}: {self._typical(trial)}"

    def _company(self, trial: Trial, culprit: Culprit) -> str:
        if culprit.part not in PARTS_OF_NODE:
            return f"between {' and '.join(map(self._reputation, trial.members))}"
        others = [self._reputation(node) for node in trial.members if node not in culprit.of]
        return f"with {', '.join(others)}" if others else "alone"

    def _reputation(self, node: str) -> str:
        passed = node in self.judgement.evidence.cleared and node not in self.judgement.failed
        return f"{node} (which passed)" if passed else node

    def _typical(self, trial: Trial) -> str:
        level = self.judgement.evidence.level(trial)
        assert level is not None, "without a level nothing is slow"
        return f"typical here is {self._amount(level.typical)}, and less than {self._amount(level.slow_below)} is slow"

    def _amount(self, value: float | None) -> str:
        return amount(value, self.metric)
