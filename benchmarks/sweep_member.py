"""A simulated member of groups: an agent's real decisions about sweeps, with everything that it runs simulated.

The decisions and messages are those of a real agent. Simulated are processes, ports and idle probes: a rank is at its
rendezvous at once, rank 0 can always be reached, and the work is a timer. Nothing of that is ever late, so nobody
watches the agent's deadlines.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial

from benchmarks.noop_plugin.muster_noop import NOOP_GROUP, NoopParams

from muster.check import Idleness
from muster.model import Inventory, RankResult, Run, Verdict
from muster.wire.messages import AnyGroupReply, InventoryReport, PluginInfo, new_id
from muster_agent.decide import events
from muster_agent.decide.events import AgentCommand, AgentEvent
from muster_agent.decide.node import NodeAgent
from muster_agent.decide.orders import Order, RanksReady, RunEnded
from muster_agent.decide.plan import PlannedCheck

PLUGIN = PluginInfo(name="noop", distribution=None, version=None, status="loaded", checks=(NOOP_GROUP.name,))
PLANNED = PlannedCheck(check=NOOP_GROUP, params=None, timeout_s=NOOP_GROUP.timeout_s, interval_s=None)


def with_sweeps(message: InventoryReport) -> InventoryReport:
    """The inventory of a node that can also take part in sweeps with the check `noop-group`."""
    checks, plugins = (*message.checks, PLANNED.announcement), (*message.plugins, PLUGIN)
    return message.model_copy(update={"checks": checks, "plugins": plugins})


class SweepMember:
    """The part of the agent `name` that takes part in groups; `reply` and `report` send what it says."""

    def __init__(self, name: str, reply: Callable[[AnyGroupReply], None], report: Callable[[Run], None]) -> None:
        self._name = name
        self._reply = reply
        self._report = report
        self._node = NodeAgent(name, {NOOP_GROUP.name: PLANNED}, new_id, time.time(), spread_s=0.0)
        self._orders: dict[str, tuple[Order, float]] = {}  # by run, with the time at which its rank has come
        self.take(events.InventoryFound(Inventory()))

    def take(self, event: AgentEvent) -> None:
        """Carries out what follows from an event."""
        for command in self._node.handle(event, time.time()):
            self._carry_out(command)

    def _carry_out(self, command: AgentCommand) -> None:
        match command:
            case events.SendReply(message):
                self._reply(message)
            case events.ReportRun(run):
                self._report(run)
            case events.OpenPort(group):
                self.take(events.PortOpened(group, "127.0.0.1", 1))
            case events.ProbeIdle():
                self.take(events.IdlenessSeen(Idleness.IDLE))
            case events.ConnectToRankZero(group):
                self.take(events.RankZeroReached(group))
            case events.StartRun(order):
                self._orders[order.run] = order, time.time()
                self.take(RanksReady(order.run))
            case events.ReleaseRanks(run):
                self._work(*self._orders.pop(run))
            case events.StopRun(run) if run in self._orders:  # ranks that were released end by themselves
                self._work(*self._orders.pop(run))

    def _work(self, order: Order, arrived_at: float) -> None:
        assert isinstance(order.params, NoopParams)
        metrics = {"arrived_at": arrived_at, "released_at": time.time()}
        ended = _ended(self._name, order, order.params.work_s, metrics)
        asyncio.get_running_loop().call_later(order.params.work_s, partial(self.take, ended))


def _ended(node: str, order: Order, duration_s: float, metrics: dict[str, float]) -> RunEnded:
    run = Run(
        id=order.run,
        node=node,
        check=order.check.name,
        verdict=Verdict.PASS,
        metrics={**metrics},
        params={"work_s": duration_s},
        started_at=metrics["released_at"],
        duration_s=duration_s,
        group=order.group,
        cause=order.cause,
        simulated=True,
    )
    rank = RankResult(rank=order.places[0].rank, verdict=Verdict.PASS, metrics={**metrics}, duration_s=duration_s)
    return RunEnded(run, (rank,))
