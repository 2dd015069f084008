"""Plugins are told how nodes are: what has changed at once, every node as a heartbeat, and again what they missed."""

import asyncio

import pytest

from muster import hookimpl
from muster.config import Config, Settings
from muster.errors import Unavailable
from muster.model import Health, ServiceState
from muster.plugins import Plugins
from muster.wire.messages import PluginInfo
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.runtime.health_publisher import AT_ONCE, HEARTBEAT_S, HealthPublisher


class Display:
    """A plugin that shows health; while `is_open` is not set it does not answer, and it raises `failures` times."""

    def __init__(self):
        self.calls = []
        self.failures = 0
        self.is_open = asyncio.Event()
        self.is_open.set()

    @hookimpl
    async def muster_node_health(self, reports):
        self.calls.append([(report.node, str(report.health)) for report in reports])
        await self.is_open.wait()
        if self.failures:
            self.failures -= 1
            raise Unavailable("the API server does not answer")

    def told(self, node):
        return [health for call in self.calls for name, health in call if name == node]


TURNS = 20
"""Turns of the event loop, more than an answer of a plugin takes to the publisher."""


class SwitchedOff(Display):
    """A plugin whose settings say that it shows nothing."""

    @hookimpl
    async def muster_node_health(self, reports):
        self.calls.append(reports)
        return False


class Nothing:
    """A plugin that shows nothing."""

    @hookimpl
    async def muster_close(self):
        pass


class Fleet:
    """As much of the fleet as is published, with a clock that goes on by itself."""

    def __init__(self, *names):
        self.health = dict.fromkeys(names, Health.HEALTHY)
        self.left = set()
        self.now = 0.0

    @property
    def names(self):
        return sorted(self.health)

    def view(self, name):
        return NodeView(
            name=name,
            health=self.health[name],
            service=ServiceState.IN_SERVICE,
            lost=False,
            left=name in self.left,
            last_seen=0.0,
            devices=(),
            findings=(),
        )

    def clock(self):
        self.now += 0.001
        return self.now


@pytest.fixture
def display():
    return Display()


@pytest.fixture
async def publish(display):
    """Starts a publisher: `publish(fleet, every_s=3600.0)`; without heartbeats, after those of the start."""
    tasks = []

    def start(fleet, every_s=3600.0, plugin=display):
        plugins = Plugins(Config(Settings()))
        plugins.add(PluginInfo(name="display", distribution=None, version=None, status="loaded"), lambda: plugin)
        publisher = HealthPublisher(plugins, every_s, names=lambda: fleet.names, view=fleet.view, clock=fleet.clock)
        tasks.append(asyncio.create_task(publisher.run()))
        return publisher

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition, what):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)
    assert condition(), what


async def test_all_nodes_are_told_at_the_start(publish, display):
    """In calls of a bounded size, and not those that have left."""
    fleet = Fleet(*(f"n{number:03}" for number in range(2 * AT_ONCE + 2)))
    fleet.left = {"n000"}
    publish(fleet)
    await until(lambda: len(display.calls) == 3, "three calls")
    assert [len(call) for call in display.calls] == [AT_ONCE - 1, AT_ONCE, 2]


async def test_a_change_is_told_at_once_and_alone(publish, display):
    """What is as it was told is no change."""
    fleet = Fleet("n1", "n2")
    publisher = publish(fleet)
    await until(lambda: len(display.calls) == 1, "the first heartbeat")
    await asyncio.sleep(0)
    publisher.note(fleet.view("n1"))
    fleet.health["n2"] = Health.FAILED
    publisher.note(fleet.view("n2"))
    await until(lambda: len(display.calls) == 2, "the change")
    assert display.calls[1] == [("n2", "FAILED")]


async def test_a_plugin_that_shows_nothing_is_called_once(publish):
    """Neither heartbeats nor changes cost anything after that."""
    plugin, fleet = SwitchedOff(), Fleet(*(f"n{number:03}" for number in range(2 * AT_ONCE)))
    publisher = publish(fleet, every_s=0.0, plugin=plugin)
    await until(lambda: plugin.calls, "the first heartbeat")
    for _ in range(TURNS):
        await asyncio.sleep(0)
    fleet.health["n001"] = Health.FAILED
    publisher.note(fleet.view("n001"))
    await asyncio.sleep(0.05)
    assert len(plugin.calls) == 1


