"""How much a node that floods slows down the other nodes.

Claims, for a flood with each kind of message: the time from the publication of another node's report until the API
serves it has a 99th percentile of less than twice the usual one, and the coordinator's memory grows by less than
64 MiB.

Method: a real Mosquitto and a real coordinator with SQLite. A probe publishes a report every 50 ms and listens to the
event stream. Like an agent, it sends a report again after 5 s without an answer. There are three turns: nobody floods;
a process floods a topic without subscribers; the same process floods a topic of the node `flooder`. The process sends
prepared messages at QoS 0 in a tight loop. It uses one core of this host, and Mosquitto most of another. The third turn
is compared with the second, which has the same load on host and broker, so the difference is the coordinator's.

Limits: flooder, broker, coordinator and probe share the host's cores. The flooder of a real fleet has its own.
"""

import argparse
import asyncio
import json
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import paho.mqtt.client as paho
import psutil
from benchmarks.figures import Figure, arguments, median_of, percentile, publish
from benchmarks.fleet import ROOT, Fleet, interpreter, mosquitto
from paho.mqtt.enums import CallbackAPIVersion

from muster.model import Inventory, Run, Verdict
from muster.wire.codec import encode
from muster.wire.messages import InventoryReport, Presence, Report
from muster.wire.topics import NodeTopic, Topics

TOPICS = Topics("default")
UNREAD_TOPICS = Topics("nobody")
"""Those of a fleet without a coordinator."""

FLOODER, PROBE = "flooder", "probe"
EVERY_S = 0.05
AGAIN_S = 5.0
MOST_RATIO = 2.0
MOST_MIB = 64.0


def run_of(node: str, number: int, **content: Any) -> Run:
    """A run as an agent reports it."""
    return Run(
        id=f"{node}-{number}-{time.time_ns()}",
        node=node,
        check="simulated",
        verdict=Verdict.PASS,
        started_at=time.time(),
        duration_s=0.1,
        seq=number,
        **content,
    )


def small_reports(node: str) -> list[bytes]:
    """Each in another stream, about another check that the node has not announced."""
    runs = (run_of(node, 1).model_copy(update={"id": f"r{n}", "check": f"c{n}"}) for n in range(200))
    return [
        encode(Report(sent_at=time.time(), node=node, stream=f"s{n}", after=0, runs=(run,)))
        for n, run in enumerate(runs)
    ]


def large_reports(node: str) -> list[bytes]:
    """Each nearly as large as a message may be."""
    runs = tuple(run_of(node, n, facts={"padding": "x" * 9_000}) for n in range(1, 101))
    return [encode(Report(sent_at=time.time(), node=node, stream=f"l{n}", after=0, runs=runs)) for n in range(4)]


def presences(node: str) -> list[bytes]:
    """Online and offline in turns."""
    return [encode(Presence(sent_at=time.time(), node=node, online=n % 2 == 0)) for n in range(200)]


def inventories(node: str) -> list[bytes]:
    """Each with another machine type."""
    made = (Inventory(machine_type=f"m{n}", software={"x": "y" * 200}) for n in range(100))
    return [encode(InventoryReport(sent_at=time.time(), node=node, inventory=one, checks=())) for one in made]


def garbage(_node: str) -> list[bytes]:
    """Messages that no parser accepts."""
    return [b'{"schema":1,"id":"x","kind":"' + b"[" * 500] * 200


FLOODS: dict[str, tuple[NodeTopic, Callable[[str], list[bytes]]]] = {
    "small reports": (NodeTopic.REPORT, small_reports),
    "large reports": (NodeTopic.REPORT, large_reports),
    "presences": (NodeTopic.PRESENCE, presences),
    "inventories": (NodeTopic.INVENTORY, inventories),
    "garbage": (NodeTopic.GROUP, garbage),
}


