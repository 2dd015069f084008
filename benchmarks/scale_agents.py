"""Many simulated agents in one process: the real outbox, link and encoder, with runs that a real agent has made.

What a real agent measured, its inventory and its checks come from a file (see `scale_template`). Each simulated agent
repeats these runs at their cadence, from a share of the interval that depends on its name, as a real schedule does, and
lets the noisy figures move. It also takes part in sweeps, with a simulated payload (see `sweep_member`). Simulated are
the measurements, the processes and the disk: the outbox is in memory.

Arguments: the URL of the broker, the file, and the first and last number of its nodes. It ends with its standard input,
on which commands come as lines:

- `fail CODE NODE...` makes these nodes report a fault at once, and prints when.
- `speed FACTOR` makes all nodes run their checks FACTOR times as often; 0 stops them. It prints how many runs there
  were so far.
- `runs` prints how many runs there were so far.
- `sent` and `received` print how many bytes of MQTT all nodes have sent or received so far.
"""

import asyncio
import ctypes
import random
import signal
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import aiomqtt
from benchmarks.lean_mqtt import TRAFFIC, LeanClient
from benchmarks.scale_template import Template
from benchmarks.sweep_member import SweepMember, with_sweeps

import muster
from muster import logs
from muster.config import BrokerSettings, LogSettings, Settings
from muster.model import Action, Finding, Run, Severity, Verdict
from muster.references import Reference
from muster.wire import codec
from muster.wire.messages import AnyGroupReply, Presence, new_id
from muster.wire.topics import NodeTopic
from muster_agent.decide.schedule import spread
from muster_agent.wire.link import AgentLink
from muster_agent.wire.metrics import AgentMetrics
from muster_agent.wire.outbox import Outbox
from muster_coordinator.local.processes import PR_SET_PDEATHSIG

IN_MEMORY = Path(":memory:")

NOISY = ("temperature", "power_w", "utilisation", "sm_clock", "available", "zombies", "file_handles", "clock_offset")
"""Parts of the names of the metrics that differ from run to run on a real node."""


def node_name(number: int) -> str:
    """The name of a simulated node, as long as names are."""
    return f"gpu-node-{number:05}"


class SimulatedLink(AgentLink):
    """An agent's link over a connection that costs little."""

    def _client(self) -> aiomqtt.Client:
        where = urlsplit(self._broker)
        offline = Presence(sent_at=time.time(), node=self._node, online=False, version=muster.__version__)
        will = self._topics.node(self._node, NodeTopic.PRESENCE), codec.encode(offline)
        return LeanClient(  # type: ignore[return-value]  # it has the methods that the link calls
            str(where.hostname), where.port or 1883, f"agent-{self._node}", will, keepalive_s=60
        )


class SimulatedAgent:
    """One agent. `metrics` may be shared: nobody reads them."""

    def __init__(self, name: str, broker: str, template: Template, metrics: AgentMetrics) -> None:
        settings = Settings(node=name, broker=BrokerSettings(url=broker))
        self._name = name
        self._template = template
        self._random = random.Random(name)  # noqa: S311 (noise, no secret)
        self._outbox = Outbox(IN_MEMORY, settings.agent.outbox_limit, boot="the only one")
        member = SweepMember(name, self._reply, self.report)
        self._link = SimulatedLink(settings, self._outbox, metrics, member.take, _ignore_references)
        self._link.announce(with_sweeps(template.inventory_of(name)))
        self._due: dict[str, asyncio.TimerHandle] = {}
        self.runs = 0

    async def run(self) -> None:
        """Runs its checks at their cadence and serves, for ever."""
        self.set_speed(1.0)
        await self._link.run()

    def set_speed(self, factor: float) -> None:
        """Runs its checks `factor` times as often from now on; not at all at 0."""
        for timer in self._due.values():
            timer.cancel()
        if factor:
            for check, (_, interval_s) in self._template.checks.items():
                self._schedule(check, spread(self._name, check) * interval_s / factor, factor)

    def report(self, run: Run) -> None:
        """Reports a run."""
        if (kept := self._outbox.append(run)) is not None:
            self.runs += 1
            self._link.appended(kept)

    def _reply(self, message: AnyGroupReply) -> None:
        self._link.reply(message)

    def fail(self, code: str) -> None:
        """Reports a fault of the node at once."""
        run, _ = self._template.checks[code.partition(".")[0]]
        fault = Finding(
            code=code, summary="a simulated fault", severity=Severity.ERROR, device=3, action=Action.REPLACE
        )
        self.report(self._again(run).model_copy(update={"findings": (fault,), "verdict": Verdict.FAIL}))

    def _schedule(self, check: str, in_s: float, factor: float) -> None:
        self._due[check] = asyncio.get_running_loop().call_later(in_s, self._measure, check, factor)

    def _measure(self, check: str, factor: float) -> None:
        run, interval_s = self._template.checks[check]
        self._schedule(check, interval_s / factor, factor)
        self.report(self._again(run))

    def _again(self, run: Run) -> Run:
        metrics = {name: self._moved(name, value) for name, value in run.metrics.items()}
        changed = {"id": new_id(), "node": self._name, "started_at": time.time(), "metrics": metrics}
        return run.model_copy(update=changed)

    def _moved(self, name: str, value: float | list[float | None] | None) -> object:
        if not any(part in name for part in NOISY):
            return value
        if isinstance(value, list):
            return [self._moved(name, each) for each in value]
        if value is None:
            return value
        moved = value * self._random.uniform(0.97, 1.03)
        is_counted = value.is_integer() and "power" not in name  # in degrees, percent or MHz
        return float(round(moved)) if is_counted else round(moved, 3)


def _ignore_references(_rows: tuple[Reference, ...]) -> None:
    """Nothing is judged here."""


async def live(broker: str, template: Template, names: list[str]) -> None:
    """All agents of this process, until standard input ends."""
    metrics = AgentMetrics("n1")
    agents = {name: SimulatedAgent(name, broker, template, metrics) for name in names}
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
