"""The agent's shell: receives events, asks `NodeAgent` for the commands that follow, and carries them out.

It carries out commands in order. Slow commands are started in order and then run beside the others.
"""

import asyncio
import fcntl
import os
import signal
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

import muster
from muster import references
from muster.check import Scope, own_references
from muster.config import Settings
from muster.errors import Unavailable
from muster.machine_type import disagreement
from muster.model import Inventory, Json, Run
from muster.plugins import Plugins
from muster.reference_file import read_references
from muster.references import Reference
from muster.systemd import READY, STOPPING, keep_watchdog_quiet, notify
from muster.waiting_references import waiting_references
from muster.wire.messages import InventoryReport, new_id
from muster_agent.decide import events
from muster_agent.decide.events import AgentCommand, AgentEvent
from muster_agent.decide.node import NodeAgent
from muster_agent.decide.orders import Surroundings
from muster_agent.decide.plan import PlannedCheck, announced, judged, watched
from muster_agent.runs.inventory import completed
from muster_agent.runs.labels import read_labels
from muster_agent.runs.launcher import Launcher, LauncherLost
from muster_agent.runs.plan_settings import memory_limit_bytes, resident_limit_bytes
from muster_agent.runs.plugins_run import plugins_run
from muster_agent.runs.ports import Ports, alone
from muster_agent.runs.resident import ResidentChild
from muster_agent.runs.runner import Runner
from muster_agent.runs.slow_commands import SlowCommand, SlowCommands
from muster_agent.wire.endpoint import read_token, serving
from muster_agent.wire.link import AgentLink
from muster_agent.wire.metrics import AgentMetrics
from muster_agent.wire.outbox import Outbox

INVENTORY_INTERVAL_S = 600.0
INVENTORY_RETRY_S = 60.0
GOODBYE_WITHIN_S = 1.0

log = structlog.get_logger()


def serve(settings: Settings, plugins: Plugins, plan: Mapping[str, PlannedCheck], launcher: Launcher) -> None:
    """Runs the agent until SIGTERM or SIGINT.

    Raises Unavailable if a port, a file or the launcher is not available, SettingsError for wrong references or labels.
    """
    with _alone_in(settings.data_dir):
        try:
            asyncio.run(_serve(settings, plugins, plan, launcher))
        except* LauncherLost:
            log.critical("launcher_lost", note="nothing can run without it; the supervisor must restart the agent")
            raise


