"""What alarms say: what is wrong, where, and what to do, in one line however many nodes there are."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from muster.alarm import AlarmKind
from muster.model import ServiceState, format_instant
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.findings import cause_label
from muster_coordinator.model.quarantine import OUT, FleetState
from muster_coordinator.quarantine.budget import Limits
from muster_coordinator.quarantine.records import Records
from muster_coordinator.quarantine.transitions import Transitions

Key = tuple[AlarmKind, str]
"""Kind and subject."""

FLEET = "fleet"
RATE = "rate"
"""Subjects of BUDGET. Those of failure domains have two words."""

_NODE = "node "


def about_node(node: str) -> str:
    """The subject of ACTION for a node. Names have no spaces, so no actor is called like that."""
    return f"{_NODE}{node}"


def node_of(subject: str) -> str | None:
    """The node of such a subject; None for an actor."""
    return subject.removeprefix(_NODE) if subject.startswith(_NODE) else None


MOST_CHARACTERS = 500
"""Longest text, however many nodes it is about; the mark of a dry run comes on top."""

MOST_NAMES = 5
_MOST_DETAIL = 200

_TASKS = {
    ServiceState.CORDONED: "drain",
    ServiceState.ACCEPTING: "drain",
    ServiceState.IN_SERVICE: "resume",
    ServiceState.PROBATION: "update",
    ServiceState.HELD: "update",
}
"""What a failing actor does not do, by the state that its transition leads to."""


class AlarmTexts:
    """The texts of all alarms about the nodes in `records`."""

    def __init__(self, settings: QuarantineSettings, records: Records, transitions: Transitions) -> None:
        self._settings = settings
        self._limits = Limits(settings.limits)
        self._records = records
        self._transitions = transitions

    def begin(self, key: Key, nodes: Mapping[str, float]) -> str:
        """What is wrong, and with which nodes."""
        kind, subject = key
        match kind:
            case AlarmKind.MASS_EVENT:
                text = self._mass_event(subject, nodes)
            case AlarmKind.BUDGET:
                text = self._budget(subject, nodes)
            case AlarmKind.PERSON:
                text = self._person(subject)
            case AlarmKind.ACTION:
                node = node_of(subject)
                text = self._failing(subject, nodes) if node is None else self._in_name_only(node)
        return _cut(text, MOST_CHARACTERS)

    def end(self, key: Key, fleet: FleetState) -> str:
        """Why the alarm is over."""
        kind, subject = key
        match kind:
            case AlarmKind.MASS_EVENT:
                text = self._mass_event_over(subject, fleet)
            case AlarmKind.BUDGET if subject == RATE:
                text = "No faulty node waits for the rate limit any more"
            case AlarmKind.BUDGET:
                text = f"No faulty node waits for room in the {subject} any more"
            case AlarmKind.PERSON:
                text = f"{subject} does not wait for a person any more: {self._how_it_is(subject)}"
            case AlarmKind.ACTION:
                node = node_of(subject)
                in_name = f"{node} is no longer out in name only: {self._how_it_is(str(node))}"
                text = f"{subject} drains again" if node is None else in_name
        return _cut(text, MOST_CHARACTERS)

    def _mass_event(self, cause: str, nodes: Iterable[str]) -> str:
        names = [*nodes]
        report = f"Mass event: {len(names)} of {self._records.census.members} nodes report {cause_label(cause)}"
        if self._settings.mode == "observe":
            return f"{report}; nothing is drained, as the mode is observe"
        drained = sum(self._records.by_node[node].state in OUT for node in names)
        freeze = f"draining frozen, {drained} already drained"
        return f"{report}; {freeze}. To resume: `muster quarantine unfreeze`"

    def _mass_event_over(self, cause: str, fleet: FleetState) -> str:
        others = ", ".join(cause_label(event.cause) for event in fleet.mass_events)
        then = f"draining stays frozen because of {others}" if others else "draining goes on"
        if cause in fleet.lifted:
            return f"Mass event lifted by a person: {cause_label(cause)}; {then}"
        left = len(self._records.nodes_with(cause))
        return f"Mass event over: {left} {_nodes(left)} still report {cause_label(cause)}; {then}"

    def _budget(self, subject: str, nodes: Mapping[str, float]) -> str:
        waiting = f"{len(nodes)} faulty {_nodes(len(nodes))} not drained"
        census = self._records.census
        if subject == RATE:
            return f"{waiting} yet: rate limit of {self._settings.limits.per_minute:g} in a minute reached"
        if subject == FLEET:
            limit = self._limits.limit(census.members)
            reached = f"budget of {limit} of {census.members} reached"
            return f"{waiting}: {reached if limit else 'the last node in service is never drained'}"
        domain = str(self._records.by_node[next(iter(nodes))].evidence.domain)
        members = census.members_of[domain]
        return f"{waiting}: budget of {subject}, {self._limits.domain_limit(members)} of {members}, reached"

    def _person(self, node: str) -> str:
        times = self._records.by_node[node].decision.cordoned_at
        drained = f"{node} was drained {len(times)} times since {format_instant(times[0])}"
        return f"{drained}; it stays out until `muster quarantine release {node}`"

    def _failing(self, actor: str, nodes: Iterable[str]) -> str:
        """What an actor does not do for which nodes, and why for the first of them."""
        by_task: defaultdict[str, list[str]] = defaultdict(list)
        for node in sorted(nodes):
            latest = self._transitions.latest(node)
            assert latest is not None, "it fails for this node"
            by_task[_TASKS[latest.transition.after]].append(node)
        first = next(iter(by_task.values()))[0]
        tasks = "; ".join(f"does not {task} {_names(named)}" for task, named in by_task.items())
        return f"{actor} {tasks}: {_cut(self._detail(first, actor), _MOST_DETAIL)}"

    def _in_name_only(self, node: str) -> str:
        latest = self._transitions.latest(node)
        outcomes = {} if latest is None else latest.outcomes
        schedulers = [actor for actor, outcome in outcomes.items() if not outcome.only_tells]
        details = [f"{actor}: {self._detail(node, actor)}" for actor in schedulers]
        return f"No actor drains {node}: {_cut('; '.join(details), _MOST_DETAIL) or 'no scheduler knows it'}"

    def _detail(self, node: str, actor: str) -> str:
        latest = self._transitions.latest(node)
        return "" if latest is None else " ".join(latest.outcomes[actor].detail.split())

    def _how_it_is(self, node: str) -> str:
        record = self._records.by_node.get(node)
        if record is None or record.evidence.has_left:
            return "it has left the fleet"
        return record.left_alone_because or f"it is {record.state.replace('_', ' ').lower()}"


def _names(nodes: list[str]) -> str:
    shown = ", ".join(nodes[:MOST_NAMES])
    return shown if len(nodes) <= MOST_NAMES else f"{shown} and {len(nodes) - MOST_NAMES} more"


def _nodes(count: int) -> str:
    return "node" if count == 1 else "nodes"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
