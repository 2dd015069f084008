"""Runs checks on this node one after the other, in the same way as the agent."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from socket import socket

from muster.check import Scope
from muster.config import Settings
from muster.model import Inventory, Run
from muster.references import Reference
from muster.wire.messages import new_id
from muster_agent.acceptance.selection import SelectedCheck
from muster_agent.decide.orders import Order, RankPlace, RanksReady, RunEnded, RunnerEvent, RunProgressed, Surroundings
from muster_agent.runs.inventory import completed
from muster_agent.runs.labels import read_labels
from muster_agent.runs.launcher import Launcher
from muster_agent.runs.plan_settings import memory_limit_bytes, resident_limit_bytes
from muster_agent.runs.ports import alone
from muster_agent.runs.resident import ResidentChild
from muster_agent.runs.runner import Runner

Say = Callable[[str, str], None]
"""Called with the name of a check and the progress of its run."""


class LocalRunner:
    """Runs checks, one at a time. `inventory` is this node's."""

    def __init__(
        self, runner: Runner, events: "asyncio.Queue[RunnerEvent]", node: str, inventory: Inventory, say: Say
    ) -> None:
        self.node = node
        self.inventory = inventory
        self._runner = runner
        self._events = events
        self._say = say
        self._current: str | None = None

    @property
    def ranks(self) -> int:
        """How many ranks this node brings into a group."""
        return max(1, len(self.inventory.devices))

    async def run(self, one: SelectedCheck) -> Run:
        """Runs a check on this node alone; a check of scope GROUP runs as a group of its devices."""
        order = _order(one)
        if one.check.scope is Scope.NODE:
            return await self._carry_out(order, None, self.go)
        order, listener = alone(order, self.ranks)
        return await self._carry_out(order, listener, self.go)

    async def run_in_group(
        self,
        one: SelectedCheck,
        group: str,
        places: tuple[RankPlace, ...],
        listener: socket | None,
        on_ready: Callable[[], None],
    ) -> Run:
        """Runs this process's ranks of a group. They wait at the rendezvous for `go`."""
        order = replace(_order(one), group=group, cause=group, places=places)
        return await self._carry_out(order, listener, on_ready)

    def go(self) -> None:
        """Lets the ranks of the present run pass their rendezvous."""
        if self._current:
            self._runner.go(self._current)

    def stop(self, reason: str) -> None:
        """Ends the present run as SKIPPED."""
        if self._current:
            self._runner.stop(self._current, reason)

    async def _carry_out(self, order: Order, listener: socket | None, on_ready: Callable[[], None]) -> Run:
        self._current = order.run
        await self._runner.start(order, listener)
        while True:
            match await self._events.get():
                case RanksReady():
                    on_ready()
                case RunProgressed(text=text):
                    self._say(order.check.name, text)
                case RunEnded(run=ended):
                    self._current = None
                    return ended


@asynccontextmanager
async def local_runner(
    launcher: Launcher, settings: Settings, references: tuple[Reference, ...], say: Say
) -> AsyncIterator[LocalRunner]:
    """A runner with this node's devices. At its end, even an early one, it kills running checks and cleans up."""
    events: asyncio.Queue[RunnerEvent] = asyncio.Queue()
    memory_limit = memory_limit_bytes(settings.agent)
    resident = ResidentChild(launcher, resident_limit_bytes(memory_limit))
    surroundings = Surroundings(
        node=settings.node,
        devices=(),
        expected_gpus=settings.expected_gpus,
        references=references,
        memory_limit_bytes=memory_limit,
    )
    runner = Runner(launcher, resident, surroundings, events.put_nowait)
    try:
        labels = read_labels(settings.agent.labels_file)
        inventory = completed(await resident.inventory() or Inventory(), settings, labels)
        runner.surroundings = replace(surroundings, devices=inventory.devices, machine_type=inventory.machine_type)
        yield LocalRunner(runner, events, settings.node, inventory, say)
    finally:
        await runner.close()


def _order(one: SelectedCheck) -> Order:
    return Order(run=new_id(), check=one.check, params=one.params, timeout_s=one.timeout_s)
