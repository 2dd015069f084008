"""A simulation of a whole fleet: models of agents, a bad network and the real, pure `Fleet`, in virtual time.

Nothing here is an agent or a broker: the models speak the wire's messages as design and `messages` say, and the network
loses, repeats and reorders them as a seed decides. What the simulated coordinator stores survives its crashes.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import pytest

from muster.check import CheckInfo, Needs, Scope
from muster.model import Finding, Inventory, RankResult, Run, Severity, Verdict
from muster.wire.messages import (
    Abort,
    Accepted,
    Ack,
    AnyCommand,
    AnyGroupReply,
    Declined,
    Finished,
    InventoryReport,
    Join,
    Prepare,
    Presence,
    Ready,
    Report,
    Start,
)
from muster_coordinator.events import (
    Command,
    Event,
    GroupReplySeen,
    InventorySeen,
    PresenceSeen,
    ReportSeen,
    SaveGroup,
    SaveNode,
    SaveSweep,
    SendAck,
    SendCommand,
    StoreRuns,
    SweepRequested,
    Ticked,
)
from muster_coordinator.fleet import Fleet
from muster_coordinator.records import NodeRecord, Saved
from muster_coordinator.sweep_records import GroupRecord, GroupState, SweepRecord, SweepRequest

COLLECTIVE = CheckInfo(
    name="collective",
    summary="all-reduce",
    scope=Scope.GROUP,
    needs=Needs.IDLE_NODE,
    cadence_s=None,
    timeout_s=20.0,
    objective="busbw_gbps",
    params={"type": "object", "properties": {}, "additionalProperties": False},
)
HEALTHY_GBPS, BAD_GBPS, NOISE = 1.5, 0.1, 0.2
RUN_S = 3.0
HELD_AT_MOST_S = 60.0
"""When a simulated agent that hears nothing more leaves a group by itself."""


@dataclass(frozen=True)
class Faults:
    """What is wrong with the simulated hardware."""

    slow: frozenset[str] = frozenset()
    crashing: frozenset[str] = frozenset()
    links: frozenset[frozenset[str]] = frozenset()


@dataclass(frozen=True)
class Weather:
    """What the simulated network and processes do, as probabilities for each message or second."""

    loss: float = 0.0
    duplication: float = 0.0
    delay_s: float = 0.05
    agent_crashes: float = 0.0
    coordinator_crashes: float = 0.0


class World:
    """Time, the network, the agents and the coordinator."""

    def __init__(self, seed: int, nodes: Iterable[str], faults: Faults, weather: Weather) -> None:
        self.random = random.Random(seed)
        self.now = 1_000_000.0
        self.faults = faults
        self.weather = weather
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self.ids = 0
        self.agents = {name: Agent(self, name) for name in nodes}
        self.coordinator = Coordinator(self)
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

    def sweep(self, strategy: str) -> str:
        """Asks for a sweep over whoever is there."""
        name = self.new_id()
        self.coordinator.take(SweepRequested(name, SweepRequest(check="collective", strategy=strategy)))
        return name

    def bandwidth(self, members: Iterable[str]) -> float:
        names = set(members)
        bad = names & self.faults.slow or any(frozenset(p) in self.faults.links for p in combinations(names, 2))
        return (BAD_GBPS if bad else HEALTHY_GBPS) * self.random.uniform(1 - NOISE, 1 + NOISE)

    def _second(self) -> None:
        self.at(1.0, self._second)
        self.coordinator.take(Ticked())
        if self.random.random() < self.weather.coordinator_crashes:
            self.coordinator.crash()
        for agent in self.agents.values():
            agent.tick()
            if self.random.random() < self.weather.agent_crashes:
                agent.crash()


class Coordinator:
    """The real `Fleet`, with a store that survives it, and the invariants of both after every step."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.epoch = 1
        self.nodes: dict[str, NodeRecord] = {}
        self.runs: dict[tuple[str, str, int], Run] = {}
        self.streams: dict[tuple[str, str], int] = {}
        self._sweeps: dict[str, SweepRecord] = {}
        self._groups: dict[str, SaveGroup] = {}
        self._ended: dict[str, GroupRecord] = {}
        self.fleet = Fleet(name="simulated", epoch=self.epoch)

    @property
    def sweeps(self) -> dict[str, SweepRecord]:
        """Every sweep with its groups, as the store puts them together."""
        return {name: self._complete(record) for name, record in self._sweeps.items()}

    def _complete(self, record: SweepRecord) -> SweepRecord:
        groups = [saved for saved in self._groups.values() if saved.sweep == record.id]
        rounds = (
            stage.model_copy(update={"groups": tuple(it.record for it in groups if it.round == stage.number)})
            for stage in record.rounds
        )
        return record.model_copy(update={"rounds": tuple(rounds)})

    def crash(self) -> None:
        """Forgets everything but the store, and starts again as the next leader."""
        self.epoch += 1
        self.fleet = Fleet(name="simulated", epoch=self.epoch)
        unfinished = [sweep for sweep in self.sweeps.values() if sweep.ended_at is None]
        saved = Saved(
            nodes=tuple(self.nodes.values()),
            runs=tuple(self.runs.values())[-50:],
            streams=dict(self.streams),
            sweeps=tuple(unfinished),
        )
        self._carry_out(self.fleet.restore(saved, self._world.now))

    def take(self, event: Event) -> None:
        self._carry_out(self.fleet.handle(event, self._world.now))
        self._check_groups_are_disjoint()

    def _carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case StoreRuns(node, stream, through, runs):
                    self._store(node, stream, runs)
                    self.streams[node, stream] = through
                case SaveNode(record):
                    self.nodes[record.name] = record
                case SaveSweep(sweep):
                    self._sweeps[sweep.id] = sweep
                case SaveGroup():
                    self._groups[command.record.id] = command
                    self._check_what_ended_stays(command.record)
        for command in commands:  # what is said is said after everything is stored
            match command:
                case SendAck(node, ack):
                    self._world.send(partial(self._world.agents[node].acked, ack))
                case SendCommand(node, order):
                    self._world.send(partial(self._world.agents[node].obey, order))

    def _store(self, node: str, stream: str, runs: Iterable[Run]) -> None:
        for run in runs:
            assert (node, stream, run.seq) not in self.runs, "a run was stored twice"
            self.runs[node, stream, run.seq] = run

    def _check_groups_are_disjoint(self) -> None:
        live = [group for sweep in self.fleet._sweeps.values() for group in sweep.live.values()]
        taking_part = Counter(node for group in live for node in group.members)
        assert all(count == 1 for count in taking_part.values()), taking_part

    def _check_what_ended_stays(self, group: GroupRecord) -> None:
        if group.state is GroupState.ENDED:
            facts = group.model_copy(update={"verdict": None, "slow": None})  # the sweep may judge it again
            assert self._ended.setdefault(group.id, facts) == facts, "an ended group has changed"


