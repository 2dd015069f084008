"""What a quarantine promises, whatever happens."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.simulation.quarantine.models import Entry

from muster.model import ServiceState
from muster.transition import Mark, Transition
from muster_coordinator.evidence.standing_findings import standing_findings_of
from muster_coordinator.model.quarantine_events import DispatchTransition, QuarantineCommand, SaveTransition
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.quarantine.budget import Limits

if TYPE_CHECKING:
    from tests.simulation.quarantine.world import World

FINDINGS_NEEDED = {"gemm.slow": 2, "nvml.gone": 1, "collective.slow": 1}
"""By code, how often it must have been found before a node may go; an application's XID is not among them."""


def is_away(case: CaseView, entry: Entry) -> bool:
    """Whether a node gives no capacity, by our decision, by a mark of ours that is still there, or by anybody's."""
    is_out = case.state in (ServiceState.CORDONED, ServiceState.PROBATION) or entry.is_closed_by_us
    return is_out or case.lost_at is not None or any(seen.mark is Mark.FOREIGN for seen in case.observed.values())


class Promises:
    """What must hold after every event, whatever happens."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._known: set[str] = set()
        self._taken_out: dict[str, float] = {}

    def check(self, said: Iterable[QuarantineCommand]) -> None:
        for command in said:
            if isinstance(command, DispatchTransition):
                self._check_is_in_mode(command.record.transition)
        transitions = [command.record.transition for command in said if isinstance(command, SaveTransition)]
        fresh = [transition for transition in transitions if transition.id not in self._known]
        self._known |= {transition.id for transition in fresh}
        for transition in fresh:
            self._check_is_ours_to_say(transition)
        taken_out = [
            it for it in fresh if it.after is ServiceState.CORDONED and it.before not in (it.after, "PROBATION")
        ]
        for transition in taken_out:
            self._check_has_a_reason(transition)
        if taken_out:
            self._check_budget(taken_out)
            self._check_rate(taken_out)

    def forget(self, unstored: Iterable[QuarantineCommand]) -> None:
        """What was decided and neither stored nor said has never been."""
        for command in unstored:
            if isinstance(command, SaveTransition):
                self._taken_out.pop(command.record.transition.id, None)

    def _check_is_in_mode(self, transition: Transition) -> None:
        """Observe mode only uncordons nodes, and a dry run says that it is one."""
        mode = self._world.settings.mode
        assert transition.dry_run == (mode == "dry-run")
        assert mode != "observe" or not transition.is_out

    def _check_is_ours_to_say(self, transition: Transition) -> None:
        """Nothing is decided about nodes that somebody holds, has cordoned or has opted out."""
        if transition.by is None and transition.before not in (transition.after, ServiceState.ACCEPTING):
            assert self._world.reconciler.records[transition.node].left_alone_because is None

    def _check_has_a_reason(self, transition: Transition) -> None:
        """A node goes for what stands against it now and was found as often as it must be."""
        node = self._world.nodes[transition.node]
        standing = {charge.code for charge in standing_findings_of(node.evidence)}
        sure = {code for code in transition.codes if node.found[code] >= FINDINGS_NEEDED.get(code, 1e9)}
        assert sure & standing

    def _check_budget(self, taken_out: Iterable[Transition]) -> None:
        """We never take a node out when too many are away already, as a whole or in its failure domain."""
        budget = Limits(self._world.settings.limits)
        cases = self._world.cases.values()
        members = [case for case in cases if not case.left and case.state is not ServiceState.ACCEPTING]
        away = [case for case in members if is_away(case, self._world.entries[case.node])]
        assert len(away) <= budget.limit(len(members)) < len(members)
        of_place, away_of_place = Counter(it.domain for it in members), Counter(it.domain for it in away)
        for place in {self._world.reconciler.records[transition.node].evidence.domain for transition in taken_out}:
            assert away_of_place[place] <= budget.domain_limit(of_place[place])

    def _check_rate(self, taken_out: Iterable[Transition]) -> None:
        """Not more nodes go within a minute than may, or one where that is less than one."""
        settings = self._world.settings.limits
        self._taken_out |= {transition.id: transition.at for transition in taken_out}
        recent = [at for at in self._taken_out.values() if at > self._world.now - 60]
        assert len(recent) <= max(1.0, settings.per_minute)
