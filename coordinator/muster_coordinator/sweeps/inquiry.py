"""What a sweep has found out so far, and what its strategy makes of it."""

from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.probe import Site
from muster_coordinator.localize.ruling import Ruling, ruling_of
from muster_coordinator.localize.strategy import policy_of
from muster_coordinator.localize.trial import Outcome, Trial
from muster_coordinator.sweeps.formation import Formation, formations
from muster_coordinator.sweeps.plan import Plan
from muster_coordinator.topology.learned import Pair


class Inquiry:
    """The trials of a sweep in their order, and the nodes that are `absent`, each with the reason."""

    def __init__(self, plan: Plan) -> None:
        self.trials: list[Trial] = []
        self.absent = dict(plan.absent)
        self._plan = plan
        known = {site.node: site for site in plan.sites}
        self._sites = {node: known.get(node, Site(node)) for node in plan.nodes}
        self._policy = policy_of(
            plan.strategy,
            self._sites,
            abilities=plan.abilities,
            seed=plan.id,
            pairing=plan.pairing,
            passes=plan.passes,
        )

    def next_round(self, rounds: int) -> list[Formation]:
        """The groups that would tell most after so many rounds; none when nothing more can be learned."""
        if rounds >= self._policy.max_rounds:
            return []
        return formations(self._policy.next_groups(tuple(self.trials), frozenset(self.absent)))

    def rule(self) -> Ruling:
        """What the trials so far come to."""
        judgement = Judgement(Evidence(self._sites, tuple(self.trials)), self._plan.abilities)
        return ruling_of(judgement, self._plan.task.check, self._plan.task.objective)

    def pairs(self) -> list[Pair]:
        """What pairs of nodes have reached together."""
        good = (it for it in self.trials if it.outcome is Outcome.GOOD and len(it.members) == 2)
        return [Pair(it.members[0], it.members[1], it.objective) for it in good if it.objective is not None]
