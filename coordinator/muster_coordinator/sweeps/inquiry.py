"""What a sweep has found out so far, and what its strategy makes of it."""

from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.probe import Site
from muster_coordinator.localize.ruling import Ruling, ruling_of
from muster_coordinator.localize.strategy import policy_of
from muster_coordinator.localize.trial import Outcome, Trial
from muster_coordinator.model.sweep_records import Blame, Ending, GroupRecord, SweepRecord
from muster_coordinator.sweeps.formation import Formation, formations
from muster_coordinator.sweeps.member import SILENT, may_be_echo
from muster_coordinator.sweeps.plan import Plan
from muster_coordinator.sweeps.showing import trial_of
from muster_coordinator.topology.learned import Pair


class Inquiry:
    """The trials of a sweep in their order, and the nodes that are `absent`, each with the reason.

    `sites` are those of all its nodes in topology order, `policy` is its strategy over them.
    """

    def __init__(self, plan: Plan) -> None:
        self.trials: list[Trial] = []
        self.absent = dict(plan.absent)
        self._plan = plan
        known = {site.node: site for site in plan.sites}
        self.sites = {node: known.get(node, Site(node)) for node in plan.nodes}
        self.policy = policy_of(
            plan.strategy,
            self.sites,
            abilities=plan.abilities,
            seed=plan.id,
            pairing=plan.pairing,
            passes=plan.passes,
        )

    def take(self, record: GroupRecord, again: Formation | None) -> None:
        """Takes what an ended group showed as evidence, unless it is formed again, and notes who is not to be had."""
        if again is not None:
            missed = [blame for blame in record.blamed if blame.node not in again.members]
        else:
            trial = trial_of(record, self._plan.task.rail_metric)
            self.trials.append(trial)
            missed = [it for it in record.blamed if trial.outcome is Outcome.VOID and _is_gone(it, record)]
        for blame in missed:
            self.miss(blame.node, f"{blame.reason}: {blame.detail}".removesuffix(": "))

    def miss(self, node: str, why: str) -> None:
        """Notes a node that is not to be had; the first reason counts."""
        self.absent.setdefault(node, why)

    def take_up(self, record: SweepRecord) -> None:
        """Takes what groups had shown to the coordinator before this one, but not those that its end interrupted."""
        self.absent.update(record.absent)
        groups = (group for stage in record.rounds for group in stage.groups)
        self.trials += [trial_of(group, self._plan.task.rail_metric) for group in groups if group.is_evidence]

    def next_round(self, rounds: int) -> list[Formation]:
        """The groups that would tell most after so many rounds; none when nothing more can be learned."""
        if rounds >= self.policy.max_rounds:
            return []
        return formations(self.policy.next_groups(tuple(self.trials), frozenset(self.absent)))

    def rule(self) -> Ruling:
        """What the trials so far come to."""
        judgement = Judgement(Evidence(self.sites, tuple(self.trials)), self._plan.abilities)
        return ruling_of(judgement, self._plan.task.check, self._plan.task.objective)

    def pairs(self) -> list[Pair]:
        """What pairs of nodes have reached together."""
        good = (it for it in self.trials if it.outcome is Outcome.GOOD and len(it.members) == 2)
        return [Pair(it.members[0], it.members[1], it.objective) for it in good if it.objective is not None]


def _is_gone(blame: Blame, record: GroupRecord) -> bool:
    """Whether a member cannot be had any more, rather than may only have seen its peers fail, or had no time to say."""
    had_no_time = blame.reason == SILENT and record.ending is Ending.ABORTED
    return not had_no_time and not may_be_echo(blame.reason)
