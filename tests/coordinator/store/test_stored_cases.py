"""Cases, transitions and the log of decisions in a real database."""

from typing import Any

import pytest

from muster.config import Settings
from muster.errors import Refused
from muster.model import ServiceState
from muster.transition import Effect, Transition
from muster_coordinator.model.actions import Action, Outcome
from muster_coordinator.model.case import Case, Hold
from muster_coordinator.model.events import SaveStep
from muster_coordinator.model.quarantine_events import (
    Asked,
    FreezeLifted,
    HoldRequested,
    Note,
    ReleaseRequested,
    SaveAction,
    SaveCase,
    SaveRequest,
    Step,
)
from muster_coordinator.store.store import Store
from muster_coordinator.store.stored_cases import read_log

START = 1_800_000_000.0


@pytest.fixture
async def store(tmp_path):
    store = await Store.open(Settings(data_dir=tmp_path))
    yield store
    await store.close()


def case(node, **known):
    return SaveCase(case=Case(node=node, since=START, **known))


def action(id, node="n1", at=START, **outcomes):
    transition = Transition(
        id=id, node=node, before=ServiceState.IN_SERVICE, after=ServiceState.CORDONED, reason="bad", at=at
    )
    known = {actor: Outcome(effect=effect, detail="so", at=at, tries=1) for actor, effect in outcomes.items()}
    return SaveAction(action=Action(transition=transition, outcomes=known))


def step(epoch, at, text):
    return SaveStep(epoch, Step(at=at, event=FreezeLifted(by="ann", reason=text), decisions=(note(text),)))


def note(text):
    return Note(node="n1", about="service", text=text, data={"text": text})


async def test_cases_and_transitions_come_back_as_they_were_last(store):
    """Of what is written over, in one batch or in several, only the last counts."""
    held = Hold(by="ann", reason="a fan", at=START)
    await store.write([case("n2"), case("n1"), action("t1"), case("n1", transition="t1")])
    await store.write([case("n1", transition="t1", hold=held), action("t1", slurm=Effect.DONE)])
    saved = await store.saved()
    assert saved.cases == (case("n1", transition="t1", hold=held).case, case("n2").case)
    assert saved.actions == (action("t1", slurm=Effect.DONE).action,)


async def test_only_the_transition_that_a_case_names_is_its_last(store):
    """Whatever the times of the others say: clocks go back."""
    await store.write([action("t9", at=START), action("t10", at=START - 60), action("t8", at=START + 60)])
    await store.write([case("n1", transition="t10"), case("n2", transition="t11"), case("n3")])
    assert (await store.saved()).actions == (action("t10", at=START - 60).action,)


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
    assert first.items == (lift, after.action)
    assert (await store.decisions(None, 9, first.next_cursor)).items == (release, hold, before.action)
    assert (await store.decisions("n1", 9, None)).items == (after.action, release, hold, before.action)


async def test_a_log_is_read_in_the_order_in_which_it_was_written(store):
    """Each leadership by itself; what came at the same moment stays in order."""
    await store.write([step(1, START, "one"), step(1, START, "two"), step(2, START, "other")])
    await store.write([step(1, START - 5, "three")])
    async with store.database.engine.connect() as connection:
        log = await read_log(connection, 1)
        assert await read_log(connection, 3) == ()
    assert log == tuple(step(1, at, text).step for at, text in ((START, "one"), (START, "two"), (START - 5, "three")))
