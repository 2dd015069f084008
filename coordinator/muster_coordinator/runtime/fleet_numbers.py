"""The numbers about the fleet that viewers see, read from the live parts."""

from muster_coordinator.fleet import Fleet
from muster_coordinator.model.fleet_columns import FleetNumbers
from muster_coordinator.runtime.actor_poller import ActorPoller
from muster_coordinator.runtime.link import CoordinatorLink


def fleet_numbers(fleet: Fleet, link: CoordinatorLink, poller: ActorPoller, now: float) -> FleetNumbers:
    """The numbers at the time `now`. They cost no look at each node, except at those that schedulers keep out."""
    counted, decided = fleet.tally(now), fleet.quarantine_view()
    return FleetNumbers(
        nodes=counted.health.total(),
        health=dict(counted.health),
        service=dict(counted.service),
        lost=len(counted.lost),
        mode=decided.mode,
        away=decided.away,
        limit=decided.limit,
        held=len(decided.held),
        frozen=len(decided.frozen),
        alarms=len(decided.alarms),
        catching_up=decided.catching_up,
        waiting_runs=counted.waiting_runs,
        sweeps=fleet.running,
        is_connected=link.connected,
        is_overloaded=fleet.load.is_overloaded,
        failing_actors=tuple(actor.name for actor in poller.actors if actor.problem is not None),
        unheard=len(poller.unheard(fleet.is_present)),
    )
