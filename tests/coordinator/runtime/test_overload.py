"""A link that gets more reports than its coordinator can take, over a real broker."""

import asyncio
import time

from tests.coordinator.runtime.test_link import TOPICS, client, eventually, linked_to, presence

from muster.model import Run, Verdict
from muster.wire.codec import encode
from muster.wire.messages import Report
from muster.wire.topics import NodeTopic
from muster_coordinator.model.events import PresenceSeen, ReportSeen
from muster_coordinator.model.load import LoadSeen, ReportInvited
from muster_coordinator.runtime.inbox import CHUNK

REPORT_S = 0.02
"""How long the coordinator takes for a report: so long that any machine sends more."""

NODES = 60
TIMES = 3
LASTS_S = 4.0

SOON = 20
"""Reports that may be taken between sending and taking an urgent one: two turns, and what comes meanwhile."""


def report(node: str, seq: int, *, urgent: bool = False) -> bytes:
    run = Run(
        id=f"{node}-{seq}", node=node, check="gemm", verdict=Verdict.PASS, started_at=1.0, duration_s=1.0, seq=seq
    )
    return encode(Report(sent_at=1.0, node=node, stream="s", after=seq - 1, through=seq, urgent=urgent, runs=(run,)))


async def test_it_defers_what_it_cannot_take_and_hears_what_is_urgent(mosquitto):
    """Three times as many reports come as it can take. A new failure and a heartbeat overtake what waits."""
    taken: list[str] = []
    loads = []
    deferred: set[str] = set()

    async def deliver(batch):
        for event in batch:
            if isinstance(event, ReportSeen):
                await asyncio.sleep(REPORT_S)
                taken.append(event.message.runs[0].id)
            elif isinstance(event, PresenceSeen):
                taken.append(event.message.node)
            elif isinstance(event, LoadSeen):
                loads.append(event.load)
                deferred.update(event.deferred)

    async with client(mosquitto.url) as nodes, linked_to(deliver, mosquitto.url) as link:
        began, seq = time.monotonic(), 0
        while (passed := time.monotonic() - began) < LASTS_S:
            if seq < TIMES * passed / REPORT_S:
                seq += 1
                node = f"n{seq % NODES}"
                await nodes.publish(TOPICS.node(node, NodeTopic.REPORT), report(node, seq))
            else:
                await asyncio.sleep(0.001)
        before = len(taken)
        await nodes.publish(TOPICS.node("n7", NodeTopic.REPORT), report("n7", seq + 1, urgent=True))
        await nodes.publish(TOPICS.node("quiet", NodeTopic.PRESENCE), encode(presence("quiet")))
        await eventually(lambda: len(taken) + link.meter.deferred == seq + 2)
    assert taken.index(f"n7-{seq + 1}") - before < SOON
    assert taken.index("quiet") - before < NODES + SOON  # it waits for one turn of each node
    assert link.meter.deferred > seq / 10  # the rest waits, or was sent more slowly than was meant
    assert deferred
    assert deferred <= {f"n{number}" for number in range(NODES)}
    assert max(load.deferred_per_s for load in loads) > 0


async def test_nodes_whose_reports_were_deferred_are_invited_when_there_is_time(mosquitto):
    """They send again at once, and all is taken although nobody waits until it is due."""
    names = [f"n{number}" for number in range(4 * CHUNK)]
    taken: set[str] = set()
    invited: asyncio.Queue[str] = asyncio.Queue()

    has_time = asyncio.Event()

    async def deliver(batch):
        for event in batch:
            if isinstance(event, ReportSeen):
                await has_time.wait()
                await asyncio.sleep(REPORT_S / 2)
                taken.add(event.message.node)
            elif isinstance(event, ReportInvited):
                invited.put_nowait(event.node)

    async def answer(nodes):
        while True:
            node = await invited.get()
            await nodes.publish(TOPICS.node(node, NodeTopic.REPORT), report(node, 1))

    async with client(mosquitto.url) as nodes, linked_to(deliver, mosquitto.url) as link:
        answering = asyncio.create_task(answer(nodes))
        for node in names[: 3 * CHUNK]:
            await nodes.publish(TOPICS.node(node, NodeTopic.REPORT), report(node, 1))
        has_time.set()
        await eventually(lambda: len(taken) > CHUNK)  # it knows how long a batch takes, and has 90 more
        has_time.clear()
        for node in names[3 * CHUNK :]:
            await nodes.publish(TOPICS.node(node, NodeTopic.REPORT), report(node, 1))
        has_time.set()
        await eventually(lambda: taken == set(names))
        answering.cancel()
    assert link.meter.deferred > 0


async def test_a_coordinator_that_keeps_up_defers_nothing(mosquitto):
    """However long it was idle before, and although many reports come at once."""
    taken: list[str] = []

    async def deliver(batch):
        taken.extend(event.message.runs[0].id for event in batch if isinstance(event, ReportSeen))

    async with client(mosquitto.url) as nodes, linked_to(deliver, mosquitto.url) as link:
        for seq in range(1, 4):
            await nodes.publish(TOPICS.node("n1", NodeTopic.REPORT), report("n1", seq))
            await asyncio.sleep(0.5)
        for seq in range(1, 2 * CHUNK + 1):
            await nodes.publish(TOPICS.node(f"n{seq}", NodeTopic.REPORT), report(f"n{seq}", seq))
        await eventually(lambda: len(taken) == 2 * CHUNK + 3)
        assert link.meter.deferred == 0
