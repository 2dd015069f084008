"""What schedulers and actors say about nodes, and what follows from it."""

from muster.model import ServiceState
from muster.quarantine_settings import QuarantineSettings
from muster.transition import Effect, Mark, SchedulerNode, Transition
from muster_coordinator.model.actions import Action
from muster_coordinator.model.case import OUT, Case, Hold
from muster_coordinator.model.quarantine_events import ActionEnded, AllTold, Answer, NodeNotListed, NodeSurveyed
from muster_coordinator.quarantine.deciding import Deciding
from muster_coordinator.quarantine.drift import Drift, drift
from muster_coordinator.quarantine.moves import Trigger


class Answers:
    """Takes what actors answer, and has them told again what they have not done."""

    def __init__(self, settings: QuarantineSettings, deciding: Deciding) -> None:
        self._settings = settings
        self._deciding = deciding
        self._cases = deciding.cases
        self._telling = deciding.telling
        self._saying = deciding.saying

    def take(self, answer: Answer, now: float) -> None:
        """Takes in what a scheduler or an actor has said."""
        match answer:
            case NodeSurveyed():
                self._survey(answer, now)
            case NodeNotListed():
                self._miss(answer, now)
            case ActionEnded():
                self._note_outcome(answer, now)
            case AllTold(node=node, transition=transition):
                self._saying.say(*self._telling.note_told(node, transition))
                self._note_let_in(node)

    def resume(self, node: str) -> None:
        """Goes on telling what the coordinator before this one had to say."""
        latest = self._told_in_this_mode(node)
        if latest is not None:
            self._saying.say(*self._telling.resume(latest))

    def leave(self, case: Case) -> Case:
        """Takes a node that is silent and that no scheduler has any more as one that has left."""
        if case.gone or case.online or case.views or not case.listed:
            return case
        self._saying.note(case.node, "left", "it is silent, and no scheduler lists it any more")
        return self._take_as_left(case)

    def _survey(self, event: NodeSurveyed, now: float) -> None:
        case = self._cases.get(event.node.node)
        if case is None:
            return
        self._tell_news(case, event)
        is_another, is_swapped = _is_another(case, event), _is_swapped(case, event)
        case = self._cases.change(case, views={**case.views, event.actor: event.node}, listed=True)
        if is_another:
            case = self._replace(case, event.actor)
        elif is_swapped:
            case = self._cases.change(case, trial=None)
        if self._settings.mode == "enforce" and not case.gone:
            self._correct(case, event.actor, now)
        self._try_now(case.node, event.actor, now)
        self._deciding.reconsider(self._cases.by_node[case.node], now)

    def _replace(self, case: Case, actor: str) -> Case:
        """Takes a node as one that has left, since another has come under its name: it is new when it is heard of."""
        self._saying.note(case.node, "left", f"{actor} has another node under this name, which is not accepted yet")
        return self._take_as_left(case)

    def _take_as_left(self, case: Case) -> Case:
        """Takes a node as one that has left; what it was to be let in for says nothing about the next of its name."""
        if case.state in OUT:
            return self._cases.change(case, gone=True)
        self._telling.forget(case.node)
        return self._cases.change(case, gone=True, transition=None)

    def _tell_news(self, case: Case, event: NodeSurveyed) -> None:
        """Says what others have announced or done about a node at its scheduler, and when that is over."""
        before, said = _said_of(case.views.get(event.actor)), _said_of(event.node)
        if said != before:
            text = said or f"no longer: {before}"
            self._saying.note(case.node, "scheduler", f"{event.actor}: {text}")

    def _try_now(self, node: str, actor: str, now: float) -> None:
        """Puts nothing off any longer that has failed at an actor which can tell how its scheduler has the node."""
        latest = self._told_in_this_mode(node)
        if latest is not None and latest.may_try(actor, now):
            self._saying.say(*self._telling.tell_again(node, (actor,)))

    def _correct(self, case: Case, actor: str, now: float) -> None:
        """Has an actor brought to what was decided, unless a person has decided otherwise there."""
        match drift(case, actor, self._telling.latest(case.node)):
            case Drift.UNDONE:
                self._bring_back(case, actor, now)
            case Drift.AGAIN:
                self._saying.note(case.node, "drift", f"{actor} has it otherwise than decided, and is told again")
                self._saying.say(*self._telling.tell_again(case.node, (actor,)))
            case Drift.UNTOLD:
                self._deciding.tell(case, case.state, f"{actor} was never told so", now)

    def _bring_back(self, case: Case, actor: str, now: float) -> None:
        """Respects that a person has let a node that we had taken out have work again."""
        hold = Hold(by=f"somebody at {actor}", reason="let in again by hand", at=now)
        self._saying.note(case.node, "held", f"held as it is, since {hold.by} has let it in again")
        case = self._cases.change(case, hold=hold)
        self._deciding.move(case, Trigger.BROUGHT_BACK, f"{hold.by} has let it in again", now, by=hold.by)

    def _miss(self, event: NodeNotListed, now: float) -> None:
        case = self._cases.get(event.node)
        if case is None or event.actor not in case.views:
            return
        views = {actor: view for actor, view in case.views.items() if actor != event.actor}
        self._deciding.reconsider(self.leave(self._cases.change(case, views=views)), now)

    def _note_outcome(self, event: ActionEnded, now: float) -> None:
        action = self._telling.known(event.node, event.transition)
        if action is None:
            return
        before = action.outcomes.get(event.actor)
        self._saying.say(*self._telling.note(event, now))
        if before is None or (before.effect, before.detail) != (event.effect, event.detail):
            self._saying.note(event.node, "action", f"{event.actor}: {event.effect}: {event.detail}", event.transition)
        if event.effect is Effect.DONE:
            self._note_done(action.transition, event.actor)
            self._note_shown(action.transition)
        self._note_let_in(event.node)
        self._look_when_due(event.node)

    def _note_done(self, transition: Transition, actor: str) -> None:
        """Takes a node that an actor has let in as one that is in at its scheduler, before that says so itself."""
        case = self._cases.get(transition.node)
        view = None if case is None else case.views.get(actor)
        if case is None or view is None or case.transition != transition.id or transition.is_out:
            return
        if view.mark in (Mark.OURS, Mark.UNDONE):
            seen = view.model_copy(update={"mark": Mark.NONE, "transition": None, "incomplete": False})
            self._cases.change(case, views={**case.views, actor: seen})

    def _note_shown(self, transition: Transition) -> None:
        case = self._cases.get(transition.node)
        if case is not None:
            self._cases.change(case, announced=transition.after is ServiceState.HELD)

    def _note_let_in(self, node: str) -> None:
        """Notes that a node is in service again, once no actor has still to do something for that."""
        case = self._cases.get(node)
        if case is not None and self._telling.is_let_in(node):
            self._cases.change(case, closed_as=None)

    def retry(self, node: str, now: float) -> None:
        """Tells the actors again that have failed and whose time has come."""
        latest = self._told_in_this_mode(node)
        due = () if latest is None else latest.due(now)
        if due:
            self._saying.say(*self._telling.tell_again(node, due))
        self._look_when_due(node)

    def _look_when_due(self, node: str) -> None:
        latest = self._told_in_this_mode(node)
        if latest is not None and latest.next_try is not None:
            self._cases.look_at(node, latest.next_try)

    def _told_in_this_mode(self, node: str) -> Action | None:
        """The latest transition; None when there is none, or one that nobody is to be told of in this mode."""
        latest = self._telling.latest(node)
        if latest is None or latest.transition.dry_run is not self._deciding.is_dry:
            return None
        return latest if self._deciding.reaches_actors(self._cases.by_node[node], latest.transition) else None


