"""What a coordinator that was killed has left behind, and what the next one makes of it."""

import asyncio
from functools import partial

import pytest

from muster import hookimpl
from muster.check import CheckInfo, Needs, Scope
from muster.config import BrokerSettings, Config, HttpSettings, Settings
from muster.model import Finding, Inventory, Run, ServiceState, Severity, Verdict
from muster.plugins import Plugins
from muster.quarantine_settings import BudgetSettings, QuarantineSettings, ReturnSettings
from muster.transition import Effect, Mark, SchedulerNode, Survey
from muster.wire.messages import InventoryReport, PluginInfo, Presence, Report, RunCheck
from muster_coordinator.daemon import serve
from muster_coordinator.events import InventorySeen, PresenceSeen, ReportSeen, SaveStep, SendCommand, Ticked
from muster_coordinator.fleet import Fleet
from muster_coordinator.quarantine.events import (
    Act,
    ActionEnded,
    AllTold,
    ReleaseRequested,
    SaveAction,
    SaveCase,
)
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.policy_file import shipped_rows
from muster_coordinator.store import RUNS_TO_RESTORE, Store
from muster_coordinator.surveying import Surveying

NODES = ("n1", "n2", "n3", "n4")
CHECK = CheckInfo(
    name="nvml",
    summary="",
    scope=Scope.NODE,
    needs=Needs.NOTHING,
    cadence_s=60.0,
    timeout_s=5.0,
    objective=None,
    params={"type": "object", "properties": {}},
)
RULES = QuarantineSettings(mode="enforce", budget=BudgetSettings(), returning=ReturnSettings(wait_s=0.0, passes=1))


class Lives:
    """Coordinators one after the other over the same store. What `feed` gives is stored, as the pipeline does."""

    def __init__(self, store):
        self.store = store
        self.fleet = Fleet(name="f", epoch=0)  # until it begins
        self.now = 1_800_000_000.0
        self._seq = 0

    async def begin(self):
        """A coordinator begins where the last was killed; gives what it does at once."""
        self.now += 10.0
        self.fleet = Fleet(
            name="f", epoch=await self.store.next_epoch(self.now), rules=RULES, policy=Policy(shipped_rows())
        )
        begun = self.fleet.restore(await self.store.saved(), self.now)
        await self.store.write(begun)
        return begun

    async def feed(self, *events):
        """What the fleet does about these events, once it is stored."""
        self.now += 1.0
        commands = [command for event in events for command in self.fleet.handle(event, self.now)]
        await self.store.write(commands)
        return commands

    def run(self, node, verdict=Verdict.PASS, run=None):
        """A run of the check on a node, as its agent reports it."""
        self._seq += 1
        lost = Finding(code="nvml.device_lost", summary="gone", severity=Severity.ERROR)
        made = Run(
            id=run or f"r{self._seq}",
            node=node,
            check="nvml",
            verdict=verdict,
            findings=(lost,) if verdict is Verdict.FAIL else (),
            started_at=self.now,
            duration_s=0.1,
            seq=self._seq,
        )
        stream = f"{node}-{self._seq}"
        return ReportSeen(Report(id="m", sent_at=self.now, node=node, stream=stream, after=0, runs=(made,)))

    async def cordon(self, node):
        """A node is found to be broken; gives the transition that its actors are to be told."""
        (act,) = acts(await self.feed(self.run(node, Verdict.FAIL)))
        return act.action.transition

    async def told(self, transition, **effects):
        """Actors have answered, each with this effect; and with that all were told."""
        head = {"node": transition.node, "transition": transition.id}
        answers = [ActionEnded(**head, actor=actor, effect=effect, detail="so") for actor, effect in effects.items()]
        await self.feed(*answers, AllTold(**head))

    def state(self, node):
        case = self.fleet.case(node)
        assert case is not None
        return case.state


@pytest.fixture
async def lives(tmp_path):
    """A fleet of healthy nodes in service, of which all actors know."""
    store = await Store.open(Settings(data_dir=tmp_path))
    try:
        lives = Lives(store)
        await lives.begin()
        for node in NODES:
            await lives.feed(inventory(node))
            (act,) = acts(await lives.feed(lives.run(node)))
            await lives.told(act.action.transition, kubernetes=Effect.DONE)
        yield lives
    finally:
        await store.close()


def acts(commands):
    return [command for command in commands if isinstance(command, Act)]


def ordered(commands):
    return [it.command for it in commands if isinstance(it, SendCommand) and isinstance(it.command, RunCheck)]


def presence(node, online=True):
    return PresenceSeen(Presence(id="m", sent_at=1.0, node=node, online=online))


def inventory(node, kept=False):
    report = InventoryReport(id="m", sent_at=1.0, node=node, inventory=Inventory(), checks=(CHECK,))
    return InventorySeen(report, kept=kept)


