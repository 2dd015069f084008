"""What is told to plugins that act on nodes, and what they answer: the contract between decisions and schedulers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator

from muster.model import Action, Data, Instant, Name, ServiceState

OUT_OF_SERVICE = frozenset({ServiceState.ACCEPTING, ServiceState.CORDONED, ServiceState.PROBATION})
"""The states in which a node shall get no work."""


class Transition(Data):
    """A change of a node's service state.

    `id` stays the same when it is told again. `codes` are the findings that led to it, with the worst first, `action`
    is what should be done about them, `by` who asked for it, None when nobody but the policy did. In a `dry_run` a
    plugin changes nothing and answers what it would do.
    """

    id: Name
    node: Name
    before: ServiceState
    after: ServiceState
    reason: str
    at: Instant
    codes: tuple[str, ...] = ()
    action: Action = Action.NONE
    by: str | None = None
    dry_run: bool = False

    @property
    def is_out(self) -> bool:
        """Whether the node shall get no work from now on."""
        return self.after in OUT_OF_SERVICE


def _writable(text: str) -> str:
    return text.encode(errors="replace").decode()


Text = Annotated[str, AfterValidator(_writable)]
"""Text of a scheduler or a plugin. What is no Unicode in it is replaced, as nothing could be written down with it."""


class Effect(StrEnum):
    """What came of an action.

    DONE: it is as the transition asks for, now or already. WOULD: what a dry run would have done. LEFT: somebody else's
    mark or an opt-out is respected, and trying again is of no use. FAILED: to be tried again.
    """

    DONE = "DONE"
    WOULD = "WOULD"
    LEFT = "LEFT"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionOutcome:
    """What came of a plugin's action on a transition; `detail` says it to people, with names and numbers.

    `retry_after_s`, of a FAILED one, is how long the other side wants to be left alone. `only_tells` says that the
    plugin tells somebody and keeps no work off nodes, so that a node's place in the budget does not depend on it.
    """

    effect: Effect
    detail: str
    retry_after_s: float | None = None
    only_tells: bool = False


class Mark(StrEnum):
    """Whose word it is that a node gets work or none.

    NONE: it gets work and nobody has said otherwise. OURS: kept out by us. UNDONE: our mark is there, but somebody has
    let work in again. FOREIGN: kept out by somebody else.
    """

    NONE = "NONE"
    OURS = "OURS"
    UNDONE = "UNDONE"
    FOREIGN = "FOREIGN"


class SchedulerNode(Data):
    """A node as its scheduler has it.

    `transition` is the id in our mark. `incomplete` says that part of what marks the node as ours is missing. `detail`
    is what a person wrote beside a mark of theirs. `leaving` says why the node goes away or is about to restart as
    planned: a scale-down, the end of a lease, an announced reboot. `is_new` says that it is kept out from its first
    moment on until somebody lets it in; by its `registration` it is told from an earlier one of the same name.
    """

    node: Name
    mark: Mark
    is_new: bool = False
    registration: Text | None = None
    transition: Text | None = None
    incomplete: bool = False
    detail: Text = ""
    opted_out: bool = False
    leaving: Text | None = None
    labels: dict[str, str] = {}


class Survey(Data):
    """How a scheduler has all of its nodes. `summary` names the scheduler; what it does not list is not in it.

    `can_cordon` says that you can keep work off nodes now. `problem` is what you lack when you should be able to, in
    words that say what to change.
    """

    summary: Text
    can_cordon: bool
    problem: Text | None = None
    nodes: tuple[SchedulerNode, ...] = ()
