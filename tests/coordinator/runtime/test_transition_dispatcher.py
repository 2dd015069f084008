"""Telling actors: each in its order, side by side, and none in the way of another."""

import asyncio
import contextlib
from functools import partial
from typing import Any

import pytest

from muster import hookimpl
from muster.config import Config, Settings
from muster.model import ServiceState
from muster.plugins import Plugins
from muster.transition import ActionOutcome, Effect, Transition
from muster.wire.messages import PluginInfo
from muster_coordinator.model.quarantine_events import ActionEnded, AllActorsCalled, DispatchTransition
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.runtime import transition_dispatcher as dispatcher
from muster_coordinator.runtime.transition_dispatcher import TransitionDispatcher
from muster_coordinator.runtime.transition_queue import AT_ONCE

DONE = ActionOutcome(effect=Effect.DONE, detail="done")


class Actor:
    """Answers with `answer` once its gate is open; keeps what it was asked and how many it was asked at once."""

    def __init__(self, answer=DONE):
        self.answer = answer
        self.asked = []
        self.most = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._present = 0

    @hookimpl
    async def muster_transition(self, transition):
        self.asked.append(transition.id)
        self._present += 1
        self.most = max(self.most, self._present)
        try:
            await asyncio.sleep(0)
            await self.gate.wait()
        finally:
            self._present -= 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def act(id, node="n1", actors=(), after=ServiceState.CORDONED):
    transition = Transition(id=id, node=node, before=ServiceState.IN_SERVICE, after=after, reason="bad", at=1.0)
    return DispatchTransition(record=TransitionRecord(transition=transition), actors=actors)


@pytest.fixture
async def running():
    """Runs an TransitionDispatcher with these plugins by name; gives it and the list of what it says."""
    async with contextlib.AsyncExitStack() as stack:

        async def run(calm=None, **actors):
            plugins = Plugins(Config(Settings()))
            for name, actor in actors.items():
                info = PluginInfo(name=name, distribution=None, version=None, status="loaded")
                plugins.add(info, partial(_give, actor))
            said: list[Any] = []
            telling = TransitionDispatcher(plugins, said.append, calm or _always_calm)
            task = asyncio.create_task(telling.run())
            stack.push_async_callback(_ended, task)
            return telling, said

        yield run


def _give(actor):
    return actor


async def _always_calm(within_s):
    pass


async def _ended(task):
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def outcomes(said, transition):
    """By actor, the effect of what came of a transition."""
    return {it.actor: it.effect for it in said if isinstance(it, ActionEnded) and it.transition == transition}


async def all_called(eventually, said, transition):
    await eventually(lambda: any(isinstance(it, AllActorsCalled) and it.transition == transition for it in said))


async def test_every_actor_is_told_and_then_that_all_were(running, eventually):
    """AllActorsCalled is the last word on a transition; who has nothing to do with it is not mentioned."""
    telling, said = await running(one=Actor(), two=Actor(), stranger=Actor(answer=None))
    telling.act(act("t1"))
    await all_called(eventually, said, "t1")
    assert outcomes(said, "t1") == {"one": Effect.DONE, "two": Effect.DONE}
    assert isinstance(said[-1], AllActorsCalled)


async def test_without_any_actor_all_are_told(running, eventually):
    """Otherwise a transition would be told again at each start, for ever."""
    telling, said = await running()
    telling.act(act("t1"))
    await all_called(eventually, said, "t1")
    assert len(said) == 1


async def test_a_node_s_transitions_come_in_their_order_and_other_nodes_do_not_wait(running, eventually):
    """The second of a node is not begun before the first has ended, whatever else is told meanwhile."""
    actor = Actor()
    telling, said = await running(one=actor)
    actor.gate.clear()
    for each in (act("t1"), act("t2"), act("other", "n2")):
        telling.act(each)
    await eventually(lambda: len(actor.asked) == 2)
    assert actor.asked == ["t1", "other"]
    actor.gate.set()
    await all_called(eventually, said, "t2")
    assert actor.asked == ["t1", "other", "t2"]
    told = [it.transition for it in said if isinstance(it, ActionEnded) and it.node == "n1"]
    assert told == ["t1", "t2"]


async def test_plugins_are_told_when_there_is_time_for_it(running, eventually):
    """Before that nothing is begun, and nobody is asked to wait for longer than PATIENCE_S."""
    actor, calm, waiting = Actor(), asyncio.Event(), []

    async def until_calm(within_s):
        waiting.append(within_s)
        await calm.wait()

    telling, said = await running(until_calm, one=actor)
    telling.act(act("t1", after=ServiceState.IN_SERVICE))
    await eventually(lambda: waiting)
    assert actor.asked == []
    calm.set()
    await all_called(eventually, said, "t1")
    assert (actor.asked, waiting) == (["t1"], [dispatcher.PATIENCE_S])


async def test_a_drain_waits_for_no_time(running, eventually):
    """Nothing is more urgent, however much the nodes report."""

    async def never_calm(within_s):
        await asyncio.sleep(60)

    actor = Actor()
    telling, said = await running(never_calm, one=actor)
    telling.act(act("t1"))
    await all_called(eventually, said, "t1")
    assert actor.asked == ["t1"]


