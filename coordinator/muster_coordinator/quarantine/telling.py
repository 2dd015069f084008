"""Which transitions actors have been told, and which they have to be told again."""

from collections.abc import Iterable, Mapping

from muster.model import ServiceState
from muster.transition import ActionOutcome, Effect, Transition
from muster_coordinator.model.actions import Action
from muster_coordinator.model.case import Case
from muster_coordinator.model.quarantine_events import Act, ActionEnded, Command, SaveAction


class Telling:
    """The latest transition of each node, and the earlier ones that actors are still being told.

    Of an earlier one nothing is tried again: the later says what is to be.
    """

    def __init__(self) -> None:
        self._latest: dict[str, Action] = {}
        self._earlier: dict[str, Action] = {}

    def restore(self, actions: Iterable[Action], cases: Mapping[str, Case]) -> None:
        """Takes over the transitions that `cases` name as their last."""
        by_id = {action.transition.id: action for action in actions}
        named = ((node, by_id.get(str(case.transition))) for node, case in cases.items())
        self._latest = {node: action for node, action in named if action is not None}

    def keep_telling(self, earlier: Iterable[Action]) -> None:
        """Takes over what actors are still being told."""
        self._earlier = {action.transition.id: action for action in earlier}

    @property
    def all_latest(self) -> tuple[Action, ...]:
        return tuple(self._latest.values())

    @property
    def all_earlier(self) -> tuple[Action, ...]:
        return tuple(self._earlier.values())

    def latest(self, node: str) -> Action | None:
        return self._latest.get(node)

    def is_told(self, node: str, state: ServiceState) -> bool:
        """Whether this state is what actors were told last."""
        action = self._latest.get(node)
        return action is not None and action.transition.after is state

    def is_let_in(self, node: str) -> bool:
        """Whether all actors were told in earnest to give a node work, and none has failed that can keep it off."""
        action = self._latest.get(node)
        if action is None or not action.told or action.transition.dry_run or action.transition.is_out:
            return False
        return all(outcome.effect is not Effect.FAILED or outcome.only_tells for outcome in action.outcomes.values())

    def tell(self, transition: Transition, *, to_actors: bool) -> list[Command]:
        """Tells a new transition; without actors, it is only written down."""
        self.forget(transition.node)
        action = Action(transition=transition, told=not to_actors)
        self._latest[transition.node] = action
        return [SaveAction(action=action), *([Act(action=action)] if to_actors else [])]

    def forget(self, node: str) -> None:
        """Tries nothing of a node's transitions again, though what comes of them is still written down."""
        before = self._latest.pop(node, None)
        if before is not None and not before.told:
            self._earlier[before.transition.id] = before

    def forget_all(self, node: str) -> None:
        """Does without a node: what comes of its transitions is of no interest any more."""
        self._latest.pop(node, None)
        self.keep_telling([action for action in self._earlier.values() if action.transition.node != node])

    def tell_again(self, node: str, actors: tuple[str, ...]) -> list[Command]:
        """Tells these actors the latest transition again."""
        action = self._latest[node] = self._latest[node].trying(actors)
        return [SaveAction(action=action), Act(action=action, actors=actors)]

    def resume(self, action: Action) -> list[Command]:
        """Goes on with a latest transition where the coordinator before this one was interrupted."""
        if not action.told:
            return [Act(action=action)]
        failed = tuple(actor for actor, it in action.outcomes.items() if it.effect is Effect.FAILED)
        return self.tell_again(action.transition.node, failed) if failed else []

    def known(self, node: str, transition: str) -> Action | None:
        """A transition that actors have been told or are being told; None when it is long over."""
        latest = self._latest.get(node)
        return latest if latest is not None and latest.transition.id == transition else self._earlier.get(transition)

    def note(self, event: ActionEnded, now: float) -> list[Command]:
        """Notes what came of a transition at an actor."""
        outcome = ActionOutcome(
            effect=event.effect,
            detail=event.detail,
            retry_after_s=event.retry_after_s,
            only_tells=event.only_tells,
        )
        action = self._latest.get(event.node)
        if action is not None and action.transition.id == event.transition:
            action = self._latest[event.node] = action.after(event.actor, outcome, now)
            return [SaveAction(action=action)]
        earlier = self._earlier.get(event.transition)
        if earlier is None:
            return []
        earlier = self._earlier[event.transition] = earlier.after(event.actor, outcome, now).without_retries()
        return [SaveAction(action=earlier)]

    def note_told(self, node: str, transition: str) -> list[Command]:
        """Notes that all actors have been told a transition once."""
        latest = self._latest.get(node)
        if latest is not None and latest.transition.id == transition:
            latest = self._latest[node] = latest.model_copy(update={"told": True})
            return [SaveAction(action=latest)]
        earlier = self._earlier.pop(transition, None)
        return [] if earlier is None else [SaveAction(action=earlier.model_copy(update={"told": True}))]
