"""One node sends as much as it can, of every kind: the others are heard as before, and nobody is accused of it."""

import json
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.hostile.world import HOSTILE, PROBE, TOPICS, Attacker, World, password_of

from muster.model import Inventory, Run, Verdict
from muster.wire.codec import encode
from muster.wire.messages import InventoryReport, Presence, Report
from muster.wire.topics import NodeTopic

FLOOD = Path(__file__).with_name("flood.py")
PROBES = 120
EVERY_S = 0.1
AGAIN_S = 5.0
"""When an agent says again what was not acknowledged."""


def run_of(node: str, number: int, **content: Any) -> Run:
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


def small_reports() -> list[bytes]:
    """Each of another stream, about a check that nobody has announced."""
    runs = (run_of(HOSTILE, 1).model_copy(update={"id": f"r{n}", "check": f"c{n}"}) for n in range(200))
    return [
        encode(Report(sent_at=time.time(), node=HOSTILE, stream=f"s{n}", after=0, runs=(run,)))
        for n, run in enumerate(runs)
    ]


def large_reports() -> list[bytes]:
    runs = tuple(run_of(HOSTILE, n, facts={"padding": "x" * 9_000}) for n in range(1, 101))
    return [encode(Report(sent_at=time.time(), node=HOSTILE, stream=f"l{n}", after=0, runs=runs)) for n in range(4)]


def presences() -> list[bytes]:
    return [encode(Presence(sent_at=time.time(), node=HOSTILE, online=n % 2 == 0)) for n in range(200)]


def inventories() -> list[bytes]:
    machines = (Inventory(machine_type=f"m{n}", software={"x": "y" * 200}) for n in range(100))
    return [
        encode(InventoryReport(sent_at=time.time(), node=HOSTILE, inventory=it, checks=(), plugins=()))
        for it in machines
    ]


def garbage() -> list[bytes]:
    return [b'{"schema":1,"id":"x","kind":"' + b"[" * 500] * 200


FLOODS = {
    "small-reports": (NodeTopic.REPORT, small_reports),
    "large-reports": (NodeTopic.REPORT, large_reports),
    "presences": (NodeTopic.PRESENCE, presences),
    "inventories": (NodeTopic.INVENTORY, inventories),
    "garbage": (NodeTopic.GROUP, garbage),
}


@contextmanager
def flooding(port: int, topic: NodeTopic, payloads: list[bytes], directory: Path) -> Iterator[None]:
    """Floods while the context lasts."""
    file = directory / "payloads"
    file.write_bytes(b"\n".join(payloads))
    arguments = [str(port), HOSTILE, password_of(HOSTILE), TOPICS.node(HOSTILE, topic), str(file)]
    with subprocess.Popen([sys.executable, FLOOD, *arguments]) as process:
        try:
            yield
            assert process.poll() is None, "the flood has ended by itself"
        finally:
            process.kill()


class Probe:
    """An honest node whose reports are timed, from their publication until the API tells them."""

    def __init__(self, world: World) -> None:
        self._url = world.url
        self._node = Attacker(world.broker.port, PROBE)
        self._node.join()
        self._stream = f"probe-{time.time_ns()}"
        self._number = 0

    def latencies_s(self) -> list[float]:
        """Of PROBES reports, sorted."""
        with urllib.request.urlopen(f"{self._url}/api/v1/events", timeout=60) as events:
            return sorted(self._one(events) for _ in range(PROBES))

    def _one(self, events: Any) -> float:
        time.sleep(EVERY_S)
        self._number += 1
        run = run_of(PROBE, self._number)
        report = Report(sent_at=time.time(), node=PROBE, stream=self._stream, after=self._number - 1, runs=(run,))
        payload = encode(report)
        again = threading.Timer(AGAIN_S, lambda: self._node.shout(NodeTopic.REPORT, payload))
        again.start()
        began = time.perf_counter()
        self._node.shout(NodeTopic.REPORT, payload)
        for line in events:
            if line.startswith(b"data: ") and json.loads(line[6:]).get("id") == run.id:
                again.cancel()
                return time.perf_counter() - began
        raise AssertionError("the event stream has ended")

    def leave(self) -> None:
        self._node.leave()


def percentile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]


def memory(world: World) -> int:
    info = psutil.Process(world.coordinator.pid).memory_full_info()
    return int(info.uss)


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_harms_nobody_else(world, kind, tmp_path, eventually, record_property):
    """Others' reports are served nearly as fast as before, memory stays bounded, and only the flooder is accused."""
    eventually(lambda: not world.accused(), "everybody to be well")
    topic, payloads = FLOODS[kind]
    Attacker(world.broker.port).join()
    probe = Probe(world)
    probe.latencies_s()  # warms up
    quiet = probe.latencies_s()
    before = memory(world)
    with flooding(world.broker.port, topic, payloads(), tmp_path):
        time.sleep(2.0)
        flooded = probe.latencies_s()
        peak = memory(world)
        accused = world.accused()
        held = [finding["code"] for finding in world.api.get("nodes", HOSTILE)["findings"]]
    probe.leave()
    figures = {
        "p50_ms": [round(statistics.median(it) * 1000, 1) for it in (quiet, flooded)],
        "p99_ms": [round(percentile(it, 0.99) * 1000, 1) for it in (quiet, flooded)],
        "more_mib": round((peak - before) / 2**20, 1),
    }
    record_property("figures", figures)
    print(kind, figures)
    assert accused == []
    assert "agent.flooding" in held
    assert peak - before < 64 << 20