async def test_a_fleet_that_is_well_begins_quietly(lives):
    """The log begins anew; no case is written again and nobody is told anything, also when time passes."""
    begun = [*await lives.begin(), *await lives.feed(Ticked())]
    assert [type(it) for it in begun if isinstance(it, SaveStep | SaveCase | SaveAction | Act)] == [SaveStep]
    assert {lives.state(node) for node in NODES} == {ServiceState.IN_SERVICE}


async def test_what_was_decided_and_not_stored_is_decided_once_more(lives):
    """The agent still has the run that was not acknowledged, and sends it again."""
    fault = lives.run("n1", Verdict.FAIL)
    assert len(acts(lives.fleet.handle(fault, lives.now))) == 1
    assert acts(await lives.begin()) == []
    assert lives.state("n1") is ServiceState.IN_SERVICE
    assert [act.action.transition.after for act in acts(await lives.feed(fault))] == [ServiceState.CORDONED]
    assert acts(await lives.feed(fault)) == []


@pytest.mark.parametrize("answered", [(), ("kubernetes",), ("kubernetes", "webhook")])
async def test_what_was_stored_and_not_told_to_all_is_told_again(lives, answered):
    """To every actor and under the same id, however many had answered."""
    transition = await lives.cordon("n1")
    for actor in answered:
        head = {"node": "n1", "transition": transition.id, "actor": actor}
        await lives.feed(ActionEnded(**head, effect=Effect.DONE, detail="so"))
    (act,) = acts(await lives.begin())
    assert act.action.transition == transition
    assert act.actors == ()
    await lives.told(transition, kubernetes=Effect.DONE)
    assert acts(await lives.begin()) == []
    assert lives.state("n1") is ServiceState.CORDONED


async def test_only_who_has_failed_is_told_again(lives):
    """At once, and not when it would have been without the restart."""
    transition = await lives.cordon("n1")
    await lives.told(transition, kubernetes=Effect.DONE, webhook=Effect.FAILED)
    (act,) = acts(await lives.begin())
    assert (act.action.transition, act.actors) == (transition, ("webhook",))


async def test_a_test_that_was_under_way_begins_again(lives):
    """When the node is heard of, under a new id; what the old one says, should it come, counts as any run does."""
    await lives.told(await lives.cordon("n1"), kubernetes=Effect.DONE)
    (old,) = ordered(await lives.feed(ReleaseRequested(node="n1", by="ann", reason="repaired")))
    assert ordered([*await lives.begin(), *await lives.feed(Ticked())]) == []
    (new,) = ordered(await lives.feed(presence("n1")))
    assert old.run != new.run
    await lives.feed(lives.run("n1", run=old.run))
    assert lives.state("n1") is ServiceState.PROBATION
    await lives.feed(lives.run("n1", run=new.run))
    assert lives.state("n1") is ServiceState.IN_SERVICE


async def test_only_the_node_itself_can_pass_its_test(lives):
    """A run of another one that bears the id of the test says nothing about it."""
    await lives.told(await lives.cordon("n1"), kubernetes=Effect.DONE)
    (test,) = ordered(await lives.feed(ReleaseRequested(node="n1", by="ann", reason="repaired")))
    await lives.feed(lives.run("n1"), lives.run("n2", run=test.run))
    assert lives.state("n1") is ServiceState.PROBATION


async def test_who_was_lost_is_lost_for_as_long(lives):
    """A restart is no sign of life, and none of a new loss, and neither is what the broker has kept."""
    await lives.feed(presence("n1", online=False))
    lost_at = lives.now
    for _ in range(2):
        await lives.begin()
        await lives.feed(inventory("n1", kept=True))
        assert lives.fleet.case("n1").lost_at == lost_at
    await lives.feed(presence("n1"))
    assert lives.fleet.case("n1").lost_at is None


async def test_a_restart_is_no_return(lives):
    """A node that is out and there all the time is not taken for repaired."""
    await lives.told(await lives.cordon("n1"), kubernetes=Effect.DONE)
    for _ in range(2):
        await lives.begin()
        await lives.feed(presence("n1"), Ticked())
    assert lives.state("n1") is ServiceState.CORDONED
    assert lives.fleet.case("n1").may_return is None


async def test_a_clock_that_went_back_hides_no_transition(lives):
    """The latest transition is the one that the case names, whatever its time."""
    await lives.told(await lives.cordon("n1"), kubernetes=Effect.DONE)
    lives.now -= 3600.0
    (act,) = acts(await lives.feed(ReleaseRequested(node="n1", by="ann", reason="fine", untested=True)))
    (again,) = acts(await lives.begin())
    assert again.action.transition == act.action.transition


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN])
async def test_what_stands_against_a_node_stands_as_before(lives, verdict):
    """It is neither forgotten nor found once more nor newer, however many runs have said the same or nothing since."""
    await lives.cordon("n1")
    for _ in range(2 * RUNS_TO_RESTORE):
        await lives.feed(lives.run("n1", verdict))
    before = lives.fleet.case("n1")
    await lives.begin()
    assert lives.fleet.case("n1") == before