@dataclass
class Agent:
    """A model of an agent: one group at a time, an outbox that survives it, a heartbeat."""

    world: World
    name: str
    up: bool = False
    epoch: int = 0
    group: str | None = None
    held_since: float = 0.0
    beat: float = 0.0
    sent: float = 0.0
    sequence: int = 0
    outbox: list[Run] = field(default_factory=list)

    def boot(self) -> None:
        self.up, self.group, self.beat = True, None, self.world.now
        inventory = InventoryReport(
            id=self.world.new_id(), sent_at=self.world.now, node=self.name, inventory=Inventory(), checks=(COLLECTIVE,)
        )
        self.world.send(lambda: self.world.coordinator.take(InventorySeen(inventory)), reliable=True)
        self._presence(online=True)

    def crash(self) -> None:
        """Dies with its ranks; the broker tells its last will, and it comes back after a while."""
        if self.up:
            self._fail_peers()
            self.up, self.group = False, None
            self._presence(online=False)
            self.world.at(self.world.random.uniform(2, 20), self.boot)

    def tick(self) -> None:
        if not self.up:
            return
        now = self.world.now
        if now - self.beat >= 10:
            self.beat = now
            self._presence(online=True)
        if self.group and now - self.held_since > HELD_AT_MOST_S:
            self.group = None
        if self.world.random.random() < 0.1:
            self._record(Verdict.PASS, None)
        if self.outbox and now - self.sent > 5:
            self._report(self.outbox[:50])

    def obey(self, order: AnyCommand) -> None:
        if not self.up or order.epoch < self.epoch or order.expires_at < self.world.now:
            return
        if order.epoch > self.epoch:
            self.epoch, self.group = order.epoch, None
        match order:
            case Join():
                self._join(order)
            case Prepare(group=group) if group == self.group:
                self.world.at(self.world.random.uniform(0.5, 1.5), partial(self._ready, group))
            case Start(group=group) if group == self.group:
                self.world.at(RUN_S * self.world.random.uniform(0.8, 1.2), lambda: self._finish(group))
            case Abort(group=group) if group == self.group:
                self.group = None

    def acked(self, ack: Ack) -> None:
        self.outbox = [run for run in self.outbox if run.seq > ack.stored_through]
        if ack.gap and self.outbox:
            self._report(self.outbox[:50])

    def _join(self, order: Join) -> None:
        if self.group not in (None, order.group):
            self._reply(Declined(**self._head(order.group), reason="busy"))
            return
        self.group, self.held_since = order.group, self.world.now
        self._reply(Accepted(**self._head(order.group), address=self.name, port=4000, ranks=1))

    def _finish(self, group: str) -> None:
        if group != self.group or not self.up:
            return
        members = self._members(group)
        if self.name in self.world.faults.crashing:
            self._fail_peers()
            self._end(group, Verdict.UNKNOWN, "run.killed", {})
        elif not any(member in self.world.faults.crashing for member in members):
            self._end(group, Verdict.PASS, None, {"busbw_gbps": self.world.bandwidth(members)})

    def _fail_peers(self) -> None:
        """The ranks of the others lose their connection to ours."""
        for member in self._members(self.group) if self.group else ():
            if member != self.name:
                peer, group = self.world.agents[member], self.group or ""
                self.world.at(0.2, partial(peer._end, group, Verdict.UNKNOWN, "run.raised", {}))

    def _end(self, group: str, verdict: Verdict, code: str | None, metrics: dict[str, float]) -> None:
        if group != self.group or not self.up:
            return
        finding = Finding(code=code, summary=f"{code} happened", severity=Severity.UNKNOWN) if code else None
        result = RankResult(
            rank=0, verdict=verdict, findings=(finding,) if finding else (), metrics={**metrics}, duration_s=RUN_S
        )
        self.group = None
        self._reply(Finished(**self._head(group), ranks=(result,)))
        self._record(verdict, group)

    def _members(self, group: str) -> tuple[str, ...]:
        """What the ranks know from their rendezvous."""
        for sweep in self.world.coordinator.fleet._sweeps.values():
            if group in sweep.live:
                return sweep.live[group].members
        return (self.name,)

    def _record(self, verdict: Verdict, group: str | None) -> None:
        self.sequence += 1
        run = Run(
            id=f"{self.name}-{self.sequence}",
            node=self.name,
            check="collective" if group else "idle",
            verdict=verdict,
            started_at=self.world.now,
            duration_s=0.1,
            seq=self.sequence,
            group=group,
        )
        before = self.outbox[-1].seq if self.outbox else 0
        self.outbox.append(run)
        self._report([run], after=before)

    def _report(self, runs: list[Run], after: int = 0) -> None:
        self.sent = self.world.now
        report = Report(**self._head(), stream=f"{self.name}-outbox", after=after, runs=tuple(runs))
        self.world.send(lambda: self.world.coordinator.take(ReportSeen(report)))

    def _presence(self, *, online: bool) -> None:
        message = Presence(**self._head(), online=online)
        self.world.send(lambda: self.world.coordinator.take(PresenceSeen(message)), reliable=not online)

    def _ready(self, group: str) -> None:
        if self.up and self.group == group:
            self._reply(Ready(**self._head(group)))

    def _reply(self, message: AnyGroupReply) -> None:
        self.world.send(lambda: self.world.coordinator.take(GroupReplySeen(message)))

    def _head(self, group: str | None = None) -> dict[str, Any]:
        head = {"id": self.world.new_id(), "sent_at": self.world.now, "node": self.name}
        return head if group is None else {**head, "group": group}


Simulate = Callable[..., World]


@pytest.fixture
def simulate() -> Simulate:
    """Builds a world that has run for ten seconds: `simulate(seed, nodes=8, slow={"node-3"}, loss=0.05)`."""

    def build(
        seed: int,
        *,
        nodes: int = 8,
        slow: Iterable[str] = (),
        crashing: Iterable[str] = (),
        links: Iterable[tuple[str, str]] = (),
        **weather: float,
    ) -> World:
        faults = Faults(frozenset(slow), frozenset(crashing), frozenset(frozenset(link) for link in links))
        world = World(seed, [f"node-{number}" for number in range(nodes)], faults, Weather(**weather))
        world.run(10)
        return world

    return build
