"""Many simulated agents in one process: all of an agent but what it runs.

Each has an agent's own decisions, outbox and connection to the broker, and so says and hears all that a real one does,
heartbeats and repetitions included. Simulated are processes, ports, idle probes and disk: a rank is at its rendezvous
at once, rank 0 can always be reached, the work is a timer and the outbox is in memory. Nothing of that is ever late, so
nobody watches the agent's deadlines.

Arguments: the URL of the broker and the names of the agents. It ends when whoever started it ends it, or dies.
"""

import asyncio
import ctypes
import signal
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.noop_plugin.muster_noop import NOOP_GROUP, NoopParams

from muster import logs
from muster.check import Idleness
from muster.config import BrokerSettings, LogSettings, Settings
from muster.model import Inventory, RankResult, Run, Verdict
from muster.references import Reference
from muster.wire.messages import InventoryReport, PluginInfo, new_id
from muster_agent.decide import events
from muster_agent.decide.events import AgentCommand, AgentEvent
from muster_agent.decide.node import NodeAgent
from muster_agent.decide.orders import Order, RanksReady, RunEnded
from muster_agent.decide.plan import PlannedCheck, announced
from muster_agent.wire.link import AgentLink
from muster_agent.wire.metrics import AgentMetrics
from muster_agent.wire.outbox import Outbox
from muster_coordinator.local.processes import PR_SET_PDEATHSIG

IN_MEMORY = Path(":memory:")
NO_DEVICES = Inventory()

PLUGIN = PluginInfo(name="noop", distribution=None, version=None, status="loaded", checks=(NOOP_GROUP.name,))
PLANNED = PlannedCheck(check=NOOP_GROUP, params=None, timeout_s=NOOP_GROUP.timeout_s, interval_s=None)


class Simulated:
    """One agent. `metrics` may be shared: nobody reads them."""

    def __init__(self, name: str, broker: str, metrics: AgentMetrics) -> None:
        settings = Settings(node=name, broker=BrokerSettings(url=broker))
        self._name = name
        self._outbox = Outbox(IN_MEMORY, settings.agent.outbox_limit, boot="the only one")
        self._node = NodeAgent(name, {NOOP_GROUP.name: PLANNED}, new_id, time.time(), spread_s=0.0)
        self._link = AgentLink(settings, self._outbox, metrics, self._feed, _ignore)
        self._orders: dict[str, tuple[Order, float]] = {}  # by run, with the time at which its rank has come

    async def run(self) -> None:
        """Says what it is made of and serves for ever."""
        self._link.announce(
            InventoryReport(
                sent_at=time.time(),
                node=self._name,
                inventory=NO_DEVICES,
                checks=(announced(PLANNED),),
                plugins=(PLUGIN,),
            )
        )
        self._feed(events.InventoryFound(NO_DEVICES))
        await self._link.run()

    def _feed(self, event: AgentEvent) -> None:
        for command in self._node.handle(event, time.time()):
            self._carry_out(command)

    def _carry_out(self, command: AgentCommand) -> None:
        match command:
            case events.SendReply(message):
                self._link.reply(message)
            case events.ReportRun(run):
                if (kept := self._outbox.append(run)) is not None:
                    self._link.appended(kept)
            case events.OpenPort(group):
                self._feed(events.PortOpened(group, "127.0.0.1", 1))
            case events.ProbeIdle():
                self._feed(events.IdlenessSeen(Idleness.IDLE))
            case events.ConnectToRankZero(group):
                self._feed(events.RankZeroReached(group))
            case events.StartRun(order):
                self._orders[order.run] = order, time.time()
                self._feed(RanksReady(order.run))
            case events.ReleaseRanks(run):
                self._work(*self._orders.pop(run))
            case events.StopRun(run) if run in self._orders:  # whoever is let go already ends by itself
                self._work(*self._orders.pop(run))

    def _work(self, order: Order, arrived_at: float) -> None:
        assert isinstance(order.params, NoopParams)
        metrics = {"arrived_at": arrived_at, "released_at": time.time()}
        ended = _ended(self._name, order, order.params.work_s, metrics)
        asyncio.get_running_loop().call_later(order.params.work_s, partial(self._feed, ended))


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


def _ignore(_rows: tuple[Reference, ...]) -> None:
    """Nothing is judged here."""


async def live(broker: str, names: list[str]) -> None:
    """All agents of this process."""
    metrics = AgentMetrics()
    async with asyncio.TaskGroup() as agents:
        for name in names:
            agents.create_task(Simulated(name, broker, metrics).run(), name=name)


def main() -> None:
    """Lives until it is ended; logs what goes wrong only."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    logs.configure(LogSettings(level="warning"))
    broker, *names = sys.argv[1:]
    asyncio.run(live(broker, names))


if __name__ == "__main__":
    main()
