"""Between the quarantine and the rest of the fleet: what happens to nodes it is told, what it decides is carried out.

Every event that has led to anything is written into a log together with the decisions, from which they follow again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from muster.model import ServiceState
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model import events as fleet
from muster_coordinator.model.actions import Action
from muster_coordinator.model.case import OUT, Case
from muster_coordinator.model.events import Announce, SaveNode
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.quarantine_events import (
    Beginning,
    Command,
    Event,
    Note,
    SaveAction,
    SaveCase,
    StartTest,
    Step,
    TimePassed,
    step_of,
)
from muster_coordinator.model.quarantine_views import CaseView, QuarantineView
from muster_coordinator.quarantine.machine import Quarantine
from muster_coordinator.quarantine.policy import Policy

Commanded = fleet.Command | StartTest

LOG_S = 86_400.0
"""How long a log goes on before it begins anew: only up to a beginning can it be removed when it is old."""


class ServiceStates:
    """Lets `quarantine` decide about the nodes of `registry`, and shows them as decided.

    `changes` counts by service state how often a node has come to it since the start.
    """

    def __init__(self, quarantine: Quarantine, registry: NodeRegistry, orders: Orders) -> None:
        self.changes: Counter[ServiceState] = Counter()
        self._quarantine = quarantine
        self._registry = registry
        self._orders = orders
        self._log_begun = 0.0
        self._looks: list[Step] = []  # of the log, written with the next decision: without one they are of no use

    @property
    def cases(self) -> Mapping[str, Case]:
        """The case of every node, by name."""
        return self._quarantine.cases

    def listed(self) -> dict[str, set[str]]:
        """By actor, the nodes of which it has said how its scheduler has them."""
        listed: defaultdict[str, set[str]] = defaultdict(set)
        for case in self.cases.values():
            for actor in case.views:
                listed[actor].add(case.node)
        return listed

    def has_left(self, node: str) -> bool:
        """Whether a node has left the fleet while it was not out of service, and nobody has come under its name yet."""
        case = self.cases.get(node)
        return case is not None and case.gone and case.state not in OUT

    def last_action(self, node: str) -> Action | None:
        """A node's last transition, with what came of it; None when there was none, or it counts no more."""
        return self._quarantine.last_action(node)

    def case_view(self, node: str) -> CaseView:
        """A node's case as people see it; KeyError when there is none."""
        return self._quarantine.case_view(node)

    def view(self) -> QuarantineView:
        """What is decided about the fleet as a whole."""
        return self._quarantine.view()

    def long_gone(self, event: fleet.RetentionEnded) -> set[str]:
        """The nodes that need be remembered no more."""
        return {case.node for case in self.cases.values() if case.is_long_gone(event.before, event.left_before)}

    def restore(self, cases: Iterable[Case], actions: Iterable[Action], now: float) -> list[Commanded]:
        """Takes over what is stored; of nodes that have no case yet, the service state is all that is known."""
        known = {case.node: case for case in cases}
        for name, node in self._registry.nodes.items():
            case = known.setdefault(name, Case(node=name, state=node.service, since=node.first_seen))
            node.dry_run, node.left = case.dry_run, case.gone
            node.evidence.date_as(case.charges)
        begun = self._begin_log(self._quarantine.begin(known.values(), actions), now)
        self._registry.report_all(without={name for name in self._registry.nodes if self.has_left(name)})
        return [*begun, *self.settle(now)]

    def awaits(self, node: str, run: str) -> bool:
        """Whether the run is the test that the coordinator has asked the node for."""
        case = self.cases.get(node)
        return case is not None and case.awaits(run)

    def tick(self, now: float) -> list[Commanded]:
        """Lets time pass, also when a clock was set back."""
        begun = self._renew(now) if abs(now - self._log_begun) >= LOG_S else []
        is_due = self._quarantine.is_due(now)
        decided = self.handle(TimePassed(), now)
        if is_due and not decided:
            self._looks.append(step_of(TimePassed(), (), now))
        return [*begun, *decided]

    def settle(self, now: float) -> list[Commanded]:
        """Lets the quarantine know what has happened since it was told last."""
        return [command for event in self._registry.take_news() for command in self.handle(event, now)]

    def handle(self, event: Event, now: float) -> list[Commanded]:
        """What is to be done about `event`; Refused when a request is not valid, and then nothing has changed."""
        said = self._quarantine.handle(event, now)
        return self._decided(event, said, now) if said else []

    def _renew(self, now: float) -> list[Commanded]:
        """Has the log begin anew, and another machine with it: just so the log is gone through again."""
        event = self._quarantine.renewal()
        self._quarantine = Quarantine(event.settings, Policy(event.rows), self._orders.epoch)
        return self._begin_log(event, now)

    def _begin_log(self, event: Beginning, now: float) -> list[Commanded]:
        self._log_begun, self._looks = now, []
        return self._decided(event, self._quarantine.handle(event, now), now)

    def _decided(self, event: Event, said: list[Command], now: float) -> list[Commanded]:
        steps, self._looks = [*self._looks, step_of(event, said, now)], []
        return [*(fleet.SaveStep(self._orders.epoch, step) for step in steps), *self._carry_out(said, now)]

    def _carry_out(self, said: Iterable[Command], now: float) -> list[Commanded]:
        commands: list[Commanded] = []
        changed: dict[str, None] = {}
        for command in said:
            match command:
                case SaveCase(case=case):
                    changed[case.node] = None
                    commands += [command, *self._follow(case, now)]
                case SaveAction(action=action):
                    changed[action.transition.node] = None
                    commands.append(command)
                case Note(node=node, about=about, text=text, cause=cause, data=data):
                    commands.append(self._registry.story.tell(node, about, text, cause, now, data=data))
                case _:
                    commands.append(command)
        views = (self._quarantine.case_view(node) for node in changed if node in self.cases)
        return [*commands, *(Announce("case", view) for view in views)]

    def _follow(self, case: Case, now: float) -> list[fleet.Command]:
        """Shows a node as was decided; of one that was forgotten there is nothing to show."""
        node = self._registry.nodes.get(case.node)
        if node is None or (node.service, node.dry_run, node.left) == (case.state, case.dry_run, case.gone):
            return []
        if node.service is not case.state:
            self.changes[case.state] += 1
        node.service, node.dry_run, node.left = case.state, case.dry_run, case.gone
        return [SaveNode(node.record()), Announce("node", self._registry.view(node, now))]
