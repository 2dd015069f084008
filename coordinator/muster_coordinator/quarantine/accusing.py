"""What a node is accused of: the policy applied to all that stands against it now."""

from collections.abc import Iterable, Sequence

from muster.model import Action, Severity
from muster_coordinator.model.case import Case, Sighting
from muster_coordinator.model.charge import Charge, Proof
from muster_coordinator.model.demand import Demand, Prospect
from muster_coordinator.model.policy_row import MOST_REPEATS
from muster_coordinator.quarantine.policy import Policy

LOST = "node.lost"
"""The finding that stands against a node that is silent; it is the coordinator's own, so its check is `node`."""


MOST_SIGHTINGS = 512
"""Of one node: as many as findings can stand against it. A node that finds ever new things loses the oldest."""


def sighted(before: Iterable[Sighting], charges: Iterable[Charge]) -> tuple[Sighting, ...]:
    """The sightings with those that the charges tell of; what is not charged any more was seen all the same."""
    known = {sighting.key: sighting for sighting in before}
    for charge in charges:
        old = known.get(charge.key)
        times = tuple(sorted({charge.seen, *(old.times if old is not None else ())}))[-MOST_REPEATS:]
        check, code, device, number = charge.key
        known[charge.key] = Sighting(check=check, code=code, device=device, number=number, times=times)
    if len(known) <= MOST_SIGHTINGS:
        return tuple(known.values())
    return tuple(sorted(known.values(), key=lambda sighting: sighting.times[-1])[-MOST_SIGHTINGS:])


def accused_of(case: Case, policy: Policy, now: float) -> tuple[Demand | None, Prospect | None, float | None]:
    """What the policy asks for now, what in time when it is nothing yet, and when to ask it again at the latest."""
    if case.leaving is not None or case.gone:
        return None, None, None
    times = {it.key: tuple(time for time in it.times if time > case.absolved_at) for it in case.sightings}
    charges = [
        _not_absolved(charge, case.absolved_at, times.get(charge.key, ()))
        for charge in charges_against(case, now)
        if charge.seen > case.absolved_at
    ]
    demand = policy.demand(charges, times, now)
    prospect = policy.prospect(charges, times, now) if demand is None else None
    return demand, prospect, policy.next_look(charges, times, now)


def _not_absolved(charge: Charge, absolved_at: float, times_since: Sequence[float]) -> Charge:
    """What is left of a charge when nothing counts that was found before `absolved_at`."""
    if charge.since > absolved_at:
        return charge
    is_once = charge.proof is Proof.TWICE and len(times_since) < 2
    return charge.model_copy(update={"since": absolved_at, "proof": Proof.ONCE if is_once else charge.proof})


def charges_against(case: Case, now: float) -> tuple[Charge, ...]:
    """What stands against a node; one that is silent has that against it as well.

    Where a person has let the silence pass, it is over only when the node is heard of.
    """
    if case.lost_at is None or case.lost_at <= case.absolved_at:
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
