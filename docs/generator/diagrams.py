"""State diagrams, drawn from the tables that the code decides by."""

from collections.abc import Callable, Iterable

from muster_agent.decide import session
from muster_coordinator.evidence import health
from muster_coordinator.quarantine import desired
from muster_coordinator.sweeps import group_table


def group_states() -> str:
    """The coordinator's side of a group."""
    return _diagram((before, step, after) for (before, step), (after, _) in group_table.TRANSITIONS.items())


def session_states() -> str:
    """A member's side of a group."""
    return _diagram((before, event.__name__, after) for (before, event), after in session.TRANSITIONS.items())


def standings() -> str:
    """How the runs of one check move its standing."""
    return _diagram((before, outcome, after) for (before, outcome), after in health.MOVES.items())


def service_states() -> str:
    """What leads from one service state to another."""
    return _diagram((before, step, after) for (before, step), after in desired.ARROWS.items())


DIAGRAMS: dict[str, Callable[[], str]] = {
    "group": group_states,
    "session": session_states,
    "service": service_states,
    "standing": standings,
}


def _diagram(moves: Iterable[tuple[str, str, str]]) -> str:
    """A Mermaid state diagram; what leads from one state to the same other one shares an arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for before, label, after in moves:
        if before != after:
            arrows.setdefault((before, after), []).append(label)
    lines = [f"    {before} --> {after}: {', '.join(labels)}" for (before, after), labels in arrows.items()]
    first = next(iter(arrows))[0]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {first}", *lines])
