"""How soon faults are dealt with."""

from tests.cases import cases

from muster.model import ServiceState
from muster.transition import Cause, Effect, Transition
from muster_coordinator.model.transitions import ActorOutcome, TransitionRecord
from muster_coordinator.views.pages.reaction_times import reaction_times

IN, OUT, TESTS, HELD = (
    ServiceState.IN_SERVICE,
    ServiceState.CORDONED,
    ServiceState.PROBATION,
    ServiceState.HELD,
)
AT = 1_800_000_000.0


def drain(*, before=IN, after=OUT, found=(), by=None, **outcomes):
    """A transition; `found` are the seconds before it when its causes were found first."""
    causes = tuple(Cause(code=f"c{number}", since=AT - ago) for number, ago in enumerate(found))
    transition = Transition(id="t", node="n1", before=before, after=after, reason="", at=AT, causes=causes, by=by)
    return TransitionRecord(transition=transition, outcomes=outcomes)


def outcome(effect, after_s, **more):
    return ActorOutcome(effect=effect, detail="", at=AT + after_s, tries=1, **more)


DONE, TOLD = outcome(Effect.DONE, 2), outcome(Effect.DONE, 90, only_tells=True)


@cases(
    "record, detect_s, cordon_s",
    [
        (drain(), None, None),
        (drain(found=[30]), 30, None),
        (drain(found=[5, 30]), 30, None),
        (drain(found=[-1]), 0, None),  # the clock of the node is ahead
        (drain(found=[30], by="ann"), None, None),
        (drain(found=[900], before=TESTS), None, None),  # found again in its tests
        (drain(found=[30], after=HELD), None, None),
        (drain(slurm=DONE), None, 2),
        (drain(slurm=DONE, kubernetes=outcome(Effect.DONE, 7)), None, 7),
        (drain(slurm=DONE, webhook=TOLD), None, 2),
        (drain(webhook=TOLD), None, None),
        (drain(slurm=outcome(Effect.FAILED, 2)), None, None),
        (drain(slurm=outcome(Effect.WOULD, 0)), None, None),
    ],
)
def test_one_drain(record, detect_s, cordon_s):
    """What counts as found by muster, and as drained by an actor."""
    times = reaction_times([record])
    assert (times.detect_s, times.cordon_s) == (detect_s, cordon_s)


def test_medians_are_of_what_is_known():
    """Each with the number of drains that it is of."""
    times = reaction_times([drain(found=[10], slurm=DONE), drain(found=[20]), drain(found=[90])])
    assert (times.detect_s, times.detected, times.cordon_s, times.cordoned) == (20, 3, 2, 1)
