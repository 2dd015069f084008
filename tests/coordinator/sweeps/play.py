"""A sweep whose members are played: each says at once what the test has for it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from muster.model import Finding, RankResult, Severity, Verdict
from muster.wire.messages import Accepted, AnyGroupReply, Declined, Finished, Ready
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.events import FleetCommand, SaveGroup, SaveSweep, Ticked
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import GroupRecord, SweepRecord, SweepRequest
from muster_coordinator.sweeps.formation import GroupTask
from muster_coordinator.sweeps.occupancy import Occupancy
from muster_coordinator.sweeps.plan import SweepPlan
from muster_coordinator.sweeps.sweep import Sweep

TASK = GroupTask(check="collective", params={}, timeout_s=20.0, objective="busbw_gbps", cause="s")


def plan(strategy: Strategy, count: int, **more: Any) -> SweepPlan:
    nodes = tuple(f"n{number}" for number in range(count))
    return SweepPlan(id="s", asked=SweepRequest(check="collective"), strategy=strategy, task=TASK, nodes=nodes, **more)


class Play:
    """Plays the members of a sweep's groups: each does at once what `says` has for it, or goes through and passes.

    What a node says is a reason to decline with, a finding that its ranks end with, or the GB/s that it measures.
    """

    def __init__(
        self, planned: SweepPlan, *, begins: float = 0.0, ahead: Mapping[str, float] = MappingProxyType({}), **says: Any
    ) -> None:
        self.now = begins
        self.step_s = 1.0
        self.ahead = ahead
        self.says = says
        self.occupancy = Occupancy()
        self.sweep = Sweep(planned, Orders(7), self.occupancy, self.now)
        self.saved: list[SweepRecord] = []
        self.groups: dict[str, GroupRecord] = {}
        self.commands = [*self._note(self.sweep.begin(self.now)), *self.form()]

    def to_end(self) -> SweepRecord:
        """The record when the sweep has ended."""
        for _ in range(1000):
            if self.sweep.is_over:
                break
            self.step()
        record = self.sweep.record()
        assert self.saved[-1] == self.sweep.summary()
        assert {group.id: group for stage in record.rounds for group in stage.groups} == self.groups
        return record

    def step(self) -> None:
        """Lets every member say its next word, and time pass."""
        for group in list(self.sweep.live.values()):
            for node in group.members:
                for reply in self._replies(node, group.id):
                    self._note(self.sweep.handle(reply, self.now))
        self.now += self.step_s
        self._note(self.sweep.handle(Ticked(), self.now))
        self.form()

    def form(self) -> list[FleetCommand]:
        self.occupancy.new_turn()
        return self._note(self.sweep.form(self.now))

    def _note(self, commands: list[FleetCommand]) -> list[FleetCommand]:
        self.saved += [command.record for command in commands if isinstance(command, SaveSweep)]
        self.groups |= {command.record.id: command.record for command in commands if isinstance(command, SaveGroup)}
        return commands

    def _replies(self, node: str, group: str) -> list[AnyGroupReply]:
        head: dict[str, Any] = {
            "id": "m",
            "sent_at": self.now + self.ahead.get(node, 0.0),
            "node": node,
            "group": group,
        }
        live = self.sweep.live.get(group)
        said = self.says.get(node, 1.5)
        if live is None or said == "silent":
            return []
        if not live.facts[node].accepted:
            busy = Declined(**head, reason="busy", detail="a job runs")
            return [busy] if said == "busy" else [Accepted(**head, address=node, port=1, ranks=1)]
        if live.members[0] != node and "isolated" in {self.says.get(member) for member in live.members}:
            return [Declined(**head, reason="unreachable", detail="connection refused")]
        return (
            [Ready(**head)]
            if not live.facts[node].ready
            else [Finished(**head, ranks=(_result(said, live.facts[node].first_rank),))]
        )


def _result(said: Any, rank: int | None) -> RankResult:
    assert rank is not None
    if isinstance(said, float):
        return RankResult(rank=rank, verdict=Verdict.PASS, metrics={"busbw_gbps": said}, duration_s=1.0)
    verdict = Verdict.FAIL if said == "wrong" else Verdict.SKIPPED if said == "run.skipped" else Verdict.UNKNOWN
    severity = Severity.ERROR if said == "wrong" else Severity.UNKNOWN
    finding = Finding(code=said, summary=f"{said} happened", severity=severity)
    return RankResult(rank=rank, verdict=verdict, findings=(finding,), duration_s=1.0)