@pytest.mark.looptime
async def test_heartbeats_come_again(publish, display):
    """Although nothing has changed."""
    publish(Fleet("n1"), every_s=HEARTBEAT_S)
    await asyncio.sleep(1.5 * HEARTBEAT_S)
    assert display.told("n1") == ["HEALTHY", "HEALTHY"]


@pytest.mark.looptime
async def test_heartbeats_are_spread(publish, display):
    """All nodes at once at the start; then each once in the time, a part of them after the other."""
    publish(Fleet(*(f"n{number:03}" for number in range(3 * AT_ONCE))), every_s=HEARTBEAT_S)
    calls = []
    for seconds in (1, 98, 2, 98, 2, 98, 2):
        await asyncio.sleep(seconds)
        calls.append(len(display.calls))
    assert calls == [3, 3, 4, 4, 5, 5, 6]
    assert {len(call) for call in display.calls} == {AT_ONCE}
    assert display.calls[3:] == display.calls[:3]


@pytest.mark.looptime
async def test_a_fleet_that_is_empty_at_first_gets_heartbeats(publish, display):
    """They begin with the next round."""
    fleet = Fleet()
    publish(fleet, every_s=HEARTBEAT_S)
    await asyncio.sleep(HEARTBEAT_S / 2)
    fleet.health["n1"] = Health.HEALTHY
    await asyncio.sleep(2 * HEARTBEAT_S)
    assert display.told("n1") == ["HEALTHY"]


async def test_what_a_plugin_missed_is_told_again(publish, display):
    """As it is by then."""
    fleet = Fleet("n1")
    publisher = publish(fleet)
    await until(lambda: len(display.calls) == 1, "the first heartbeat")
    display.failures = 1
    fleet.health["n1"] = Health.SUSPECT
    publisher.note(fleet.view("n1"))
    await until(lambda: len(display.calls) == 2, "the call that fails")
    fleet.health["n1"] = Health.FAILED
    publisher.note(fleet.view("n1"))
    await until(lambda: len(display.calls) == 3, "the call after it")
    assert display.told("n1") == ["HEALTHY", "SUSPECT", "FAILED"]


async def test_what_a_plugin_missed_does_not_come_before_other_changes(publish, display):
    """What it can never take in would otherwise keep it from all others."""
    fleet = Fleet("n1", "n2")
    publisher = publish(fleet)
    await until(lambda: len(display.calls) == 1, "the first heartbeat")
    display.failures = 1
    display.is_open.clear()
    for name in fleet.names:
        fleet.health[name] = Health.FAILED
        publisher.note(fleet.view(name))
        if name == "n1":
            await until(lambda: len(display.calls) == 2, "the call that fails")
    display.is_open.set()
    await until(lambda: len(display.calls) == 3, "the call after it")
    assert display.calls[2] == [("n2", "FAILED"), ("n1", "FAILED")]


async def test_a_change_back_while_a_plugin_is_told_is_told_too(publish, display):
    """Otherwise the plugin would show the change until the next heartbeat."""
    fleet = Fleet("n1")
    publisher = publish(fleet)
    await until(lambda: len(display.calls) == 1, "the first heartbeat")
    display.is_open.clear()
    fleet.health["n1"] = Health.FAILED
    publisher.note(fleet.view("n1"))
    await until(lambda: len(display.calls) == 2, "the change to be under way")
    fleet.health["n1"] = Health.HEALTHY
    publisher.note(fleet.view("n1"))
    display.is_open.set()
    await until(lambda: len(display.calls) == 3, "the change back")
    assert display.told("n1") == ["HEALTHY", "FAILED", "HEALTHY"]


async def test_without_a_plugin_that_shows_health_there_is_nothing_to_do(publish):
    """The publisher ends at once instead of looking at every node again and again."""
    await asyncio.wait_for(publish(Fleet("n1"), plugin=Nothing()).run(), 5)
