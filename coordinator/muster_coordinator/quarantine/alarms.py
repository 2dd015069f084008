"""Alarms: problems of the quarantine that need a person, begun once and ended once.

An alarm is a level. Each node raises the levels that its own record and its latest transition show: it waits for the
budget, an actor fails for it, no actor drains it, it needs a person. All nodes with the same kind and subject are one
alarm. With every tick the levels are compared with the standing alarms. These are stored, so a restart raises none
again.

Levels flap, alarms must not. An actor must have failed for a node for a minute before that is an alarm, and an alarm is
over only when its level was gone for a minute. Example: Slurm fails from 10:00 to 10:03 and answers every now and then.
The alarm begins at 10:01. Each failure keeps it up, and it is over at 10:04. What a person ended is over at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from muster.alarm import Alarm, AlarmKind
from muster.model import ServiceState, format_instant
from muster.quarantine_settings import QuarantineSettings
from muster.transition import Effect
from muster_coordinator.model.quarantine import OUT, FleetState, QuarantineRecord, Wait
from muster_coordinator.model.quarantine_events import EraseNode, Note, QuarantineCommand, SaveTransition, SendAlarm
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.actors import concerns_mode
from muster_coordinator.quarantine.alarm_deliveries import after_news
from muster_coordinator.quarantine.alarm_texts import FLEET, RATE, AlarmTexts, Key, about_node, node_of
from muster_coordinator.quarantine.desired import Rules, needs_person
from muster_coordinator.quarantine.records import Records
from muster_coordinator.quarantine.transitions import Transitions

FAILING_S = 60.0
"""How long an actor fails for a node, or no actor drains it, before that is an alarm. Most failures are over sooner."""

CALM_S = 60.0
"""How long a level must be gone for its alarm to be over."""

_SUBJECT = {Wait.LAST_NODE: FLEET, Wait.BUDGET: FLEET, Wait.RATE: RATE, Wait.ORDER: RATE}


class Alarms:
    """The levels of all nodes in `records`, by the settings of the quarantine."""

    def __init__(self, settings: QuarantineSettings, records: Records, transitions: Transitions, rules: Rules) -> None:
        self._settings = settings
        self._records = records
        self._transitions = transitions
        self._rules = rules
        self._texts = AlarmTexts(settings, records, transitions)
        self._levels: defaultdict[Key, dict[str, float]] = defaultdict(dict)  # by node, since when it is so
        self._keys_of: dict[str, tuple[Key, ...]] = {}
        self._calm_since: dict[Key, float] = {}

    def count_changed(self, records: Iterable[QuarantineRecord], commands: Iterable[QuarantineCommand]) -> None:
        """Counts these nodes again, and those with a new transition or outcome, or that are forgotten."""
        nodes = {record.node for record in records}
        for command in commands:
            if isinstance(command, SaveTransition):
                nodes.add(command.record.transition.node)
            elif isinstance(command, EraseNode):
                nodes.add(command.node)
        self.count(nodes)

    def count(self, nodes: Iterable[str]) -> None:
        """Counts nodes again in every level, after their records or transitions changed."""
        for node in nodes:
            for key in self._keys_of.pop(node, ()):
                del self._levels[key][node]
                if not self._levels[key]:
                    del self._levels[key]
            record = self._records.by_node.get(node)
            if record is None or record.evidence.has_left:
                continue
            latest = self._transitions.latest(node)
            levels = dict(levels_of(record, latest, self._rules, self._settings.limits.domain))
            for key, since in levels.items():
                self._levels[key][node] = since
            if levels:
                self._keys_of[node] = tuple(levels)

    def look(self, fleet: FleetState, now: float) -> tuple[FleetState, list[QuarantineCommand]]:
        """The fleet's state with the alarms that stand now, and the commands that send those that begin or end."""
        fleet, news = self._compared(fleet, now)
        commands: list[QuarantineCommand] = []
        for alarm in news:
            node = node_of(alarm.subject) if alarm.kind is AlarmKind.ACTION else None
            if node is not None and node in self._records.by_node:
                commands.append(Note(node=node, about="alarm", text=alarm.text))
            commands.append(SendAlarm(alarm=alarm))
        return after_news(fleet, news), commands

    def standing(self, fleet: FleetState) -> tuple[Alarm, ...]:
        """The alarms that stand, with the numbers and names of now."""
        levels = self._all_levels(fleet)
        return tuple(alarm.model_copy(update={"text": self._text_now(alarm, levels)}) for alarm in fleet.alarms)

    def _compared(self, fleet: FleetState, now: float) -> tuple[FleetState, list[Alarm]]:
        """The fleet's state with the alarms that stand now, and those that begin or end."""
        levels = self._all_levels(fleet)
        standing = {alarm.key: alarm for alarm in fleet.alarms if alarm.dry_run is self._rules.is_dry}
        ended = [self._outdated(alarm, now) for alarm in fleet.alarms if alarm.dry_run is not self._rules.is_dry]
        for key in [key for key in standing if self._is_over(key, levels, fleet, now)]:
            text = self._marked(self._texts.end(key, fleet))
            ended.append(standing.pop(key).model_copy(update={"text": text, "ended_at": now}))
        begun = [
            self._begun(key, nodes, now)
            for key, nodes in levels.items()
            if key not in standing and self._begins(key, nodes, now)
        ]
        if not begun and not ended:
            return fleet, []
        return fleet.model_copy(update={"alarms": (*standing.values(), *begun)}), [*ended, *begun]

    def _text_now(self, alarm: Alarm, levels: Mapping[Key, Mapping[str, float]]) -> str:
        key = alarm.key
        if (nodes := levels.get(key)) is not None:
            return self._marked(self._texts.begin(key, nodes))
        if (calm_since := self._calm_since.get(key)) is None:
            return alarm.text
        return f"{alarm.text} (cleared at {format_instant(calm_since)})"

    def _all_levels(self, fleet: FleetState) -> dict[Key, Mapping[str, float]]:
        """By kind and subject, the nodes that raise it, and since when each does."""
        mass_events = {
            (AlarmKind.MASS_EVENT, event.cause): self._records.nodes_with(event.cause) for event in fleet.mass_events
        }
        return {**mass_events, **self._levels}

    def _begins(self, key: Key, nodes: Mapping[str, float], now: float) -> bool:
        if key == (AlarmKind.BUDGET, RATE):
            return len(nodes) > self._settings.limits.per_minute
        return key[0] is not AlarmKind.ACTION or any(now - since >= FAILING_S for since in nodes.values())

    def _is_over(self, key: Key, levels: Mapping[Key, Mapping[str, float]], fleet: FleetState, now: float) -> bool:
        if key in levels:
            self._calm_since.pop(key, None)
            return False
        self._calm_since[key] = min(now, self._calm_since.get(key, now))  # a clock that is set back starts over
        is_lifted = key[0] is AlarmKind.MASS_EVENT and key[1] in fleet.lifted
        is_ended_by_person = is_lifted or key[0] is AlarmKind.PERSON
        if not is_ended_by_person and now - self._calm_since[key] < CALM_S:
            return False
        del self._calm_since[key]
        return True

    def _begun(self, key: Key, nodes: Mapping[str, float], now: float) -> Alarm:
        text = self._marked(self._texts.begin(key, nodes))
        return Alarm(kind=key[0], subject=key[1], text=text, since=now, dry_run=self._rules.is_dry)

    def _outdated(self, alarm: Alarm, now: float) -> Alarm:
        """The end of an alarm of another mode. If its cause remains, it begins again as one of this mode."""
        text = f"Over, as the mode is {self._settings.mode} now: {alarm.text}"
        return alarm.model_copy(update={"text": text, "ended_at": now})

    def _marked(self, text: str) -> str:
        return f"{text} (dry run)" if self._rules.is_dry else text


