"""Mass events: many nodes, one cause, a short time.

A broken driver roll-out or a broken check is then more likely than many bad nodes. During a mass event, no node of the
fleet is cordoned. Example with the defaults: 5 of 200 nodes get XID 79 within ten minutes, and draining stops. Draining
resumes when fewer than 5 nodes have it, or when a person lifts the freeze. After that, the same cause freezes again
only if fewer nodes had it in between.
"""

from collections.abc import Mapping

from muster.quarantine_settings import MassEventSettings
from muster_coordinator.model.quarantine import FleetState, MassEvent
from muster_coordinator.quarantine.budget import share_of


def fleet_state_after(
    fleet: FleetState,
    cause: str,
    since_of: Mapping[str, float],
    members: int,
    *,
    settings: MassEventSettings,
    now: float,
) -> FleetState:
    """The fleet's state when `since_of` are the nodes that have this cause, and since when each has it."""
    threshold = max(settings.nodes, share_of(settings.share, members))
    others = tuple(event for event in fleet.mass_events if event.cause != cause)
    standing = next((event for event in fleet.mass_events if event.cause == cause), None)
    if len(since_of) < threshold:
        still_lifted = tuple(other for other in fleet.lifted if other != cause)
        return fleet.model_copy(update={"mass_events": others, "lifted": still_lifted})
    if cause in fleet.lifted:
        return fleet
    lately = sum(now - since <= settings.window_s for since in since_of.values())
    if standing is None and lately < threshold:
        return fleet
    event = MassEvent(cause=cause, nodes=len(since_of), since=standing.since if standing else now)
    if standing is None:
        return fleet.model_copy(update={"mass_events": (*fleet.mass_events, event)})
    events = tuple(event if other.cause == cause else other for other in fleet.mass_events)
    return fleet.model_copy(update={"mass_events": events})


def causes_of(fleet: FleetState) -> set[str]:
    """The causes of mass events that stand, or that a person lifted."""
    return {*fleet.lifted, *(event.cause for event in fleet.mass_events)}


def lifted(fleet: FleetState) -> FleetState:
    """The fleet's state after a person lifted the freeze."""
    return fleet.model_copy(update={"mass_events": (), "lifted": tuple(sorted(causes_of(fleet)))})
