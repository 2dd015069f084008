"""What the last surveys of all schedulers together say about a node."""

from collections.abc import Mapping

from muster.model import Name
from muster.transition import SchedulerNode

Observed = Mapping[Name, SchedulerNode]
"""By actor, how its scheduler had the node."""


def kept_off(observed: Observed) -> tuple[str, ...]:
    """By which actors' schedulers others keep work off a node, and how."""
    return tuple(f"{actor}: {seen.keeps_off}" for actor, seen in observed.items() if seen.keeps_off is not None)


def leaving(observed: Observed) -> str | None:
    """Why a node leaves as planned; None when no scheduler says so."""
    return next((seen.leaving for seen in observed.values() if seen.leaving is not None), None)
