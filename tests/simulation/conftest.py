"""A simulation of a whole fleet: models of agents, a bad network and the real, pure `Fleet`, in virtual time.

Nothing here is an agent or a broker: the models speak the wire's messages as design and `messages` say, and the network
loses, repeats and reorders them as a seed decides. What the simulated coordinator stores survives its crashes. After
every step `Promises` looks whether what always has to hold still does.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from muster.check import CheckInfo, Needs, Scope
from muster.model import Device, Finding, Inventory, RankResult, Run, Severity, Topology, Verdict
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
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
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
    SweepAbortRequested,
    SweepRequested,
    Ticked,
)
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.model.sweep_records import GroupRecord, GroupState, SweepRecord, SweepRequest
from muster_coordinator.sweeps.recovery import AfterRestart
from muster_coordinator.sweeps.sweep import Sweep

COLLECTIVE = CheckInfo(
    name="collective",
    summary="all-reduce",
    scope=Scope.GROUP,
    needs=Needs.IDLE_NODE,
    cadence_s=None,
    timeout_s=20.0,
    objective="busbw_gbps",
    by_rail="rail_busbw_gbps",
    params={"type": "object", "properties": {}, "additionalProperties": False},
)
HEALTHY_GBPS, BAD_GBPS = 1.5, 0.1
RUN_S = 3.0
HELD_AT_MOST_S = 60.0
"""When a simulated agent that hears nothing more leaves a group by itself."""


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
    """

    loss: float = 0.0
    duplication: float = 0.0
    delay_s: float = 0.05
    declining: float = 0.0
    echoes: float = 0.0
    agent_crashes: float = 0.0
    coordinator_crashes: float = 0.0


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


