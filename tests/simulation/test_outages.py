"""Brokers, coordinators and agents that end at random: only agents that are really gone are lost, and each of them."""

import random
from dataclasses import dataclass, field

import pytest
from tests.lots import seeds

from muster.reconnect import LONGEST_PAUSE_S, RECONNECTED_WITHIN_S
from muster.wire.messages import Presence
from muster_coordinator.evidence.heartbeats import WILL_BELIEVED_AFTER_S
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    AppendStory,
    FleetCommand,
    FleetEvent,
    LinkCaughtUp,
    LinkLost,
    LinkRestored,
    PresenceSeen,
    SaveNode,
    Ticked,
)
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.stored_fleet import StoredFleet

HEARTBEAT_S, NODES, LASTS_S = 10.0, 12, 1_500.0


@dataclass
class Agent:
    """An agent that is connected, or tries again at `tries_at`; `died_at` is when it was killed."""

    name: str
    is_connected: bool = True
    tries_at: float = 0.0
    failed: int = 0
    beats_at: float = 0.0
    died_at: float | None = None


@dataclass
class Outages:
    """A fleet, its broker and its agents, in steps of a quarter of a second."""

    random: random.Random
    now: float = 0.0
    fleet: Fleet = field(default_factory=lambda: Fleet(name="test", epoch=1))
    records: dict[str, NodeRecord] = field(default_factory=dict)
    kept: dict[str, Presence] = field(default_factory=dict)
    lost: dict[str, float] = field(default_factory=dict)
    broker_back_at: float | None = None
    link_back_at: float | None = None
    caught_up_at: float = 0.0
    epoch: int = 1

    def __post_init__(self) -> None:
        self.agents = [Agent(f"n{number}") for number in range(NODES)]

    def play(self) -> None:
        while self.now < LASTS_S:
            self.now += 0.25
            self._break_something()
            self._mend()
            for agent in self.agents:
                self._live(agent)
            self._feed(Ticked())
            self._check()

    def _break_something(self) -> None:
        lot = self.random.random()
        if lot < 0.0005 and self.broker_back_at is None:
            self._stop_broker(is_orderly=self.random.random() < 0.7)
        elif lot < 0.001:
            self._restart_coordinator()
        elif lot < 0.0015:
            self._kill(self.random.choice(self.agents))
        elif lot < 0.003:
            self._cut_off(self.random.choice(self.agents))  # its connection ends and it tries again

    def _stop_broker(self, *, is_orderly: bool) -> None:
        for agent in self.random.sample(self.agents, NODES):
            if is_orderly:
                self._cut_off(agent)
            agent.is_connected, agent.failed, agent.tries_at = False, 0, self.now + self.random.uniform(0, 0.5)
        if self.random.random() < 0.5:
            self.kept.clear()  # it has no database
        self.broker_back_at = self.now + self.random.choice([0.3, 3.0, 40.0, 400.0])
        if self.link_back_at is None:
            self._feed(LinkLost())
        self.link_back_at = self.broker_back_at + self.random.uniform(0, LONGEST_PAUSE_S)

    def _restart_coordinator(self) -> None:
        self.epoch += 1
        self.fleet = Fleet(name="test", epoch=self.epoch)
        self._note(self.fleet.restore(StoredFleet(nodes=tuple(self.records.values())), self.now))
        self.link_back_at = max(self.now, self.broker_back_at or 0.0) + self.random.uniform(0, 20)

    def _kill(self, agent: Agent) -> None:
        if agent.died_at is None and sum(other.died_at is not None for other in self.agents) < NODES / 2:
            self._cut_off(agent)
            agent.died_at = self.now

    def _cut_off(self, agent: Agent) -> None:
        """The broker notices that the connection has ended, and publishes the will."""
        if agent.is_connected:
            agent.is_connected, agent.failed, agent.tries_at = False, 0, self.now + self.random.uniform(0, 0.5)
            self._publish(agent, online=False)

    def _mend(self) -> None:
        if self.broker_back_at is not None and self.now >= self.broker_back_at:
            self.broker_back_at = None
        if self.link_back_at is not None and self.now >= self.link_back_at:
            self.link_back_at, self.caught_up_at = None, self.now
            self._feed(LinkRestored())
            for message in self.kept.values():
                self._feed(PresenceSeen(message, kept=True))
            self._feed(LinkCaughtUp())

    def _live(self, agent: Agent) -> None:
        if agent.died_at is not None:
            return
        if not agent.is_connected and self.now >= agent.tries_at:
            agent.is_connected, agent.beats_at = self.broker_back_at is None, 0.0
            agent.failed += 1
            agent.tries_at = self.now + self.random.uniform(0, min(0.5 * 2**agent.failed, LONGEST_PAUSE_S))
        if agent.is_connected and self.now >= agent.beats_at:
            agent.beats_at = self.now + HEARTBEAT_S
            self._publish(agent, online=True)

    def _publish(self, agent: Agent, *, online: bool) -> None:
        message = Presence(sent_at=self.now, node=agent.name, online=online)
        self.kept[agent.name] = message
        if self.link_back_at is None:
            self._feed(PresenceSeen(message))

    def _feed(self, event: FleetEvent) -> None:
        self._note(self.fleet.handle(event, self.now))

    def _note(self, commands: list[FleetCommand]) -> None:
        for command in commands:
            if isinstance(command, SaveNode):
                self.records[command.record.name] = command.record
            if isinstance(command, AppendStory) and command.entry.kind == "lost":
                self.lost[command.entry.node] = self.now

    def _check(self) -> None:
        alive = {agent.name for agent in self.agents if agent.died_at is None}
        assert not alive & self.lost.keys(), f"lost although alive: {alive & self.lost.keys()} at {self.now}"
        hears_for_s = 0.0 if self.link_back_at is not None else self.now - self.caught_up_at
        for agent in self.agents:
            if agent.died_at is not None and min(hears_for_s, self.now - agent.died_at) > (
                RECONNECTED_WITHIN_S + 3 * HEARTBEAT_S + WILL_BELIEVED_AFTER_S
            ):
                assert agent.name in self.lost, f"{agent.name} is gone since {agent.died_at} and not lost at {self.now}"


@pytest.mark.parametrize("seed", seeds(10))
def test_only_agents_that_are_gone_are_lost(seed: int) -> None:
    """Whatever ends and in which order: no agent that comes back is ever lost, and a killed one always is."""
    outages = Outages(random.Random(seed))
    outages.play()
    assert outages.lost.keys() <= {agent.name for agent in outages.agents if agent.died_at is not None}
