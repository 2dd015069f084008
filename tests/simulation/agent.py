"""A model of an agent, as the wire's messages and the design say that one behaves.

Which orders it obeys is decided by the code of the real agent.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

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
from muster_agent.decide.admission import CommandAdmission
from muster_coordinator.model.events import (
    GroupReplySeen,
    InventorySeen,
    PresenceSeen,
    ReportSeen,
)

if TYPE_CHECKING:
    from tests.simulation.world import World

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


RUN_S = 3.0


HELD_AT_MOST_S = 60.0
"""When a simulated agent that hears nothing more leaves a group by itself."""


@dataclass
class Agent:
    """A model of an agent: one group at a time, an outbox that survives it, a heartbeat."""

    world: "World"
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
    admission: CommandAdmission = field(default_factory=CommandAdmission)
    obeyed: list[AnyCommand] = field(default_factory=list)

    def boot(self) -> None:
        self.up, self.group, self.beat = True, None, self.world.now
        self.admission = CommandAdmission()
        self.admission.heard(self.world.now, self.world.leading_epoch, self.world.now)  # the broker has kept it
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
        if not self.up or self.admission.refusal(order, self.world.now) is not None:
            return
        self.obeyed.append(order)
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
