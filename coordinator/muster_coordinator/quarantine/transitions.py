"""The latest transition of each node: what is stored, which actors are called, and what is retried."""

from collections import defaultdict
from collections.abc import Iterable

from muster.model import ServiceState
from muster.transition import ActionOutcome, Transition
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    ActionEnded,
    DispatchTransition,
    Note,
    QuarantineCommand,
    SaveTransition,
)
from muster_coordinator.model.transitions import TransitionRecord


class Transitions:
    """The latest transition of each node, and earlier ones that actors still answer.

    Outcomes of earlier ones are stored for the history. Only the latest transition is retried. `failed` has the nodes
    whose latest transition an actor has failed to carry out, by actor. `pending` has these nodes, and those for whose
    latest transition not every actor was called yet.
    """

    def __init__(self) -> None:
        self._latest: dict[str, TransitionRecord] = {}
        self._superseded: dict[str, TransitionRecord] = {}
        self.failed: defaultdict[str, set[str]] = defaultdict(set)
        self.pending: set[str] = set()

    def restore(self, transitions: Iterable[TransitionRecord], records: Iterable[QuarantineRecord]) -> None:
        """Takes over the transitions that the records name."""
        by_id = {record.transition.id: record for record in transitions}
        named = ((record.node, by_id.get(str(record.actors.transition))) for record in records)
        for node, latest in named:
            if latest is not None:
                self._replace(node, latest)

    def latest(self, node: str) -> TransitionRecord | None:
        return self._latest.get(node)

    def is_latest_state(self, node: str, state: ServiceState) -> bool:
        """Whether the latest transition leads to this state."""
        latest = self._latest.get(node)
        return latest is not None and latest.transition.after is state

    def is_uncordoned(self, node: str) -> bool:
        """Whether all actors were called in enforce mode to uncordon a node, and none that can cordon failed."""
        latest = self._latest.get(node)
        if latest is None or not latest.told or latest.transition.dry_run or latest.transition.is_out:
            return False
        return not any(outcome.is_scheduler_failure for outcome in latest.outcomes.values())

    def add(self, transition: Transition, *, to_actors: bool) -> tuple[QuarantineCommand, ...]:
        """A new transition; without actors, it is only stored."""
        self.supersede(transition.node)
        record = TransitionRecord(transition=transition, told=not to_actors)
        self._replace(transition.node, record)
        saved = SaveTransition(record=record)
        return (saved, DispatchTransition(record=record)) if to_actors else (saved,)

    def supersede(self, node: str) -> None:
        """Retries nothing of a node's transitions any more."""
        before = self._drop(node)
        if before is not None and not before.told:
            self._superseded[before.transition.id] = before

    def erase(self, node: str) -> None:
        """Forgets a node; outcomes of its transitions are no longer stored."""
        self._drop(node)
        kept = (record for record in self._superseded.values() if record.transition.node != node)
        self._superseded = {record.transition.id: record for record in kept}

    def retry(self, node: str, actors: tuple[str, ...]) -> tuple[QuarantineCommand, ...]:
        """Calls these actors again for the latest transition."""
        record = self._replace(node, self._latest[node].trying(actors))
        return SaveTransition(record=record), DispatchTransition(record=record, actors=actors)

    def resume(self, node: str) -> tuple[QuarantineCommand, ...]:
        """Continues where the last coordinator was interrupted."""
        record = self._latest[node]
        if not record.told:
            return (DispatchTransition(record=record),)
        return self.retry(node, record.failed) if record.failed else ()

    def known(self, node: str, id: str) -> TransitionRecord | None:
        """A transition whose actors may still answer; None when it is unknown or over."""
        latest = self._latest.get(node)
        return latest if latest is not None and latest.transition.id == id else self._superseded.get(id)

    def note_outcome(self, event: ActionEnded, now: float) -> tuple[QuarantineCommand, ...]:
        """Stores the outcome of a transition at an actor. The story gets it unless it was the same before."""
        known = self.known(event.node, event.transition)
        if known is None:
            return ()
        outcome = ActionOutcome(
            effect=event.effect,
            detail=event.detail,
            retry_after_s=event.retry_after_s,
            only_tells=event.only_tells,
        )
        record = known.after(event.actor, outcome, now)
        if event.transition in self._superseded:
            record = self._superseded[event.transition] = record.without_retries()
        else:
            self._replace(event.node, record)
        saved = SaveTransition(record=record)
        before = known.outcomes.get(event.actor)
        if before is not None and (before.effect, before.detail) == (event.effect, event.detail):
            return (saved,)
        text = f"{event.actor}: {event.effect}: {event.detail}"
        return saved, Note(node=event.node, about="action", text=text, cause=event.transition)

    def note_all_called(self, node: str, id: str) -> tuple[QuarantineCommand, ...]:
        """Stores that all actors were called once for a transition."""
        latest = self._latest.get(node)
        if latest is not None and latest.transition.id == id:
            record = self._replace(node, latest.model_copy(update={"told": True}))
        elif (earlier := self._superseded.pop(id, None)) is not None:
            record = earlier.model_copy(update={"told": True})
        else:
            return ()
        return (SaveTransition(record=record),)

    def _replace(self, node: str, record: TransitionRecord) -> TransitionRecord:
        """Makes this the latest transition of a node."""
        self._drop(node)
        self._latest[node] = record
        for actor in record.failed:
            self.failed[actor].add(node)
        if record.failed or not record.told:
            self.pending.add(node)
        return record

    def _drop(self, node: str) -> TransitionRecord | None:
        """Removes the latest transition of a node, if there is one."""
        record = self._latest.pop(node, None)
        self.pending.discard(node)
        for actor in () if record is None else record.failed:
            self.failed[actor].remove(node)
            if not self.failed[actor]:
                del self.failed[actor]
        return record