async def test_what_waits_is_overtaken_by_the_next_transition(running, eventually):
    """It is not told any more, which is said, and then all have been told that had to be."""
    actor = Actor()
    telling, said = await running(one=actor)
    actor.gate.clear()
    for each in ("t1", "t2", "t3"):
        telling.act(act(each))
    await all_called(eventually, said, "t2")
    assert outcomes(said, "t2") == {"one": Effect.LEFT}
    actor.gate.set()
    await all_called(eventually, said, "t3")
    assert actor.asked == ["t1", "t3"]


async def test_only_the_named_actors_are_told_again(running, eventually):
    """The others have had it, and that all were told has been said."""
    one, two = Actor(), Actor()
    telling, said = await running(one=one, two=two)
    telling.act(act("t1", actors=("two",)))
    await eventually(lambda: outcomes(said, "t1"))
    telling.act(act("t2", actors=("two",)))
    await eventually(lambda: outcomes(said, "t2"))
    assert (one.asked, two.asked) == ([], ["t1", "t2"])
    assert not any(isinstance(it, AllActorsCalled) for it in said)


@pytest.mark.parametrize("actors", [{}, {"gone": Actor}])
async def test_who_is_no_actor_any_more_is_left(running, eventually, actors):
    """A plugin that was disabled while it failed is not tried for ever, and nothing breaks."""
    telling, said = await running(**{name: make(answer=None) for name, make in actors.items()})
    telling.act(act("t1", actors=("gone",)))
    await eventually(lambda: said)
    assert outcomes(said, "t1") == {"gone": Effect.LEFT}


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (RuntimeError("no such\nnode"), "RuntimeError: no such node"),
        (SystemExit(3), "SystemExit: 3"),
        ("yes", "answered str"),
        (ActionOutcome(effect="DONE?", detail=""), "answered ActionOutcome"),  # type: ignore[arg-type] # what a plugin may do
        (ActionOutcome(effect=Effect.DONE, detail=None), "answered ActionOutcome"),  # type: ignore[arg-type] # the same
        (ActionOutcome(effect=Effect.FAILED, detail="", retry_after_s=float("nan")), "answered ActionOutcome"),
        (ActionOutcome(effect=Effect.FAILED, detail="", retry_after_s=float("inf")), "answered ActionOutcome"),
        (ActionOutcome(effect=Effect.FAILED, detail="", retry_after_s=-1.0), "answered ActionOutcome"),
    ],
)
async def test_what_a_broken_actor_says_has_failed(running, eventually, answer, detail):
    """Whatever it does, the transition has failed there, with a reason, and the others are told."""
    telling, said = await running(broken=Actor(answer), good=Actor())
    telling.act(act("t1"))
    await all_called(eventually, said, "t1")
    assert outcomes(said, "t1") == {"broken": Effect.FAILED, "good": Effect.DONE}
    assert next(it.detail for it in said if it.actor == "broken").startswith(detail)


async def test_the_other_side_s_wish_to_wait_is_passed_on(running, eventually):
    """The quarantine waits at least so long before the next try."""
    busy = ActionOutcome(effect=Effect.FAILED, detail="429", retry_after_s=30.0)
    telling, said = await running(one=Actor(busy))
    telling.act(act("t1"))
    await all_called(eventually, said, "t1")
    assert said[0].retry_after_s == 30.0


@pytest.mark.looptime
async def test_an_actor_that_hangs_delays_only_itself(running, eventually):
    """The others are told of all nodes meanwhile, however many; the one that hangs has failed in the end."""
    hanging, good = Actor(), Actor()
    hanging.gate.clear()
    telling, said = await running(hanging=hanging, good=good)
    nodes = [f"n{number}" for number in range(3 * AT_ONCE)]
    for node in nodes:
        telling.act(act(f"t-{node}", node))
    await eventually(lambda: len(good.asked) == len(nodes))
    assert len(hanging.asked) <= AT_ONCE
    await asyncio.sleep(dispatcher.TIMEOUT_S)
    await all_called(eventually, said, "t-n0")
    assert outcomes(said, "t-n0") == {"hanging": Effect.FAILED, "good": Effect.DONE}
    assert f"no answer within {dispatcher.TIMEOUT_S:g} s" in next(it.detail for it in said if it.actor == "hanging")


async def test_a_scheduler_is_not_flooded(running, eventually):
    """So many nodes are acted on at once, and no more."""
    actor = Actor()
    actor.gate.clear()
    telling, said = await running(one=actor)
    for number in range(AT_ONCE + 1):
        telling.act(act(f"t{number}", f"n{number}"))
    await eventually(lambda: len(actor.asked) == AT_ONCE)
    actor.gate.set()
    await all_called(eventually, said, f"t{AT_ONCE}")
    assert actor.most == AT_ONCE


async def test_a_scheduler_that_is_back_is_not_flooded(running, eventually):
    """When a thousand actions that have failed are tried again at once."""
    actor = Actor()
    telling, _ = await running(one=actor)
    for number in range(1000):
        telling.act(act(f"t{number}", f"n{number}", actors=("one",)))
    await eventually(lambda: len(actor.asked) == 1000)
    assert 1 < actor.most <= AT_ONCE
