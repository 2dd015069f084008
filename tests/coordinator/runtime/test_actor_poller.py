"""Surveys: what actors say about nodes, what keeps them from acting, and whom enforce mode needs."""

import asyncio
from functools import partial

import pytest
import structlog

from muster import hookimpl
from muster.config import Config, Settings
from muster.errors import SettingsError, Unavailable
from muster.plugins import Plugins
from muster.transition import Mark, SchedulerNode, Survey
from muster.wire.messages import PluginInfo
from muster_coordinator.model.quarantine_events import NodeNotListed, NodeSurveyed
from muster_coordinator.model.quarantine_views import ActorView
from muster_coordinator.runtime.actor_poller import AT_ONCE, ActorPoller


class Actor:
    """Answers surveys with `answer`, or raises it."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    @hookimpl
    async def muster_survey(self):
        self.asked += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def _give(actor):
    return actor


def survey(*nodes, can_cordon=True):
    listed = tuple(SchedulerNode(node=node, mark=Mark.NONE) for node in nodes)
    return Survey(summary="cluster c", can_cordon=can_cordon, nodes=listed)


class Taken:
    """Takes what surveys tell about nodes, one chunk after the other."""

    def __init__(self):
        self.chunks = []

    async def take(self, seen):
        self.chunks.append(list(seen))

    @property
    def all(self):
        return [it for chunk in self.chunks for it in chunk]


@pytest.fixture
def taken():
    return Taken()


@pytest.fixture
def poller(taken):
    """Makes the surveys of these plugins, by name."""

    def make(every_s=3600.0, **actors):
        plugins = Plugins(Config(Settings()))
        for name, actor in actors.items():
            info = PluginInfo(name=name, distribution=None, version=None, status="loaded")
            plugins.add(info, partial(_give, actor))
        return ActorPoller(plugins, every_s, taken.take)

    return make


async def test_what_actors_say_about_nodes_is_told(poller, taken):
    """Under the name of each, and the views tell what each acts on."""
    made = poller(b=Actor(survey("n1", "n2")), a=Actor(survey("n1", can_cordon=False)), none=Actor(None))
    await made.survey()
    told = sorted((it.actor, it.node.node) for it in taken.all if isinstance(it, NodeSurveyed))
    assert told == [("a", "n1"), ("b", "n1"), ("b", "n2")]
    assert made.actors == (
        ActorView(name="a", summary="cluster c", can_cordon=False),
        ActorView(name="b", summary="cluster c", can_cordon=True),
    )


async def test_a_node_that_is_listed_no_more_is_told_once(poller, taken):
    """Per actor; an actor that could not be asked has said nothing about any node."""
    actor = Actor(survey("n1", "n2"))
    made = poller(one=actor, other=Actor(survey("n2")))
    await made.survey()
    for answer in (RuntimeError("down"), survey("n1"), survey("n1")):
        actor.answer = answer
        await made.survey()
    gone = [it for it in taken.all if isinstance(it, NodeNotListed)]
    assert gone == [NodeNotListed(actor="one", node="n2")]


async def test_who_is_kept_out_and_never_reports_is_known(poller):
    """As new or by our mark, as long as the scheduler says so; nodes that muster may not uncordon do not count."""
    marks = {"new": Mark.OURS, "ours": Mark.OURS, "theirs": Mark.FOREIGN, "free": Mark.NONE, "heard": Mark.OURS}
    listed = tuple(SchedulerNode(node=node, mark=mark, is_new=node == "new") for node, mark in marks.items())
    opted_out = SchedulerNode(node="opted-out", mark=Mark.OURS, is_new=True, opted_out=True)
    actor = Actor(Survey(summary="cluster c", can_cordon=True, nodes=(*listed, opted_out)))
    made = poller(one=actor)
    assert made.unheard(lambda _: False) == ()
    await made.survey()
    assert made.unheard({"heard"}.__contains__) == ("new", "ours")
    actor.answer = survey("new", "ours")
    await made.survey()
    assert made.unheard({"heard"}.__contains__) == ()


async def test_what_keeps_an_actor_from_acting_is_kept(poller, taken):
    """An error, an answer that is none; and the others are asked all the same."""
    made = poller(
        raising=Actor(SettingsError("no kubeconfig")),
        wrong=Actor("fine"),
        good=Actor(survey("n1")),
        leaving=Actor(SystemExit()),
    )
    await made.survey()
    problems = {actor.name: actor.problem for actor in made.actors}
    assert problems.pop("good") is None
    assert problems == {
        "raising": "no kubeconfig",
        "wrong": "answered str, not a Survey",
        "leaving": "SystemExit:",
    }
    assert {it.actor for it in taken.all} == {"good"}


async def test_many_nodes_are_taken_in_parts(poller, taken):
    """So that others have their turn between them."""
    made = poller(one=Actor(survey(*(f"n{number}" for number in range(2 * AT_ONCE + 1)))))
    await made.survey()
    assert all(len(chunk) <= AT_ONCE for chunk in taken.chunks)
    assert sum(isinstance(it, NodeSurveyed) for it in taken.all) == 2 * AT_ONCE + 1


async def test_surveys_come_again_and_again(poller, eventually):
    """The first at once."""
    actor = Actor(survey("n1"))
    task = asyncio.create_task(poller(every_s=0.01, one=actor).run())
    await eventually(lambda: actor.asked >= 3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Flaky:
    """Answers when `answers` says so, and notes at which second it was asked."""

    def __init__(self, *answers):
        self.answers = [*answers]
        self.asked_at = []

    @hookimpl
    async def muster_survey(self):
        self.asked_at.append(asyncio.get_running_loop().time())
        if not self.answers or self.answers.pop(0):
            return survey("n1")
        raise RuntimeError("down")


@pytest.mark.looptime
async def test_who_cannot_answer_is_asked_again_soon(poller):
    """Then ever more rarely, down to as often as usual; and who answers again, as often as usual."""
    actor = Flaky(False, False, False, False, False, True, True, False, True)
    task = asyncio.create_task(poller(every_s=30.0, one=actor).run())
    await asyncio.sleep(200)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert actor.asked_at[:10] == [0, 5, 15, 35, 65, 95, 125, 155, 160, 190]


async def test_what_keeps_an_actor_from_acting_is_logged_once(poller):
    """At each survey: that a call has failed, or what the actor lacks. Who only tells somebody lacks nothing."""
    lacking = Survey(summary="cluster c", can_cordon=False, problem="cluster c does not let us patch nodes")
    made = poller(
        raising=Actor(SettingsError("no kubeconfig")),
        lacking=Actor(lacking),
        wrong=Actor("fine"),
        chat=Actor(survey(can_cordon=False)),
        good=Actor(survey("n1")),
    )
    with structlog.testing.capture_logs() as logs:
        await made.survey()
    assert sorted((it["event"], it.get("actor") or it["plugin"], it.get("problem") or it["error"]) for it in logs) == [
        ("actor_not_ready", "lacking", "cluster c does not let us patch nodes"),
        ("actor_not_ready", "wrong", "answered str, not a Survey"),
        ("plugin_call_failed", "raising", "no kubeconfig"),
    ]


async def test_who_lacks_a_right_tells_of_nodes_all_the_same(poller, taken):
    """And is shown as an actor that does not work."""
    lacking = survey("n1", can_cordon=False).model_copy(update={"problem": "may not patch nodes"})
    made = poller(one=Actor(lacking))
    await made.survey()
    assert [it.node.node for it in taken.all if isinstance(it, NodeSurveyed)] == ["n1"]
    assert made.actors == (ActorView(name="one", summary="cluster c", problem="may not patch nodes"),)


@pytest.mark.parametrize(
    "actors",
    [
        {"bad": RuntimeError("down"), "good": survey("n1")},
        {"bad": RuntimeError("down")},
    ],
)
async def test_enforce_is_content_with_an_actor_that_may_work_later(poller, actors):
    """A scheduler that is down does not keep the coordinator down: it is shown, and asked again."""
    made = poller(**{name: Actor(answer) for name, answer in actors.items()})
    await made.survey()
    await made.require_an_actor()


async def test_enforce_waits_for_the_first_survey(poller):
    """Before it, nobody can tell."""
    made = poller(good=Actor(survey("n1")))
    required = asyncio.create_task(made.require_an_actor())
    await asyncio.sleep(0)
    assert not required.done()
    await made.survey()
    await required


@pytest.mark.parametrize(
    ("actors", "said"),
    [
        ({}, "enable one"),
        ({"none": None}, "enable one"),
        ({"chat": survey(can_cordon=False)}, "chat only notifies ("),
        (
            {"slurm": SettingsError("no scontrol"), "chat": survey(can_cordon=False)},
            "slurm: no scontrol",
        ),
        (
            {"lacking": survey(can_cordon=False).model_copy(update={"problem": "may not patch nodes"})},
            "lacking: may not patch nodes",
        ),
    ],
)
async def test_enforce_without_an_actor_is_refused(poller, actors, said):
    """With what each of them says, or how to get one."""
    made = poller(**{name: Actor(answer) for name, answer in actors.items()})
    await made.survey()
    with pytest.raises(Unavailable, match=r"needs an actor that works") as refused:
        await made.require_an_actor()
    assert said in str(refused.value)
