"""Who listens to the API gets what happens, in order."""

import asyncio

from tests.coordinator.web.messages import report

from muster.model import Run, Verdict
from muster_coordinator.events import Announce
from muster_coordinator.stream import WAITING, Stream


async def read_events(response, count):
    events: list[dict[str, str]] = []
    event: dict[str, str] = {}
    while len(events) < count:
        key, _, value = (await response.content.readline()).decode().rstrip("\n").partition(": ")
        if key:
            event[key] = value
        elif "id" in event:
            events.append(event)
            event = {}
        else:
            event = {}
    return events


async def test_events_are_streamed_with_ids(api):
    """A listener gets what happens from now on, in order; with an id, what came after it too."""
    async with api.session.get(f"{api.url}/api/v1/events") as response:
        assert response.content_type == "text/event-stream"
        await api.feed(report("n1", 1, 2, 3))
        told = [event for event in await read_events(response, 3) if event["event"] == "run"]
        ids = [event["id"] for event in told]
    async with api.session.get(f"{api.url}/api/v1/events", headers={"Last-Event-ID": ids[0]}) as response:
        assert [event["id"] for event in await read_events(response, 2)][: len(ids) - 1] == ids[1:]


async def test_a_listener_that_leaves_is_forgotten(api):
    """Nothing is kept for who has gone."""
    response = await api.session.get(f"{api.url}/api/v1/events")
    assert api.shell.stream.listeners == 1
    response.close()
    async with asyncio.timeout(20):
        while api.shell.stream.listeners:
            await api.feed(report("n1", 1))
            await asyncio.sleep(0.01)


def test_a_listener_that_is_too_slow_is_cut_off():
    """It gets what waited and then the end; the others notice nothing."""
    stream = Stream(1)
    run = Run(id="r", node="n", check="c", verdict=Verdict.PASS, started_at=1.0, duration_s=1.0)
    with stream.listen(None) as slow:
        for _ in range(WAITING + 1):
            stream.tell(Announce("run", run))
        with stream.listen(f"1-{WAITING - 4}") as other:
            assert stream.listeners == 1
            assert other.qsize() == 5
        waiting = [slow.get_nowait() for _ in range(slow.qsize())]
    assert len(waiting) == WAITING + 1
    assert waiting[-1] is None


def test_ids_of_another_coordinator_mean_nothing():
    """After a restart a listener starts from now."""
    stream = Stream(2)
    run = Run(id="r", node="n", check="c", verdict=Verdict.PASS, started_at=1.0, duration_s=1.0)
    stream.tell(Announce("run", run))
    with stream.listen("1-0") as queue:
        assert queue.empty()