class Coordinator:
    """The real `Fleet`, with a store that survives it."""

    def __init__(self, world: World, after_restart: AfterRestart, **quarantine: Any) -> None:
        self._world = world
        self._quarantine = quarantine
        self._after_restart = after_restart
        self.epoch = 0
        self.nodes: dict[str, NodeRecord] = {}
        self.runs: dict[tuple[str, str, int], Run] = {}
        self.streams: dict[tuple[str, str], int] = {}
        self._sweeps: dict[str, SweepRecord] = {}
        self._groups: dict[str, SaveGroup] = {}
        self._promises = Promises()
        self.fleet = self._next_leader()

    @property
    def sweeps(self) -> dict[str, SweepRecord]:
        """Every sweep with its groups, as the store puts them together."""
        return {name: self._complete(record) for name, record in self._sweeps.items()}

    def summary(self, sweep: str) -> SweepRecord:
        """A sweep without its groups."""
        return self._sweeps[sweep]

    def _complete(self, record: SweepRecord) -> SweepRecord:
        groups = [saved for saved in self._groups.values() if saved.sweep == record.id]
        rounds = (
            stage.model_copy(update={"groups": tuple(it.record for it in groups if it.round == stage.number)})
            for stage in record.rounds
        )
        return record.model_copy(update={"rounds": tuple(rounds)})

    def _next_leader(self) -> Fleet:
        self.epoch += 1
        return Fleet(name="simulated", epoch=self.epoch, after_restart=self._after_restart, **self._quarantine)

    def crash(self) -> None:
        """Forgets everything but the store, and starts again as the next leader."""
        self.fleet = self._next_leader()
        unfinished = [sweep for sweep in self.sweeps.values() if sweep.ended_at is None]
        saved = StoredFleet(
            nodes=tuple(self.nodes.values()),
            runs=tuple(self.runs.values())[-50:],
            streams=dict(self.streams),
            sweeps=tuple(unfinished),
        )
        commands = self.fleet.restore(saved, self._world.now)
        self._store(commands)
        self._send(commands)

    def take(self, event: Event) -> None:
        before = self._promises.about(event, self.fleet)
        commands = self.fleet.handle(event, self._world.now)
        self._promises.check(self.fleet, commands)
        assert before is None or self._promises.about(event, self.fleet) == before, "a late message has changed a sweep"
        self._store(commands)
        if len(commands) > 1 and self._world.random.random() < self._world.weather.coordinator_crashes / 10:
            self.crash()  # when it has stored what it was about to say
        else:
            self._send(commands)

    def _store(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case StoreRuns(node, stream, through, runs):
                    for run in runs:
                        assert (node, stream, run.seq) not in self.runs, "a run was stored twice"
                        self.runs[node, stream, run.seq] = run
                    self.streams[node, stream] = through
                case SaveNode(record):
                    self.nodes[record.name] = record
                case SaveSweep(sweep):
                    self._promises.check_saved_sweep(sweep)
                    self._sweeps[sweep.id] = sweep
                case SaveGroup():
                    self._promises.check_saved_group(command.record)
                    self._groups[command.record.id] = command

    def _send(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case SendAck(node, ack):
                    self._world.send(partial(self._world.agents[node].acked, ack))
                case SendCommand(node, order):
                    self._world.send(partial(self._world.agents[node].obey, order))


class Promises:
    """What always holds, over all leaders of a fleet."""

    def __init__(self) -> None:
        self._invited: dict[str, int] = {}  # by group, in which step
        self._ended_groups: dict[str, GroupRecord] = {}
        self._ended_sweeps: dict[str, SweepRecord] = {}
        self._steps = 0

    def about(self, event: Event, fleet: Fleet) -> SweepRecord | None:
        """What a message about a group that has ended must not change; None for any other."""
        if not isinstance(event, GroupReplySeen) or event.message.group not in self._ended_groups:
            return None
        was_missing = event.message.node in fleet._sweeps._unheard  # then groups can be formed because it is back
        return None if was_missing else fleet._sweeps.record(event.message.group.rpartition("-")[0])

    def check(self, fleet: Fleet, commands: list[Command]) -> None:
        """After a step of the fleet."""
        self._steps += 1
        new = self._formed(commands)
        sweeps = list(fleet._sweeps.running.values())
        taking_part = Counter(node for sweep in sweeps for group in sweep.live.values() for node in group.members)
        assert all(count == 1 for count in taking_part.values()), "a node is in two groups"
        for sweep in sweeps:
            self._check_limit(sweep)
        if new:
            self._check_priority(sweeps, new)

    def check_saved_group(self, group: GroupRecord) -> None:
        if group.state is GroupState.ENDED:
            facts = group.model_copy(update={"verdict": None, "slow": None})  # the sweep may judge it again
            assert self._ended_groups.setdefault(group.id, facts) == facts, "an ended group has changed"

    def check_saved_sweep(self, sweep: SweepRecord) -> None:
        assert sweep.id not in self._ended_sweeps, "an ended sweep was saved again"
        if sweep.ended_at is not None:
            self._ended_sweeps[sweep.id] = sweep

    def _formed(self, commands: list[Command]) -> set[str]:
        """The groups that this step has begun."""
        joins = [it.command for it in commands if isinstance(it, SendCommand) and isinstance(it.command, Join)]
        for join in joins:
            assert self._invited.setdefault(join.group, self._steps) == self._steps, "a group was formed twice"
        return {join.group for join in joins}

    def _check_limit(self, sweep: Sweep) -> None:
        limit, live = sweep.plan.limits.nodes, sweep.live.values()
        taken = sum(len(group.members) for group in live)
        assert limit is None or taken <= limit or len(live) == 1, f"{taken} nodes in groups, {limit} were allowed"

    def _check_priority(self, sweeps: list[Sweep], new: set[str]) -> None:
        for urgent in sweeps:
            wanted = self._wanted(urgent)
            for other in sweeps:
                if other.plan.priority < urgent.plan.priority:
                    taken = {node for it in new & other.live.keys() for node in other.live[it].members}
                    assert not taken & wanted, "a sweep was given nodes for which a more urgent one waits"

    def _wanted(self, sweep: Sweep) -> set[str]:
        """The nodes that a sweep waits for and could use now."""
        wanted: set[str] = set()
        for formation in [] if sweep._round is None else sweep._round.waiting:
            limit, taken = sweep.plan.limits.nodes, sum(len(group.members) for group in sweep.live.values())
            if limit is not None and taken and taken + len(formation.members) > limit:
                break
            wanted.update(formation.members)
        return wanted


@dataclass
class Agent:
    """A model of an agent: one group at a time, an outbox that survives it, a heartbeat."""

    world: World
    name: str
    inventory: Inventory
    up: bool = False
    epoch: int = 0
    group: str | None = None
    first_rank: int = 0
    held_since: float = 0.0
    beat: float = 0.0
    sent: float = 0.0
    sequence: int = 0
    outbox: list[Run] = field(default_factory=list)

    def boot(self) -> None:
        self.up, self.group, self.beat = True, None, self.world.now
        inventory = InventoryReport(**self._head(), inventory=self.inventory, checks=(COLLECTIVE,))
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
            case Prepare(group=group) if group == self.group and self._declines():
                self.group = None
                self._reply(Declined(**self._head(group), reason="not_idle", detail="work has come"))
            case Prepare(group=group) if group == self.group:
                self.first_rank = order.first_rank
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
        if self.group not in (None, order.group) or self._declines():
            reason = "busy" if self.group else self.world.random.choice(("busy", "too_few_devices"))
            self._reply(Declined(**self._head(order.group), reason=reason))
            return
        self.group, self.held_since = order.group, self.world.now
        self._reply(Accepted(**self._head(order.group), address=self.name, port=4000, ranks=self._ranks))

    @property
    def _ranks(self) -> int:
        return len(self.inventory.devices) or 1

    def _declines(self) -> bool:
        return self.world.random.random() < self.world.weather.declining

    def _finish(self, group: str) -> None:
        if group != self.group or not self.up:
            return
        if self._declines():
            self._fail_peers()
            self._end(group, Verdict.SKIPPED, "run.preempted", {})
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
        severity = Severity.SKIPPED if verdict is Verdict.SKIPPED else Severity.UNKNOWN
        findings = (Finding(code=code, summary=f"{code} happened", severity=severity),) if code else ()
        results = (
            RankResult(rank=rank, verdict=verdict, findings=findings, metrics={**metrics}, duration_s=RUN_S)
            for rank in range(self.first_rank, self.first_rank + self._ranks)
        )
        self.group = None
        self._reply(Finished(**self._head(group), ranks=tuple(results)))
        self._record(verdict, group)

    def _members(self, group: str) -> tuple[str, ...]:
        """What the ranks know from their rendezvous."""
        for sweep in self.world.coordinator.fleet._sweeps.running.values():
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
        event = GroupReplySeen(message)
        self.world.said.append(event)
        self.world.send(lambda: self.world.coordinator.take(event))

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
        devices: int = 0,
        rack: int = 0,
        noise: float = 0.2,
        slow: Iterable[str] = (),
        crashing: Iterable[str] = (),
        links: Iterable[tuple[str, str]] = (),
        after_restart: AfterRestart = AfterRestart.RESUME,
        **weather: float,
    ) -> World:
        faults = Faults(noise, frozenset(slow), frozenset(crashing), frozenset(frozenset(link) for link in links))
        world = World(seed, Build(nodes, devices, rack), faults, Weather(**weather), after_restart)
        world.run(10)
        return world

    return build
