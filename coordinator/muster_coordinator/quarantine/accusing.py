"""What a node is accused of: the policy applied to all that stands against it now."""

from collections.abc import Iterable

from muster.model import Action, Severity
from muster_coordinator.quarantine.case import Case, Sighting
from muster_coordinator.quarantine.charge import Charge, Proof
from muster_coordinator.quarantine.demand import Demand
from muster_coordinator.quarantine.policy import MOST_REPEATS, Policy

LOST = "node.lost"
"""The finding that stands against a node that is silent; it is the coordinator's own, so its check is `node`."""


def sighted(before: Iterable[Sighting], charges: Iterable[Charge]) -> tuple[Sighting, ...]:
    """The sightings with those that the charges tell of; what is not charged any more was seen all the same."""
    known = {sighting.key: sighting for sighting in before}
    for charge in charges:
        old = known.get(charge.key)
        times = tuple(sorted({charge.seen, *(old.times if old is not None else ())}))[-MOST_REPEATS:]
        known[charge.key] = Sighting(check=charge.check, code=charge.code, device=charge.device, times=times)
    return tuple(known.values())


def accused_of(case: Case, policy: Policy, now: float) -> tuple[Demand | None, float | None]:
    """What the policy asks for now, and when to ask it again if nothing else happens before."""
    if case.leaving is not None or case.gone:
        return None, None
    charges = [charge for charge in charges_against(case, now) if charge.seen > case.absolved_at]
    times = {sighting.key: sighting.times for sighting in case.sightings}
    return policy.demand(charges, times, now), policy.next_look(charges, times, now)


def charges_against(case: Case, now: float) -> tuple[Charge, ...]:
    """What stands against a node; one that is silent has that against it as well."""
    if case.lost_at is None:
        return case.charges
    lost = Charge(
        check="node",
        code=LOST,
        device=None,
        severity=Severity.ERROR,
        action=Action.NONE,
        summary="its heartbeat has stopped",
        since=case.lost_at,
        seen=now,
        run="heartbeat",
        proof=Proof.ONCE,
    )
    return (*case.charges, lost)
