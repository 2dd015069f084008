"""A transition in the words and forms of Kubernetes. Pure."""

from datetime import UTC, datetime

from muster import Action, Transition, cause_text
from muster.model import ServiceState

MOST_CHARACTERS = 1024
"""Of the text of an Event or condition: NoteLengthLimit in pkg/apis/core/validation/events.go of Kubernetes."""


def state_word(state: ServiceState) -> str:
    """A service state as reasons are written: `InService`."""
    return state.title().replace("_", "")


def state_label(state: ServiceState) -> str:
    """A service state as the values of labels are written: `in-service`."""
    return state.lower().replace("_", "-")


def message(transition: Transition) -> str:
    """The cause first, then what was decided and why; the transition's id comes last and is never cut."""
    ending = f" ({transition.id})"
    return f"{_why(transition)[: MOST_CHARACTERS - len(ending)]}{ending}"


def _why(transition: Transition) -> str:
    cause = cause_text(transition)
    if cause != transition.reason:
        return f"{cause}; {transition.reason}"
    codes = f" ({', '.join(transition.codes)})" if transition.codes else ""
    action = f"; suggested action: {transition.action}" if transition.action is not Action.NONE else ""
    return f"{transition.reason}{codes}{action}"


def api_time(seconds: float) -> str:
    """An instant as the API writes it, in whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
