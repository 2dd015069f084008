"""What schedulers say after a restart: who has left in between, who is no actor any more, who does not answer."""

import asyncio
from functools import partial

import pytest
from tests.coordinator.restart.lives import NODES, RULES, presence

from muster import hookimpl
from muster.config import BrokerSettings, Config, HttpSettings, Settings
from muster.model import ServiceState
from muster.plugins import Plugins
from muster.transition import Effect, Mark, SchedulerNode, Survey
from muster.wire.messages import PluginInfo
from muster_coordinator.daemon import serve
from muster_coordinator.model.events import Ticked
from muster_coordinator.model.quarantine_events import ActionEnded
from muster_coordinator.runtime.actor_poller import ActorPoller


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
    await ActorPoller(plugins(Settings(), **schedulers), 60.0, take, lives.fleet.listed()).survey()


async def test_who_has_left_in_between_has_left(lives):
    """A node that its scheduler listed before the restart and does not list after it."""
    await take_surveys(lives, kubernetes=survey(*NODES))
    await lives.feed(presence("n4", online=False))
    await lives.begin()
    await take_surveys(lives, kubernetes=RuntimeError("down"))
    assert not lives.fleet.case("n4").left
    await take_surveys(lives, kubernetes=survey("n1", "n2", "n3"))
    assert lives.fleet.case("n4").left
    assert lives.fleet.quarantine_view().nodes == 3


async def test_who_has_left_while_it_was_out_comes_back_out(lives):
    """A reboot for which the scheduler forgets a node heals no fault: it has to pass its tests first."""
    await take_surveys(lives, kubernetes=survey(*NODES))
    await lives.told(await lives.cordon("n4"), kubernetes=Effect.DONE)
    await lives.feed(presence("n4", online=False))
    await take_surveys(lives, kubernetes=survey("n1", "n2", "n3"))
    assert lives.fleet.case("n4").left
    await lives.feed(presence("n4"))
    lives.now += 20.0
    await lives.feed(*map(presence, NODES), Ticked())
    assert lives.state("n4") is ServiceState.PROBATION


@pytest.mark.parametrize("answers", [{}, {"slurm": None}])
async def test_what_an_actor_said_counts_no_more_when_it_is_none(lives, answers):
    """Whether its plugin is gone or only told to act no more; one that cannot be asked just now is still one."""
    foreign = SchedulerNode(node="n1", mark=Mark.FOREIGN, detail="ann")
    await take_surveys(lives, slurm=Survey(summary="", can_cordon=True, nodes=(foreign,)))
    await lives.begin()
    await take_surveys(lives, slurm=RuntimeError("down"))
    assert lives.fleet.case("n1").left_alone_because is not None
    await lives.begin()
    await take_surveys(lives, **answers)
    assert lives.fleet.case("n1").left_alone_because is None


async def test_no_text_keeps_the_coordinator_from_storing(lives):
    """Whatever a plugin has taken for text; a coordinator that cannot store ends, and would end again and again."""
    transition = await lives.cordon("n1")
    text = "\udcff\x00"
    head = {"node": "n1", "transition": transition.id, "actor": "script"}
    await lives.feed(ActionEnded(**head, effect=Effect.FAILED, detail=text))
    await take_surveys(lives, slurm=survey("n1", detail=text, leaving=text, transition=text))
    await lives.begin()
    assert lives.fleet.latest_transition("n1").outcomes["script"].detail == "?\x00"
    assert lives.fleet.case("n1").leaving == "?\x00"


async def test_it_ends_at_once_while_an_actor_does_not_answer(tmp_path):
    """An actor may take a minute, or be down. Plugins are closed."""
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
