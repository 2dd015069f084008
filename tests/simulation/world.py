"""Time, the network and the faults of a simulated fleet."""

import heapq
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.simulation.agent import Agent
from tests.simulation.coordinator import Coordinator

from muster.model import Device, Inventory, Topology
from muster_coordinator.model.events import (
    GroupReplySeen,
    SweepAbortRequested,
    SweepRequested,
    Ticked,
)
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.sweeps.recovery import AfterRestart

HEALTHY_GBPS, BAD_GBPS = 1.5, 0.1


@dataclass(frozen=True)
class Faults:
    """What is wrong with the simulated hardware, and by which share at most a measurement is off."""

    noise: float = 0.2
    slow: frozenset[str] = frozenset()
    crashing: frozenset[str] = frozenset()
    links: frozenset[frozenset[str]] = frozenset()


@dataclass(frozen=True)
class Weather:
    """What the simulated network and processes do, as probabilities for each message, invitation or second.

    `declining` is for an invitation, as well as for what follows it. `echoes` are old messages that come once more.
    While a coordinator is paused, another one leads; when it goes on, it says what it was about to say.
    """

    loss: float = 0.0
    duplication: float = 0.0
    delay_s: float = 0.05
    declining: float = 0.0
    echoes: float = 0.0
    agent_crashes: float = 0.0
    coordinator_crashes: float = 0.0
    coordinator_pauses: float = 0.0


@dataclass(frozen=True)
class Build:
    """How the simulated fleet is built: nodes, devices of each, and nodes of a rack, which share a leaf.

    0 devices or nodes of a rack are not known ones.
    """

    nodes: int = 8
    devices: int = 0
    rack: int = 0

    def inventory(self, number: int) -> Inventory:
        devices = tuple(Device(index=it, uuid=f"{number}-{it}", model="simulated") for it in range(self.devices))
        place = f"{number // self.rack}" if self.rack else None
        topology = Topology(rack=place and f"rack-{place}", leaf=place and f"leaf-{place}")
        return Inventory(devices=devices, topology=topology)


class World:
    """Time, the network, the agents and the coordinator."""

    def __init__(
        self,
        seed: int,
        build: Build,
        faults: Faults,
        weather: Weather,
        after_restart: AfterRestart,
        **quarantine: Any,
    ) -> None:
        self.random = random.Random(seed)
        self.now = 1_000_000.0
        self.faults = faults
        self.weather = weather
        self.said: list[GroupReplySeen] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self.ids = 0
        self.leading_epoch = 0
        agents = (Agent(self, f"node-{number}", build.inventory(number)) for number in range(build.nodes))
        self.agents = {agent.name: agent for agent in agents}
        self.coordinator = Coordinator(self, after_restart, **quarantine)
        for agent in self.agents.values():
            agent.boot()
        self.at(0.5, self._second)

    def at(self, delay_s: float, action: Callable[[], None]) -> None:
        self._scheduled += 1
        heapq.heappush(self._queue, (self.now + delay_s, self._scheduled, action))

    def send(self, deliver: Callable[[], None], *, reliable: bool = False) -> None:
        """Delivers never, once or twice, after a delay that may let a later message overtake."""
        copies = 1 if reliable else (self.random.random() >= self.weather.loss)
        copies += copies and self.random.random() < self.weather.duplication
        for _ in range(int(copies)):
            self.at(self.random.uniform(0.001, self.weather.delay_s), deliver)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self._queue and self._queue[0][0] <= end:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        self.now = end

    def new_id(self) -> str:
        self.ids += 1
        return f"sim-{self.ids}"

    def sweep(self, strategy: str, **more: Any) -> str:
        """Asks for a sweep, over whoever is there if nothing else is said."""
        name = self.new_id()
        self.coordinator.take(SweepRequested(name, SweepRequest(check="collective", strategy=strategy, **more)))
        return name

    def abort(self, sweep: str) -> None:
        self.coordinator.take(SweepAbortRequested(sweep, "enough"))

    def bandwidth(self, members: Iterable[str]) -> float:
        names = set(members)
        bad = names & self.faults.slow or any(link <= names for link in self.faults.links)
        return (BAD_GBPS if bad else HEALTHY_GBPS) * self.random.uniform(1 - self.faults.noise, 1 + self.faults.noise)

    def _second(self) -> None:
        self.at(1.0, self._second)
        self.coordinator.take(Ticked())
        if self.random.random() < self.weather.coordinator_crashes:
            self.coordinator.crash()
        if self.said and self.random.random() < self.weather.echoes:
            self.coordinator.take(self.random.choice(self.said))
        for agent in self.agents.values():
            agent.tick()
            if self.random.random() < self.weather.agent_crashes:
                agent.crash()
