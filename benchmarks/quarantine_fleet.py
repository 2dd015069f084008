"""A coordinator's decisions and its database over nodes, their runs and a scheduler that are simulated."""

from collections.abc import Iterable

from muster.check import CheckInfo, Needs, Scope
from muster.model import Finding, Inventory, Run, ServiceState, Severity, Topology, Verdict
from muster.quarantine_settings import BudgetSettings, QuarantineSettings
from muster.transition import Effect, Mark, SchedulerNode
from muster.wire.messages import InventoryReport, Report, RunCheck
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import FleetCommand, FleetEvent, InventorySeen, ReportSeen, SendCommand, Ticked
from muster_coordinator.model.quarantine_events import ActionEnded, AllActorsCalled, DispatchTransition, NodeSurveyed
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy_file import shipped_rows
from muster_coordinator.store.store import Store

DAY_S, HOUR_S, TICK_S = 86_400.0, 3_600.0, 60.0
ACTOR = "kubernetes"
RULES = QuarantineSettings(mode="enforce", budget=BudgetSettings(domain_share="100%"))
CHECK = CheckInfo(
    name="nvml",
    summary="",
    scope=Scope.NODE,
    needs=Needs.NOTHING,
    cadence_s=60.0,
    timeout_s=20.0,
    objective=None,
    params={"type": "object", "properties": {}},
)
LOST = Finding(code="nvml.device_lost", device=3, summary="the driver does not find it", severity=Severity.ERROR)


class SimulatedFleet:
    """So many nodes, which are never silent, and who do as they are told."""

    def __init__(self, store: Store, nodes: int) -> None:
        self.names = [f"gpu-{number:05}.cluster.example" for number in range(nodes)]
        self._store = store
        self._now = 1_800_000_000.0
        self._seq = dict.fromkeys(self.names, 0)
        self._next = 0  # whose turn it is to break

    async def begin(self) -> None:
        """A coordinator begins with what is stored."""
        self._now += 1
        self._fleet = Fleet(
            name="f",
            epoch=await self._store.begin_epoch(self._now, "http://a"),
            heartbeat_s=1e9,
            rules=RULES,
            policy=Policy(shipped_rows()),
        )
        await self._obey(self._fleet.restore(await self._store.saved(), self._now))

    async def join(self) -> None:
        """All nodes are accepted."""
        for number, name in enumerate(self.names):
            inventory = Inventory(topology=Topology(rack=f"rack-{number // 32}"))
            report = InventoryReport(id="m", sent_at=self._now, node=name, inventory=inventory, checks=(CHECK,))
            await self._feed(InventorySeen(report), self._survey(name, Mark.NONE))
            await self._run(name)

    async def live_for_a_day(self, faults: int) -> None:
        """So many nodes break, one every two minutes, and each is repaired an hour later."""
        ends = self._now + DAY_S
        broken = [self.names[(self._next + number) % len(self.names)] for number in range(faults)]
        self._next += faults
        for name in broken:
            await self._run(name, LOST)
            await self._wait(self._now + 2 * TICK_S)
        await self._wait(self._now + HOUR_S)
        for name in broken * 2:  # once is not enough to take back what was found
            await self._run(name)
        await self._wait(ends)
        assert {record.state for record in self._fleet.quarantine_records()} == {ServiceState.IN_SERVICE}

    async def _wait(self, until: float) -> None:
        while self._now < until:
            self._now += TICK_S
            await self._feed(Ticked())

    async def _run(self, name: str, *findings: Finding, run: str | None = None) -> None:
        self._seq[name] += 1
        seq = self._seq[name]
        verdict = Verdict.FAIL if findings else Verdict.PASS
        made = Run(
            id=run or f"{name}-{seq}",
            node=name,
            check=CHECK.name,
            verdict=verdict,
            findings=findings,
            started_at=self._now,
            duration_s=0.1,
            seq=seq,
        )
        report = Report(id="m", sent_at=self._now, node=name, stream=name, after=seq - 1, runs=(made,))
        await self._feed(ReportSeen(report))

    async def _feed(self, *events: FleetEvent) -> None:
        for event in events:
            await self._obey(self._fleet.handle(event, self._now))

    async def _obey(self, commands: Iterable[FleetCommand]) -> None:
        """Stores what was decided and does what was ordered."""
        commands = list(commands)
        await self._store.write(commands)
        for command in commands:
            match command:
                case SendCommand(node, RunCheck(run=run)):
                    await self._run(node, run=run)
                case DispatchTransition():
                    await self._act(command)

    async def _act(self, act: DispatchTransition) -> None:
        transition = act.record.transition
        node, told = transition.node, transition.id
        detail = "cordoned and tainted" if transition.is_out else "uncordoned, and the taint taken away"
        mark = Mark.OURS if transition.is_out else Mark.NONE
        done = ActionEnded(node=node, transition=told, actor=ACTOR, effect=Effect.DONE, detail=detail)
        await self._feed(done, AllActorsCalled(node=node, transition=told))
        await self._feed(self._survey(node, mark, told if transition.is_out else None))

    def _survey(self, name: str, mark: Mark, transition: str | None = None) -> NodeSurveyed:
        return NodeSurveyed(actor=ACTOR, node=SchedulerNode(node=name, mark=mark, transition=transition))