class Scheduler:
    """An actor whose survey answers with `answer`, or raises it; with nothing to answer, it never does."""

    def __init__(self, *answer):
        self.answer = answer
        self.asked = asyncio.Event()
        self.is_closed = False

    @hookimpl
    async def muster_survey(self):
        self.asked.set()
        if not self.answer:
            await asyncio.Event().wait()
        if isinstance(self.answer[0], Exception):
            raise self.answer[0]
        return self.answer[0]

    @hookimpl
    async def muster_close(self):
        self.is_closed = True


def _given(plugin):
    return plugin


def plugins(settings, **schedulers):
    made = Plugins(Config(settings))
    for name, scheduler in schedulers.items():
        info = PluginInfo(name=name, distribution=None, version=None, status="loaded")
        made.add(info, partial(_given, scheduler))
    return made


def survey(*nodes, **how):
    listed = tuple(SchedulerNode(node=node, mark=Mark.NONE, **how) for node in nodes)
    return Survey(summary="cluster", can_cordon=True, nodes=listed)


async def take_surveys(lives, **answers):
    """The surveys of the coordinator that has just begun."""

    async def take(seen):
        await lives.feed(*seen)

    schedulers = {name: Scheduler(answer) for name, answer in answers.items()}
    await Surveying(plugins(Settings(), **schedulers), 60.0, take, lives.fleet.listed()).survey()


async def test_who_has_left_in_between_has_left(lives):
    """A node that its scheduler listed before the restart and does not list after it."""
    await take_surveys(lives, kubernetes=survey(*NODES))
    await lives.feed(presence("n4", online=False))
    await lives.begin()
    await take_surveys(lives, kubernetes=RuntimeError("down"))
    assert not lives.fleet.case("n4").gone
    await take_surveys(lives, kubernetes=survey("n1", "n2", "n3"))
    assert lives.fleet.case("n4").gone
    assert lives.fleet.quarantine_view().nodes == 3


async def test_who_has_left_comes_back_with_what_stands_against_it(lives):
    """A reboot for which the scheduler forgets a node heals no fault: it is taken out as soon as the budget lets it."""
    await take_surveys(lives, kubernetes=survey(*NODES))
    await lives.told(await lives.cordon("n4"), kubernetes=Effect.DONE)
    await lives.feed(presence("n4", online=False))
    await take_surveys(lives, kubernetes=survey("n1", "n2", "n3"))
    assert lives.fleet.case("n4").gone
    await lives.feed(presence("n4"))
    lives.now += 20.0
    await lives.feed(*map(presence, NODES), Ticked())
    assert lives.state("n4") is ServiceState.CORDONED


@pytest.mark.parametrize("answers", [{}, {"slurm": None}])
async def test_what_an_actor_said_counts_no_more_when_it_is_none(lives, answers):
    """Whether its plugin is gone or only told to act no more; one that cannot be asked just now is still one."""
    foreign = SchedulerNode(node="n1", mark=Mark.FOREIGN, detail="ann")
    await take_surveys(lives, slurm=Survey(summary="", can_cordon=True, nodes=(foreign,)))
    await lives.begin()
    await take_surveys(lives, slurm=RuntimeError("down"))
    assert lives.fleet.case("n1").hands_off is not None
    await lives.begin()
    await take_surveys(lives, **answers)
    assert lives.fleet.case("n1").hands_off is None


async def test_no_text_keeps_the_coordinator_from_storing(lives):
    """Whatever a plugin has taken for text; a coordinator that cannot store ends, and would end again and again."""
    transition = await lives.cordon("n1")
    text = "\udcff\x00"
    head = {"node": "n1", "transition": transition.id, "actor": "script"}
    await lives.feed(ActionEnded(**head, effect=Effect.FAILED, detail=text))
    await take_surveys(lives, slurm=survey("n1", detail=text, leaving=text, transition=text))
    await lives.begin()
    assert lives.fleet.last_action("n1").outcomes["script"].detail == "?\x00"
    assert lives.fleet.case("n1").leaving == "?\x00"


async def test_it_ends_at_once_while_an_actor_does_not_answer(tmp_path):
    """Who enforces waits for an actor that works before it begins; that may take a minute. Plugins are closed."""
    settings = Settings(
        data_dir=tmp_path,
        http=HttpSettings(listen="127.0.0.1:0"),
        broker=BrokerSettings(listen="127.0.0.1:0"),
        quarantine=RULES,
    )
    scheduler, stop = Scheduler(), asyncio.Event()
    serving = asyncio.create_task(serve(settings, plugins(settings, slow=scheduler), stop))
    async with asyncio.timeout(20):
        await scheduler.asked.wait()
        stop.set()
        await serving
    assert scheduler.is_closed
