"""The page of the quarantine over HTTP."""

import pytest
from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import NOW
from tests.coordinator.views.pages.page_sweeps import sweep
from tests.coordinator.web.pages.page_fleet import LOST_GPU
from tests.coordinator.web.pages.page_html import MARKUP, WILD, Links, require_links, require_text_only

from muster.alarm import Alarm, AlarmKind
from muster.model import ServiceState
from muster.transition import Effect
from muster_coordinator.model.quarantine import MassEvent
from muster_coordinator.model.quarantine_events import HoldRequested
from muster_coordinator.model.quarantine_views import ActorView, BudgetView, CaseView, DomainView, QuarantineView
from muster_coordinator.model.transitions import ActorOutcome
from muster_coordinator.views.pages.bounded import Bounded
from muster_coordinator.views.pages.quarantine_page import CaseGroup, QuarantineFacts
from muster_coordinator.web.pages.account import Operator
from muster_coordinator.web.pages.quarantine_pages import rendered

NODES = tuple(f"n{number}" for number in range(10))


async def drain(fleet, *nodes):
    """These nodes report a lost GPU twice, for which they must be drained."""
    for node in nodes:
        for _ in range(2):
            await fleet.report(node, LOST_GPU)
    await fleet.pass_time(60)


@cases("nodes", [(), ("n0",)])
async def test_empty_lists_say_why(pages, nodes):
    """Each of them."""
    await pages.fleet.join(*nodes)
    page = await pages.get("/quarantine")
    assert 'id="alarms"' in page, "messages of webhooks lead there"
    text = Links(page).text
    for said in ("None: the policy requires no other node", "None: muster keeps no node out", "None stands"):
        assert said in text
    assert ("Nothing was decided yet" in text) is not nodes


async def test_drained_and_held_nodes_and_a_hold(pages):
    """Why and since when, what was decided, and the commands that change it; every link leads somewhere."""
    await pages.fleet.join(*NODES)
    await drain(pages.fleet, "n1", "n2")
    await pages.fleet.feed(HoldRequested(node="n3", by="ann", reason="replacing a fan"))
    page = await pages.get("/quarantine")
    text = " ".join(Links(page).text.split())
    assert "1 of at most 1 node away" in text
    assert "Held: faulty and not drained 1 " in text
    assert "Not drained: budget of 1 of 10 reached" in text
    assert "Hold by ann: replacing a fan" in text
    assert "IN_SERVICE to CORDONED" in text
    assert "muster quarantine release NODE --reason TEXT" in text
    await require_links(pages, "/quarantine", page)


async def test_a_mass_event_stands_on_top(pages):
    """With the command that lifts its freeze."""
    await pages.fleet.join(*NODES)
    await drain(pages.fleet, *NODES[:6])
    text = Links(await pages.get("/quarantine")).text
    assert "Draining is frozen: " in text
    assert "muster quarantine unfreeze" in text


class TestInADryRun:
    """Nothing is really drained."""

    @pytest.fixture
    def settings(self):
        return {"mode": "dry-run"}

    async def test_states_and_decisions_say_so(self, pages):
        """And the mode in words."""
        await pages.fleet.join(*NODES)
        await drain(pages.fleet, "n1")
        text = Links(await pages.get("/quarantine")).text
        assert "decisions are made and shown, and actors change nothing" in text
        assert "IN_SERVICE to CORDONED (dry run)" in text


class TestInObserveMode:
    """No node is drained, and none is HELD."""

    @pytest.fixture
    def settings(self):
        return {"mode": "observe"}

    async def test_nodes_that_should_be_drained_are_listed(self, pages):
        """With the reason why they are not."""
        await pages.fleet.join(*NODES)
        await drain(pages.fleet, "n1")
        assert "Not drained: mode is observe" in Links(await pages.get("/quarantine")).text


class TestWithoutTheBroker:
    """The coordinator hears no node."""

    @pytest.fixture
    def settings(self):
        return {"is_connected": False}

    @cases("path", ["/quarantine", "/events", "/sweeps", "/sweeps/abcdefgh"])
    async def test_pages_say_that_they_are_old(self, pages, path):
        """Above everything else."""
        await pages.fleet.keep(sweep())
        assert "Not connected to the broker" in await pages.get(path)


async def test_text_of_others_shows_as_text(pages):
    """Reasons of people, findings, domains and causes; words of actors and schedulers."""
    await pages.fleet.join("n1")
    await pages.fleet.feed(HoldRequested(node="n1", by=MARKUP, reason=MARKUP))
    text = await pages.get("/quarantine")
    assert "<script>" not in text
    assert "&lt;b onmouseover" in text
    outcome = ActorOutcome(effect=Effect.FAILED, detail=WILD, at=NOW, tries=1)
    case = CaseView(
        node="n1", state=ServiceState.HELD, since=NOW, rounds=2, held_because=WILD, outcomes={"slurm": outcome}
    )
    view = QuarantineView(
        mode="enforce",
        nodes=1,
        away=1,
        limit=1,
        per_minute=6.0,
        held=(),
        frozen=(MassEvent(cause=WILD, nodes=3, since=NOW),),
        domains=(DomainView(name=WILD, nodes=1, away=1, limit=1),),
        alarms=(Alarm(kind=AlarmKind.ACTION, subject=WILD, text=WILD, since=NOW),),
    )
    actors = (ActorView(name=WILD, problem=WILD), ActorView(name="slurm", summary=WILD))
    budget = BudgetView(quarantine=view, actors=actors, unheard=(WILD,))
    facts = QuarantineFacts(at=NOW, budget=budget, cases={CaseGroup.PENDING: Bounded((case,), 7)})
    page = rendered(WILD, facts, Operator(may_change=True, needs_name=True), is_current=True)
    require_text_only(page)
    assert "7 more, as JSON" in page
    assert Links(page).inline == []
