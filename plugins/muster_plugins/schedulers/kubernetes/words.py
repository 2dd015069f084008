"""A transition in the words and forms of Kubernetes. Pure."""

from datetime import UTC, datetime

from muster import Action, Transition
from muster.model import ServiceState

_MOST_CHARACTERS = 1024
"""Of an event's text: NoteLengthLimit in pkg/apis/core/validation/events.go of Kubernetes."""


def state_word(state: ServiceState) -> str:
    """A service state as reasons are written: `InService`."""
    return state.title().replace("_", "")


def state_label(state: ServiceState) -> str:
    """A service state as the values of labels are written: `in-service`."""
    return state.lower().replace("_", "-")


def message(transition: Transition) -> str:
    """Why, and what should be done about it."""
    codes = f" ({', '.join(transition.codes)})" if transition.codes else ""
    action = f"; suggested action: {transition.action}" if transition.action is not Action.NONE else ""
    return f"{transition.reason}{codes}{action}"[:_MOST_CHARACTERS]


def api_time(seconds: float) -> str:
    """An instant as the API writes it, in whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