@contextmanager
def _alone_in(data_dir: Path) -> Iterator[None]:
    """Locks data_dir for this agent while the context lasts; raises Unavailable if another agent has it."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (data_dir / "agent.lock").open("w")
    except OSError as error:
        raise Unavailable(f"cannot use {data_dir} for the outbox: {error.strerror} (see data_dir)") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(f"another agent uses {data_dir}; stop it, or set another data_dir for this one") from None
        yield


async def _serve(settings: Settings, plugins: Plugins, plan: Mapping[str, PlannedCheck], launcher: Launcher) -> None:
    with closing(Outbox(settings.data_dir / "outbox.db", settings.agent.outbox_limit, _boot_id())) as outbox:
        await Daemon(settings, plugins, plan, launcher, outbox).run()


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class Daemon:
    """The agent of one node. Create it inside the running event loop."""

    _leaving: str | None = None

    def __init__(
        self, settings: Settings, plugins: Plugins, plan: Mapping[str, PlannedCheck], launcher: Launcher, outbox: Outbox
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._epoch_offset_s = time.time() - self._loop.time()
        self._settings = settings
        self._plugins = plugins
        self._plan = plan
        self._own_references = read_references(settings.references_file, None if plugins.failed else judged(plan))
        self._labels = read_labels(settings.agent.labels_file)
        self._launcher = launcher
        self._outbox = outbox
        self._metrics = AgentMetrics(settings.node, settings.agent.device_metrics)
        self._token = None if settings.agent.token_file is None else read_token(settings.agent.token_file)
        self._node = NodeAgent(
            settings.node,
            plan,
            new_id,
            self._now(),
            spread_s=settings.agent.spread_s,
            expected_gpus=settings.expected_gpus,
            reserves=launcher.reserves,
        )
        self._ports = Ports(settings)
        self._link = AgentLink(settings, outbox, self._metrics, self._handle, self._take_references)
        memory_limit = memory_limit_bytes(settings.agent)
        resident_limit = resident_limit_bytes(memory_limit)
        self._resident = ResidentChild(launcher, resident_limit, watched(plan), self._alert, self._note_departure)
        surroundings = Surroundings(
            node=settings.node,
            devices=(),
            expected_gpus=settings.expected_gpus,
            references=(*references.shipped(), *self._own_references),
            memory_limit_bytes=memory_limit,
        )
        self._runner = Runner(launcher, self._resident, surroundings, self._handle)
        self._probing_child = ResidentChild(launcher, resident_limit)
        self._slow_commands = SlowCommands(self._probing_child, self._runner, self._ports)
        self._inventory: Inventory | None = None
        self._commands: asyncio.Queue[AgentCommand] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None
        self._stop = asyncio.Event()
        self._beside: set[asyncio.Task[None]] = set()
        self._bug: Exception | None = None
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        """Runs until a signal, then ends everything within 5 s."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop.set)
        self._loop.set_exception_handler(self._crash)
        self._set_metrics()
        endpoint = serving(self._settings.agent.listen, self._health, self._metrics, self._token)
        async with endpoint as port, self._tasks as tasks:
            link = tasks.create_task(self._link.run(), name="link")
            carrier = tasks.create_task(self._carry_out_all(), name="commands")
            self._start_beside("inventory", self._keep_inventory())
            self._start_beside("probes", self._probing_child.keep_only_while_asked())
            self._start_beside("launcher", self._end_with_launcher())
            self._start_beside("watchdog", keep_watchdog_quiet(is_well=lambda: True))
            self._report(plugins_run(self._settings.node, self._plugins.failed, self._now()))
            self._handle(events.DueTimeReached())
            notify(READY)
            log.info("agent_started", endpoint=f"http://{self._settings.agent.listen.rpartition(':')[0]}:{port}")
            await self._stop.wait()
            await self._wind_down(link)
            carrier.cancel()
            if self._bug:
                raise self._bug

    def _start_beside(self, name: str, work: Coroutine[None, None, None]) -> None:
        """Starts a task that nothing waits for. It ends with the agent."""
        task = self._tasks.create_task(work, name=name)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    # Events

    def _now(self) -> float:
        """Seconds since the epoch, by a clock set at the start: if the host's clock jumps, no deadline moves."""
        return self._loop.time() + self._epoch_offset_s

    def _handle(self, event: AgentEvent) -> None:
        for command in self._node.handle(event, self._now()):
            self._commands.put_nowait(command)
        if self._timer:
            self._timer.cancel()
            self._timer = None
        due = self._node.next_due()
        if due < float("inf"):
            self._timer = self._loop.call_at(due - self._epoch_offset_s, self._handle, events.DueTimeReached())

    def _alert(self, check: str) -> None:
        self._handle(events.WatchFired(check))

    # Commands

    async def _carry_out_all(self) -> None:
        while True:
            command = await self._commands.get()
            await self._carry_out(command)
            self._commands.task_done()

    async def _carry_out(self, command: AgentCommand) -> None:
        match command:
            case events.StartRun():
                await self._start(command)
            case events.ReleaseRanks(run):
                self._runner.go(run)
            case events.StopRun(run, reason):
                self._runner.stop(run, reason)
            case events.ReportRun(run):
                self._report(run)
            case events.SendReply(message):
                self._link.reply(message)
            case events.CountRefusal(kind, detail):
                self._metrics.refused(kind)
                log.warning("order_refused", kind=kind, detail=detail)
            case events.ClosePort(group):
                self._ports.close(group)
            case _:
                self._start_beside(type(command).__name__, self._run_slow_command(command))

    async def _run_slow_command(self, command: SlowCommand) -> None:
        self._handle(await self._slow_commands.run(command))

    async def _start(self, command: events.StartRun) -> None:
        order, listener = command.order, None
        log.info("run_started", run=order.run, check=order.check.name, cause=order.cause)
        if order.check.scope is Scope.GROUP and order.group is None:
            order, listener = alone(order, max(1, len(self._runner.surroundings.devices)))
        elif order.group and any(place.rank == 0 for place in order.places):
            listener = self._ports.copy(order.group)
        await self._runner.start(order, listener)

    def _report(self, run: Run) -> None:
        self._metrics.run_ended(run)
        kept = self._outbox.append(run)
        self._metrics.dropped(self._outbox.dropped())
        codes = [finding.code for finding in run.findings]
        name = run.id if kept is None else kept.id
        log.info("run_ended", run=name, check=run.check, verdict=run.verdict, findings=codes, kept=kept is not None)
        if kept is not None:
            self._link.appended(kept)

    # Inventory and references

    async def _keep_inventory(self) -> None:
        """Refreshes the inventory. Without an answer, the last one stays; the first may be empty."""
        known = Inventory()
        while True:
            found = await self._resident.inventory()
            if found is not None or self._inventory is None:
                known = completed(found or Inventory(), self._settings, self._labels, known.machine_types)
                self._learn(known)
            is_complete = found is not None and known.machine_type is not None
            await asyncio.sleep(INVENTORY_INTERVAL_S if is_complete else INVENTORY_RETRY_S)

    def _learn(self, found: Inventory) -> None:
        around = self._runner.surroundings
        own = (row for planned in self._plan.values() for row in own_references(planned.check))
        waiting = waiting_references(found, (*own, *around.references), self._plan)
        inventory = found.model_copy(update={"waiting_references": waiting, "leaving": self._leaving})
        if inventory == self._inventory:
            return
        self._inventory = inventory
        self._runner.surroundings = replace(around, devices=inventory.devices, machine_type=inventory.machine_type)
        self._link.announce(self._inventory_report(inventory))
        log.info("devices_found", devices=len(inventory.devices), machine_type=inventory.machine_type)
        if said := disagreement(inventory.machine_types):
            log.warning("machine_types_disagree", said=said, used=inventory.machine_type)
        self._handle(events.InventoryFound(inventory))

    def _note_departure(self, why: str | None) -> None:
        self._leaving = why
        if self._inventory is not None:
            self._learn(self._inventory)

    def _inventory_report(self, inventory: Inventory) -> InventoryReport:
        return InventoryReport(
            sent_at=self._now(),
            node=self._settings.node,
            inventory=inventory,
            checks=announced(self._plan),
            plugins=self._plugins.infos,
        )

    def _take_references(self, rows: tuple[Reference, ...]) -> None:
        """Uses the fleet's references from now on. Of equal rows, this node's own win because they come last."""
        rows = (*references.shipped(), *rows, *self._own_references)
        self._runner.surroundings = replace(self._runner.surroundings, references=rows)
        if self._inventory is not None:
            self._learn(self._inventory)  # other references may wait for the machine type now

    # Metrics, health and the end

    def _set_metrics(self) -> None:
        self._metrics.outbox_depth.set_function(lambda: len(self._outbox))
        self._metrics.outbox_age.set_function(lambda: self._outbox.oldest_began_s_ago(time.time()))
        self._metrics.running.set_function(lambda: len(self._node.running))
        self._metrics.lease_held.set_function(lambda: self._node.holder is not None)

    def _health(self) -> Json:
        return {
            "node": self._settings.node,
            "version": muster.__version__,
            "broker_connected": self._link.connected,
            "running": [*self._node.running],
            "lease_holder": self._node.holder,
            "outbox": len(self._outbox),
        }

    def _crash(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Ends the agent if a callback of the loop raises: nothing else would do the callback's work."""
        loop.default_exception_handler(context)
        if "handle" in context:
            self._bug = context.get("exception")
            self._stop.set()

    async def _end_with_launcher(self) -> None:
        """Ends the agent if the launcher ends. Without it nothing can run, and the supervisor restarts both."""
        descriptor = os.pidfd_open(self._launcher.pid)
        gone = asyncio.Event()
        self._loop.add_reader(descriptor, gone.set)
        try:
            await gone.wait()
            raise LauncherLost("the launcher process is gone")
        finally:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)

    async def _wind_down(self, link: asyncio.Task[None]) -> None:
        log.info("agent_stops")
        notify(STOPPING)
        self._handle(events.StopRequested())
        await self._commands.join()
        for task in self._beside:
            task.cancel()
        await self._runner.stop_all()
        await self._commands.join()
        if self._launcher.reserves:
            await self._slow_commands.release_for_good()
        await self._slow_commands.close()
        await self._runner.close()
        self._ports.close_all()
        self._link.close()
        await asyncio.wait([link], timeout=GOODBYE_WITHIN_S)
        link.cancel()
