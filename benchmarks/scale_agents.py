"""Many simulated agents in one process: the real link and encoder, with runs that a real agent has made.

What a real agent measured, its inventory and its checks come from a file (see `scale_template`). Each simulated agent
repeats these runs at their cadence, from a share of the interval that depends on its name, as a real schedule does, and
with other noise each time (see `scale_runs`). It also takes part in sweeps, with a simulated payload (see
`lean_member`). Simulated are the measurements, the processes and the outbox, which is in memory.

Arguments: the URL of the broker, the file, and the first and last number of its nodes. It ends with its standard input,
on which commands come as lines:

- `fail CODE NODE...` makes these nodes report a fault at once, and prints when.
- `speed FACTOR` makes all nodes run their checks FACTOR times as often; 0 stops them. It prints how many runs there
  were so far.
- `runs` prints how many runs there were so far, and `planned` how many if no coordinator had slowed down the checks.
- `sent` and `received` print how many bytes of MQTT all nodes have sent or received so far.
"""

import asyncio
import ctypes
import math
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import aiomqtt
from benchmarks.lean_member import EncodedReply, LeanMember
from benchmarks.lean_mqtt import TRAFFIC, LeanClient
from benchmarks.scale_runs import MemoryOutbox, RunVariant, reading_of, variants_of
from benchmarks.scale_template import Template
from benchmarks.sweep_member import with_sweeps

import muster
from muster import logs
from muster.config import BrokerSettings, LogSettings, Settings
from muster.model import Action, Finding, Run, Severity, Verdict
from muster.wire import codec
from muster.wire.messages import AnyGroupReply, Presence, new_id
from muster.wire.topics import NodeTopic
from muster_agent.decide.events import CommandReceived, CoordinatorSeen
from muster_agent.decide.repeated_runs import RepeatedRuns
from muster_agent.decide.schedule import beats_apart, spread
from muster_agent.wire.link import AgentLink
from muster_agent.wire.metrics import AgentMetrics
from muster_agent.wire.outbox import STREAM_CHARACTERS, Outbox
from muster_agent.wire.reports import Reports
from muster_coordinator.local.processes import PR_SET_PDEATHSIG

Checks = dict[str, tuple[tuple[RunVariant, ...], float]]
"""By check, the variants of its run and the interval in seconds."""


def node_name(number: int) -> str:
    """The name of a simulated node, as long as names are."""
    return f"gpu-node-{number:05}"


class SimulatedLink(AgentLink):
    """An agent's link over a connection that costs little. `report` gets the runs of its part in sweeps.

    `heard` gets what the coordinator says beside orders.

    It takes orders and replies as they are on the wire. A reply goes out at once; what is said while there is no
    connection is repeated when the coordinator is heard again. It waits with one timer instead of one for each wait.
    """

    def __init__(
        self,
        settings: Settings,
        outbox: MemoryOutbox,
        metrics: AgentMetrics,
        report: Callable[[Run], None],
        heard: Callable[[CommandReceived | CoordinatorSeen], None],
    ) -> None:
        kept = cast(Outbox, outbox)  # it has the methods that the link calls
        super().__init__(settings, kept, metrics, heard, _ignore)
        self._reports = Reports(self._node, kept, RepeatedRuns(reading_of))
        self._orders = self._topics.node(self._node, NodeTopic.COMMAND)
        self._replies_to = self._topics.node(self._node, NodeTopic.GROUP)
        self._member = LeanMember(self._node, self._say, report)
        self._timer: asyncio.TimerHandle | None = None
        self._connection: LeanClient

    def _client(self) -> aiomqtt.Client:
        where = urlsplit(self._broker)
        offline = Presence(sent_at=time.time(), node=self._node, online=False, version=muster.__version__)
        will = self._topics.node(self._node, NodeTopic.PRESENCE), codec.encode(offline)
        self._connection = LeanClient(
            str(where.hostname), where.port or 1883, f"agent-{self._node}", will, keepalive_s=60
        )
        return cast(aiomqtt.Client, self._connection)  # it has the methods that the link calls

    async def _receive_until_lost(self, _client: aiomqtt.Client) -> None:
        await self._connection.deliver(self.hear)

    def _handle(self, topic: str, payload: object) -> None:
        if topic == self._orders:
            self._member.obey(cast(bytes, payload))
        else:
            super()._handle(topic, payload)

    def _say(self, reply: EncodedReply) -> None:
        self._last_reply.sent(cast(AnyGroupReply, reply))  # it has the time, and comes back to `reply`
        if self.connected:
            self._connection.send(self._replies_to, reply.payload)

    def reply(self, message: object) -> None:
        """Repeats the last reply."""
        self._say(cast(EncodedReply, message))

    async def _wait_for_work(self) -> None:
        loop, due = asyncio.get_running_loop(), self._next_due()
        if self._timer is None or due < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(due, self._look)  # the loop's clock is the monotonic one
        await self._wake.wait()

    def appended(self, run: Run) -> None:
        """Notes a new run. A run that waits for others, as most do, changes nothing else."""
        self._reports.appended(run)
        if self._reports.waiting or self._timer is None or self._reports.next_due() < self._timer.when():
            self._wake.set()

    def _look(self) -> None:
        self._timer = None
        self._wake.set()