@contextmanager
def flooding(port: int, topic: str, payloads: Sequence[bytes], account: tuple[str, str] = ("", "")) -> Iterator[None]:
    """Floods a topic while the context lasts; RuntimeError if the flood ended earlier."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(b"\n".join(payloads))
        command = interpreter("-m", "benchmarks.flood_sender", str(port), *account, topic, file.name)
        process = subprocess.Popen(command, cwd=ROOT)
        try:
            yield
            if process.poll() is not None:
                raise RuntimeError("the flood ended by itself; see the output of benchmarks.flood_sender")
        finally:
            process.kill()
            process.wait()


class Probe:
    """An honest node. It measures the time from the publication of its reports until the API at `url` serves them."""

    def __init__(self, url: str, port: int, name: str, password: str | None = None) -> None:
        self._url = url
        self._name = name
        self._stream = f"probe-{time.time_ns()}"
        self._number = 0
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"{name}-{time.time_ns()}")
        if password is not None:
            self._client.username_pw_set(name, password)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._publish(NodeTopic.PRESENCE, encode(Presence(sent_at=time.time(), node=name, online=True)))

    def latencies_ms(self, count: int) -> list[float]:
        """The latencies of `count` reports, one after the other."""
        with urllib.request.urlopen(f"{self._url}/api/v1/events", timeout=60) as events:  # noqa: S310 (http)
            return [1e3 * self._latency_s(events) for _ in range(count)]

    def leave(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _latency_s(self, events: Any) -> float:
        time.sleep(EVERY_S)
        self._number += 1
        run = run_of(self._name, self._number)
        report = Report(sent_at=time.time(), node=self._name, stream=self._stream, after=self._number - 1, runs=(run,))
        payload = encode(report)
        served = threading.Event()
        began = time.perf_counter()
        threading.Thread(target=self._publish_until, args=(served, payload), daemon=True).start()
        try:
            for line in events:
                if line.startswith(b"data: ") and json.loads(line[6:]).get("id") == run.id:
                    return time.perf_counter() - began
        finally:
            served.set()
        raise RuntimeError("the event stream has ended")

    def _publish_until(self, served: threading.Event, payload: bytes) -> None:
        """Publishes a report again and again, as agents do: a flooded broker may lose more than one."""
        while True:
            self._publish(NodeTopic.REPORT, payload)
            if served.wait(AGAIN_S):
                return

    def _publish(self, topic: NodeTopic, payload: bytes) -> None:
        self._client.publish(TOPICS.node(self._name, topic), payload)


@dataclass(frozen=True, slots=True)
class Turn:
    """The latencies of a probe, and by how much the coordinator's memory grew meanwhile."""

    latencies_ms: list[float]
    growth_mib: float

    @property
    def p99_ms(self) -> float:
        return percentile(self.latencies_ms, 99)


def memory_mib(process: int) -> float:
    """The memory of a process that it shares with no other."""
    return float(psutil.Process(process).memory_full_info().uss) / 2**20


def take_turn(probe: Probe, coordinator: int, count: int) -> Turn:
    """Measures `count` reports of the probe now; `coordinator` is a process id."""
    before = memory_mib(coordinator)
    latencies = probe.latencies_ms(count)
    return Turn(latencies, memory_mib(coordinator) - before)


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of all floods."""
    figures: list[Figure] = []
    async with mosquitto(directory) as broker, Fleet(directory, broker) as fleet:
        port, coordinator = urlsplit(broker).port or 0, fleet.parts["coordinator"].process.pid
        probe = Probe(fleet.url, port, PROBE)
        await asyncio.to_thread(take_turn, probe, coordinator, 100)  # the first reports of a new node do not count
        for name in options.floods or FLOODS:
            figures += await asyncio.to_thread(measure_flood, name, probe, port, coordinator, options.reports)
        probe.leave()
    return figures


def measure_flood(name: str, probe: Probe, port: int, coordinator: int, count: int) -> list[Figure]:
    """The figures of one kind of flood."""
    topic, payloads = FLOODS[name]
    messages = payloads(FLOODER)
    quiet = take_turn(probe, coordinator, count)
    with flooding(port, UNREAD_TOPICS.node(FLOODER, topic), messages):
        busy = take_turn(probe, coordinator, count)
    with flooding(port, TOPICS.node(FLOODER, topic), messages):
        flooded = take_turn(probe, coordinator, count)
    ratio = flooded.p99_ms / busy.p99_ms
    return [
        median_of(f"{name}: nobody floods", "ms", quiet.latencies_ms),
        median_of(f"{name}: flood that nobody reads", "ms", busy.latencies_ms),
        median_of(f"{name}: flood of a node", "ms", flooded.latencies_ms),
        Figure(
            what=f"{name}: p99 against the flood that nobody reads", unit="", value=ratio, target=("<=", MOST_RATIO)
        ),
        Figure(what=f"{name}: more memory", unit="MiB", value=flooded.growth_mib, target=("<=", MOST_MIB)),
    ]


def main() -> None:
    """Runs the benchmark."""
    parser = arguments(__doc__)
    parser.add_argument("--reports", type=int, default=600, help="reports of the probe in each turn")
    parser.add_argument("--floods", nargs="+", choices=FLOODS, help="kinds of flood; unset: all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        publish(options, asyncio.run(measure(options, Path(directory))))


if __name__ == "__main__":
    main()
