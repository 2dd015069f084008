"""The numbers about the fleet that viewers see, read from the live parts."""

from muster_coordinator.model.fleet_columns import FleetNumbers
from muster_coordinator.runtime.actor_poller import ActorPoller
from muster_coordinator.runtime.link import CoordinatorLink
from muster_coordinator.runtime.pipeline import Pipeline


def fleet_numbers(pipeline: Pipeline, link: CoordinatorLink, poller: ActorPoller) -> FleetNumbers:
    """The present numbers. They cost no look at each node, except at those that schedulers keep out."""
    fleet = pipeline.fleet
    counted, decided = fleet.tally(pipeline.clock()), fleet.quarantine_view()
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
        sweeps_begun=fleet.counts.sweeps,
        sweeps_ended=pipeline.sweeps_ended,
        is_connected=link.connected,
        is_overloaded=fleet.load.is_overloaded,
        failing_actors=tuple(actor.name for actor in poller.actors if actor.problem is not None),
        unheard=len(poller.unheard(fleet.is_present)),
    )