def levels_of(
    record: QuarantineRecord, latest: TransitionRecord | None, rules: Rules, domain: str
) -> Iterator[tuple[Key, float]]:
    """The alarm levels that one node raises, each with its start; `domain` is what a failure domain is called.

    A node that muster leaves alone raises no wait: a person knows of it.
    """
    decision = record.decision
    if record.left_alone_because is None:
        if (subject := _waits_for(record, domain)) is not None:
            yield (AlarmKind.BUDGET, subject), decision.required_since or decision.since
        if record.state is ServiceState.CORDONED and needs_person(decision.cordoned_at, rules.returning):
            yield (AlarmKind.PERSON, record.node), decision.since
    if latest is None or not concerns_mode(record, latest, rules):
        return
    for actor, outcome in latest.outcomes.items():
        if outcome.is_scheduler_failure:
            yield (AlarmKind.ACTION, actor), outcome.failing_since or outcome.at
    if record.left_alone_because is None and is_drained_by_nobody(record, latest):
        yield (AlarmKind.ACTION, about_node(record.node)), latest.transition.at


def _waits_for(record: QuarantineRecord, domain: str) -> str | None:
    """The limit that a node waits for; new nodes have no work, so their wait is no alarm."""
    wait = record.decision.waits_for
    if wait is None or record.state is ServiceState.ACCEPTING:
        return None
    return f"{domain} {record.evidence.domain}" if wait is Wait.DOMAIN_BUDGET else _SUBJECT.get(wait)


def is_drained_by_nobody(record: QuarantineRecord, latest: TransitionRecord) -> bool:
    """Whether a node is out in name only: all actors were called, and each that can cordon left it as it is.

    In a dry run there may be no actor at all; then this is False.
    """
    if record.state not in OUT or not latest.told or not latest.transition.is_out:
        return False
    effects = [outcome.effect for outcome in latest.outcomes.values() if not outcome.only_tells]
    return all(effect is Effect.LEFT for effect in effects) and (bool(effects) or not latest.transition.dry_run)