class SimulatedAgent:
    """One agent. `metrics` may be shared: nobody reads them."""

    def __init__(self, name: str, broker: str, template: Template, checks: Checks, metrics: AgentMetrics) -> None:
        settings = Settings(node=name, broker=BrokerSettings(url=broker))
        self._name = name
        self._template = template
        self._checks = checks
        self._random = random.Random(name)  # noqa: S311 (noise, no secret)
        self._outbox = MemoryOutbox(name, new_id()[:STREAM_CHARACTERS])
        self._link = SimulatedLink(settings, self._outbox, metrics, self.report, self._heard)
        self._link.announce(with_sweeps(template.inventory_of(name)))
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._skipped: dict[str, int] = {}  # beats of each check since its last run
        self._slowdown = 1
        self.runs = 0
        self.planned = 0

    async def run(self) -> None:
        """Runs its checks at their cadence and serves, for ever."""
        self.set_speed(1.0)
        await self._link.run()

    def set_speed(self, factor: float) -> None:
        """Runs its checks `factor` times as often from now on; not at all at 0."""
        for timer in self._due.values():
            timer.cancel()
        if factor:
            for check, (_, interval_s) in self._checks.items():
                self._schedule(check, spread(self._name, check) * interval_s / factor, factor)

    def report(self, run: Run) -> None:
        """Reports a run that nobody repeats."""
        self._appended(self._outbox.append(run))

    def fail(self, code: str) -> None:
        """Reports a fault of the node at once."""
        run, _ = self._template.checks[code.partition(".")[0]]
        fault = Finding(
            code=code, summary="a simulated fault", severity=Severity.ERROR, device=3, action=Action.REPLACE
        )
        own = {"id": new_id(), "node": self._name, "started_at": time.time()}
        self.report(run.model_copy(update=own | {"findings": (fault,), "verdict": Verdict.FAIL}))

    def _schedule(self, check: str, in_s: float, factor: float) -> None:
        self._due[check] = asyncio.get_running_loop().call_later(in_s, self._measure, check, factor)

    def _measure(self, check: str, factor: float) -> None:
        variants, interval_s = self._checks[check]
        self._schedule(check, interval_s / factor, factor)
        self.planned += 1
        self._skipped[check] = self._skipped.get(check, 0) + 1
        if self._skipped[check] < beats_apart(interval_s / factor, self._slowdown):
            return
        self._skipped[check] = 0
        self._appended(self._outbox.append_variant(self._random.choice(variants), math.floor(time.time() * 1e3) / 1e3))

    def _heard(self, event: CommandReceived | CoordinatorSeen) -> None:
        if isinstance(event, CoordinatorSeen):
            self._slowdown = event.message.slowdown

    def _appended(self, run: Run) -> None:
        self.runs += 1
        self._link.appended(run)


def _ignore(_references: object) -> None:
    """Nothing is judged here."""


async def live(broker: str, template: Template, names: list[str]) -> None:
    """All agents of this process, until standard input ends."""
    metrics, chance = AgentMetrics("n1"), random.Random(names[0])  # noqa: S311 (noise, no secret)
    checks = {check: (variants_of(run, chance), every_s) for check, (run, every_s) in template.checks.items()}
    agents = {name: SimulatedAgent(name, broker, template, checks, metrics) for name in names}
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(agent.run(), name=name) for name, agent in agents.items()]
        await _obey(agents)
        for task in running:
            task.cancel()


async def _obey(agents: dict[str, SimulatedAgent]) -> None:
    """Carries out the commands from standard input."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := (await reader.readline()).decode():
        match line.split():
            case "fail", code, *nodes:
                print(time.time(), flush=True)
                for node in nodes:
                    agents[node].fail(code)
            case "speed", factor:
                for agent in agents.values():
                    agent.set_speed(float(factor))
                print(sum(agent.runs for agent in agents.values()), flush=True)
            case ["runs"]:
                print(sum(agent.runs for agent in agents.values()), flush=True)
            case ["planned"]:
                print(sum(agent.planned for agent in agents.values()), flush=True)
            case ["sent"]:
                print(TRAFFIC.sent, flush=True)
            case ["received"]:
                print(TRAFFIC.received, flush=True)
            case _:
                raise ValueError(f"unknown command: {line!r}")


def main() -> None:
    """Lives until its input ends; logs what goes wrong only."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    logs.configure(LogSettings(level="error"))
    broker, file, first, last = sys.argv[1:]
    template = Template.read(Path(file))
    asyncio.run(live(broker, template, [node_name(number) for number in range(int(first), int(last) + 1)]))


if __name__ == "__main__":
    main()