def _is_another(case: Case, event: NodeSurveyed) -> bool:
    """Whether a node that we have not taken out has been registered anew, and is kept out until it is accepted.

    One that has opted out is not taken for another before it is ours to let in again.
    """
    before = case.views.get(event.actor)
    is_known = before is not None and before.registration == event.node.registration and not _opted_out_anew(before)
    waits = event.node.is_new and not event.node.opted_out
    return waits and case.listed and not is_known and case.state not in OUT and not case.gone


def _is_swapped(case: Case, event: NodeSurveyed) -> bool:
    """Whether a node that is being tested has been registered anew: it may be another, which has passed nothing."""
    before = case.views.get(event.actor)
    if before is None or before.registration is None or case.state not in OUT:
        return False
    return before.registration != event.node.registration


def _opted_out_anew(view: SchedulerNode) -> bool:
    return view.is_new and view.opted_out


def _said_of(view: SchedulerNode | None) -> str:
    """What others say about a node at its scheduler; empty when nothing."""
    if view is None:
        return ""
    said = [
        f"it is leaving: {view.leaving}" if view.leaving is not None else "",
        "it has opted out" if view.opted_out else "",
        f"somebody else keeps it out: {view.detail or 'without a reason'}" if view.mark is Mark.FOREIGN else "",
    ]
    return "; ".join(filter(None, said))
