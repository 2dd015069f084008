"""Records of the quarantine, transitions and requests in a real database."""

from typing import Any

import pytest

from muster.errors import Refused
from muster.model import ServiceState
from muster.transition import Effect, Transition
from muster_coordinator.model.quarantine import ActorStatus, FleetState, Hold, MassEvent, NodeDecision, QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    Asked,
    FreezeLifted,
    HoldRequested,
    ReleaseRequested,
    SaveFleetState,
    SaveRecord,
    SaveRequest,
    SaveTransition,
)
from muster_coordinator.model.transitions import ActorOutcome, TransitionRecord

START = 1_800_000_000.0


def record(node, transition=None, **decided):
    decision = NodeDecision(since=START, **decided)
    return SaveRecord(record=QuarantineRecord(node=node, decision=decision, actors=ActorStatus(transition=transition)))


def action(id, node="n1", at=START, **outcomes):
    transition = Transition(
        id=id, node=node, before=ServiceState.IN_SERVICE, after=ServiceState.CORDONED, reason="bad", at=at
    )
    known = {actor: ActorOutcome(effect=effect, detail="so", at=at, tries=1) for actor, effect in outcomes.items()}
    return SaveTransition(record=TransitionRecord(transition=transition, outcomes=known))


async def test_cases_and_transitions_come_back_as_they_were_last(store):
    """Of what is written over, in one batch or in several, only the last counts."""
    held = Hold(by="ann", reason="a fan", at=START)
    await store.write([record("n2"), record("n1"), action("t1"), record("n1", transition="t1")])
    await store.write([record("n1", transition="t1", hold=held), action("t1", slurm=Effect.DONE)])
    saved = await store.saved()
    assert saved.quarantine == (record("n1", transition="t1", hold=held).record, record("n2").record)
    assert saved.transitions == (action("t1", slurm=Effect.DONE).record,)


async def test_only_the_transition_that_a_case_names_is_its_last(store):
    """Whatever the times of the others say: clocks go back."""
    await store.write([action("t9", at=START), action("t10", at=START - 60), action("t8", at=START + 60)])
    await store.write([record("n1", transition="t10"), record("n2", transition="t11"), record("n3")])
    assert (await store.saved()).transitions == (action("t10", at=START - 60).record,)


async def test_the_history_has_all_transitions_the_latest_first(store):
    """Of one node or of all, in pages."""
    await store.write([action(f"t{number}", f"n{number % 2}", START + number) for number in range(5)])

    def ids(page):
        return [it.transition.id for it in page.items]

    first = await store.decisions(None, 3, None)
    assert ids(first) == ["t4", "t3", "t2"]
    assert ids(await store.decisions(None, 3, first.next_cursor)) == ["t1", "t0"]
    assert ids(await store.decisions("n1", 3, None)) == ["t3", "t1"]
    assert ids(await store.decisions("n9", 3, None)) == []
    with pytest.raises(Refused, match="cursor"):
        await store.decisions(None, 3, "nonsense")


async def test_the_history_has_what_people_asked_for(store):
    """Among the transitions, in pages; what was asked for about all nodes is in the history of none."""
    said: dict[str, Any] = {"by": "ann", "reason": "a fan"}
    asked = [
        Asked(id="r1", at=START + 0.5, request=HoldRequested(node="n1", **said)),
        Asked(id="r2", at=START + 1.0, request=ReleaseRequested(node="n1", **said, untested=True)),
        Asked(id="r3", at=START + 2.0, request=FreezeLifted(**said)),
    ]
    before, after = action("t0"), action("t1", at=START + 1.0)
    await store.write([before, after, *(SaveRequest(asked=each) for each in asked)])
    hold, release, lift = asked
    first = await store.decisions(None, 2, None)
    assert first.items == (lift, after.record)
    assert (await store.decisions(None, 9, first.next_cursor)).items == (release, hold, before.record)
    assert (await store.decisions("n1", 9, None)).items == (after.record, release, hold, before.record)


async def test_the_state_of_the_fleet_comes_back_as_it_was_last(store):
    """Where none was stored, there are no mass events and no lifted causes."""
    assert (await store.saved()).fleet_state == FleetState()
    state = FleetState(mass_events=(MassEvent(cause="nvml.xid 79", nodes=5, since=START),), lifted=("gemm.slow",))
    await store.write([SaveFleetState(state=FleetState()), SaveFleetState(state=state)])
    assert (await store.saved()).fleet_state == state
