"""Many simulated agents in one process: all of an agent but what it runs.

Each has an agent's own decisions (`sweep_member`), outbox and connection to the broker, and so says and hears all that
a real one does, heartbeats and repetitions included. The outbox is in memory.

Arguments: the URL of the broker and the names of the agents. It ends when whoever started it ends it, or dies.
"""

import asyncio
import ctypes
import signal
import sys
import time
from pathlib import Path

from benchmarks.sweep_member import SweepMember, with_sweeps

from muster import logs
from muster.config import BrokerSettings, LogSettings, Settings
from muster.model import Inventory, Run
from muster.references import Reference
from muster.wire.messages import AnyGroupReply, InventoryReport
from muster_agent.wire.link import AgentLink
from muster_agent.wire.metrics import AgentMetrics
from muster_agent.wire.outbox import Outbox
from muster_coordinator.local.processes import PR_SET_PDEATHSIG

IN_MEMORY = Path(":memory:")


class Simulated:
    """One agent. `metrics` may be shared: nobody reads them."""

    def __init__(self, name: str, broker: str, metrics: AgentMetrics) -> None:
        settings = Settings(node=name, broker=BrokerSettings(url=broker))
        self._name = name
        self._outbox = Outbox(IN_MEMORY, settings.agent.outbox_limit, boot="the only one")
        member = SweepMember(name, self._reply, self._report)
        self._link = AgentLink(settings, self._outbox, metrics, member.take, _ignore)

    async def run(self) -> None:
        """Says what it is made of and serves for ever."""
        nothing = InventoryReport(sent_at=time.time(), node=self._name, inventory=Inventory(), checks=())
        self._link.announce(with_sweeps(nothing))
        await self._link.run()

    def _reply(self, message: AnyGroupReply) -> None:
        self._link.reply(message)

    def _report(self, run: Run) -> None:
        if (kept := self._outbox.append(run)) is not None:
            self._link.appended(kept)


def _ignore(_rows: tuple[Reference, ...]) -> None:
    """Nothing is judged here."""


async def live(broker: str, names: list[str]) -> None:
    """All agents of this process."""
    metrics = AgentMetrics("n1")
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
