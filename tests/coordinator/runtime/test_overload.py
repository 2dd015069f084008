"""A link that gets more reports than its coordinator can take, over a real broker."""

import asyncio
import time

from tests.coordinator.runtime.test_link import TOPICS, client, eventually, linked_to, presence

from muster.model import Run, Verdict
from muster.wire.codec import encode
from muster.wire.messages import Report
from muster.wire.topics import NodeTopic
from muster_coordinator.model.events import PresenceSeen, ReportSeen
from muster_coordinator.model.load import LoadSeen

REPORT_S = 0.01
"""How long the coordinator takes for a report."""

NODES = 60
TIMES = 3
LASTS_S = 4.0


def report(node: str, seq: int, *, urgent: bool = False) -> bytes:
    run = Run(
        id=f"{node}-{seq}", node=node, check="gemm", verdict=Verdict.PASS, started_at=1.0, duration_s=1.0, seq=seq
    )
    return encode(Report(sent_at=1.0, node=node, stream="s", after=seq - 1, through=seq, urgent=urgent, runs=(run,)))


async def test_it_works_at_full_speed_and_hears_what_is_urgent(mosquitto):
    """Three times as many reports come as it can take. It defers the rest, and says so."""
    taken: dict[tuple[str, int], float] = {}
    heard: dict[str, float] = {}
    loads = []

    async def deliver(batch):
        for event in batch:
            if isinstance(event, ReportSeen):
                await asyncio.sleep(REPORT_S)
                taken[event.message.node, event.message.runs[0].seq] = time.monotonic()
            elif isinstance(event, PresenceSeen):
                heard[event.message.node] = time.monotonic()
            elif isinstance(event, LoadSeen):
                loads.append(event.load)

    async with client(mosquitto.url) as nodes, linked_to(deliver, mosquitto.url) as link:
        began = time.monotonic()
        seq = 0
        while (passed := time.monotonic() - began) < LASTS_S:
            if seq < TIMES * passed / REPORT_S:
                seq += 1
                node = f"n{seq % NODES}"
                await nodes.publish(TOPICS.node(node, NodeTopic.REPORT), report(node, seq))
            else:
                await asyncio.sleep(0.001)
        sent_at = time.monotonic()
        await nodes.publish(TOPICS.node("n7", NodeTopic.REPORT), report("n7", seq + 1, urgent=True))
        await nodes.publish(TOPICS.node("quiet", NodeTopic.PRESENCE), encode(presence("quiet")))
        await eventually(lambda: ("n7", seq + 1) in taken)
        assert taken["n7", seq + 1] - sent_at < 2.0
        await eventually(lambda: "quiet" in heard)
        assert heard["quiet"] - sent_at < 3.0
        deferred = link.meter.deferred
        await eventually(lambda: len(taken) + deferred == seq + 1)
    in_time = sum(1 for at in taken.values() if at - began < LASTS_S)
    assert in_time > 0.8 * LASTS_S / REPORT_S
    assert deferred > 0.3 * seq
    assert max(load.lag_s for load in loads) > 1.0
    assert max(load.deferred_per_s for load in loads) > 0
