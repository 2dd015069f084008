"""The evidence of a sweep so far, the diagnosis that follows, and the groups that run next."""

from bisect import bisect_right

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.strategies.strategy import Strategy, planner_of
from muster_coordinator.localize.wording.report import DiagnosisReport, report_of
from muster_coordinator.model.probes import GroupRun, RunOutcome, Site
from muster_coordinator.model.sweep_records import Blame, Ending, GroupRecord, SweepRecord
from muster_coordinator.sweeps.formation import Formation, formations
from muster_coordinator.sweeps.group_run import beside_of, group_run_of
from muster_coordinator.sweeps.member import SILENT, may_be_echo
from muster_coordinator.sweeps.plan import SweepPlan
from muster_coordinator.topology.learned import MeasuredPair


class SweepEvidence:
    """The group runs of a sweep in their order, and the nodes that are `absent`, each with the reason.

    `sites` are those of all its nodes in topology order, `planner` is its strategy over them.
    """

    def __init__(self, plan: SweepPlan) -> None:
        self.runs: list[GroupRun] = []
        self._together_ended_at: list[float] = []
        self._round = 0
        self.absent = dict(plan.absent)
        self._plan = plan
        known = {site.node: site for site in plan.sites}
        self.sites = {node: known.get(node, Site(node)) for node in plan.nodes}
        self.planner = planner_of(
            plan.strategy,
            self.sites,
            abilities=plan.abilities,
            seed=plan.id,
            pairing=plan.pairing,
            passes=plan.passes,
            prior=plan.prior,
        )

    def add(self, record: GroupRecord, again: Formation | None, *, live_together: int) -> None:
        """Adds the result of an ended group, unless it is formed again, and marks its lost members as absent.

        `live_together` other groups of several nodes have not ended yet.
        """
        if again is not None:
            missed = [blame for blame in record.blamed if blame.node not in again.members]
        else:
            ended = len(self._together_ended_at) - bisect_right(self._together_ended_at, record.started_at)
            run = self._group_run(record, live_together + ended)
            self.runs.append(run)
            if len(record.members) > 1:
                self._together_ended_at.append(record.ended_at or record.started_at)
            missed = [blame for blame in record.blamed if run.outcome is RunOutcome.VOID and _is_lost(blame, record)]
        for blame in missed:
            self.mark_absent(blame.node, f"{blame.reason}: {blame.detail}".removesuffix(": "))

    def mark_absent(self, node: str, why: str) -> None:
        """Notes that a node takes no further part. The first reason counts."""
        self.absent.setdefault(node, why)

    def resume(self, record: SweepRecord) -> None:
        """Adds the results of groups from before a restart, except those that the restart interrupted."""
        self.absent.update(record.absent)
        for stage in record.rounds:
            self._round = stage.number
            groups = [group for group in stage.groups if group.is_evidence]
            for group, beside in zip(groups, beside_of(groups), strict=True):
                self.runs.append(self._group_run(group, beside))

    def next_groups(self, rounds: int) -> list[Formation]:
        """The groups that the strategy runs after this number of rounds; none if nothing more can be learned."""
        if rounds >= self.planner.max_rounds:
            return []
        self._round += 1
        return formations(self.planner.next_groups(tuple(self.runs), frozenset(self.absent)))

    def report(self) -> DiagnosisReport:
        """The report of the diagnosis from the runs so far."""
        evidence, compares = GroupEvidence(self.sites, tuple(self.runs)), self._plan.strategy is not Strategy.WHOLE
        diagnosis = Diagnosis(evidence, self._plan.abilities, self._plan.prior, compares=compares)
        return report_of(diagnosis, self._plan.task.check, self._plan.task.objective)

    def measured_pairs(self) -> list[MeasuredPair]:
        """The bandwidth that pairs of nodes have reached."""
        good = (run for run in self.runs if run.outcome is RunOutcome.GOOD and len(run.members) == 2)
        return [
            MeasuredPair(run.members[0], run.members[1], run.objective) for run in good if run.objective is not None
        ]

    def _group_run(self, record: GroupRecord, beside: int) -> GroupRun:
        task = self._plan.task
        return group_run_of(record, task.rail_metric, task.judged_metric, beside=beside, number=self._round)


def _is_lost(blame: Blame, record: GroupRecord) -> bool:
    """Whether a member can take no further part.

    A member that only saw its peers fail can, and so can one that had no time to answer before the group was aborted.
    """
    had_no_time = blame.reason == SILENT and record.ending is Ending.ABORTED
    return not had_no_time and not may_be_echo(blame.reason)
