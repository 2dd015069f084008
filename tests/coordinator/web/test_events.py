"""Who listens to the API gets what happens, in order."""

import asyncio
import json
import tracemalloc
from contextlib import ExitStack
from functools import partial

import pytest
from tests.coordinator.web.messages import report

from muster.model import Run, Verdict
from muster_coordinator.model.events import Announce
from muster_coordinator.runtime.stream import CATCH_UP_S, CHUNK_BYTES, MOST_LISTENERS, REMEMBERED, Stream
from muster_coordinator.web.server_sent_events import BURST


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


async def test_events_in_quick_succession_are_sent_together(api):
    """In order and without a loss; the first ones are sent at once, each by itself."""
    events = 40 * BURST
    async with api.session.get(f"{api.url}/api/v1/events") as response:
        for number in range(events):
            api.shell.stream.publish(Announce("run", RUN.model_copy(update={"id": f"r{number}"})))
            await asyncio.sleep(0.001)
        text, writes = b"", 0
        async for data, ends_write in response.content.iter_chunks():
            text, writes = text + data, writes + ends_write
            if text.count(b"event: run") == events:
                break
    ids = [json.loads(line[len("data: ") :])["id"] for line in text.decode().splitlines() if line.startswith("data: ")]
    assert ids == [f"r{number}" for number in range(events)]
    assert 1 < writes < events / 4


async def test_a_listener_that_leaves_is_forgotten(api):
    """Nothing is kept for who has gone."""
    response = await api.session.get(f"{api.url}/api/v1/events")
    assert api.shell.stream.listeners == 1
    response.close()
    async with asyncio.timeout(20):
        while api.shell.stream.listeners:
            await api.feed(report("n1", 1))
            await asyncio.sleep(0.01)


RUN = Run(id="r", node="n", check="c", verdict=Verdict.PASS, started_at=1.0, duration_s=1.0)


def never():
    raise AssertionError("was cut off")


async def rest(listener):
    """All that a listener can read without waiting, and whether the stream has ended."""
    parts: list[bytes] = []
    while True:
        try:
            async with asyncio.timeout(0):
                part = await listener.take()
        except TimeoutError:
            part = b""
        if not part:
            return b"".join(parts), part is None
        parts.append(part)


def ids(frames):
    return [line.removeprefix("id: ") for line in frames.decode().splitlines() if line.startswith("id: ")]


async def test_a_listener_that_is_too_slow_is_cut_off():
    """When its next event is no longer in the log; other listeners are not affected."""
    stream, cut = Stream(1), []
    with stream.listen(None, lambda: cut.append("slow")) as slow:
        for _ in range(REMEMBERED):
            stream.publish(Announce("run", RUN))
        assert cut == []
        with stream.listen(f"1-{REMEMBERED - 5}", never) as other:
            stream.publish(Announce("run", RUN))
            assert (cut, stream.listeners) == (["slow"], 1)
            assert ids((await rest(other))[0]) == [f"1-{REMEMBERED - 4 + n}" for n in range(6)]
        assert await rest(slow) == (b"", True)
    with stream.listen("1-0", never) as returned:
        assert b"event: reset" in (await rest(returned))[0]


async def test_the_log_of_events_is_bounded_in_bytes(monkeypatch):
    """Large events replace earlier ones; the last event is kept at any size."""
    monkeypatch.setattr("muster_coordinator.runtime.stream.REMEMBERED_BYTES", 10_000)
    stream = Stream(1)
    with stream.listen(None, lambda: None) as listener:
        for number in range(100):
            stream.publish(Announce("run", RUN.model_copy(update={"id": f"{number}" + "x" * 999})))
        with stream.listen("1-95", never) as other:
            assert len((await rest(other))[0]) < 10_000
        assert await rest(listener) == (b"", True)
        stream.publish(Announce("run", RUN.model_copy(update={"id": "x" * 20_000})))
        with stream.listen("1-100", never) as other:
            assert ids((await rest(other))[0]) == ["1-101"]


async def test_listeners_share_one_log():
    """An event is kept once, however many listeners have not read it."""
    stream = Stream(1)
    with ExitStack() as listening:
        for _ in range(MOST_LISTENERS):
            listening.enter_context(stream.listen(None, never))
        tracemalloc.start()
        for number in range(1_000):
            stream.publish(Announce("run", RUN.model_copy(update={"id": f"{number}" + "x" * 999})))
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert used < 2_000_000


async def test_one_listener_too_many_cuts_off_the_oldest():
    """Silent listeners cannot keep a new one out."""
    stream, cut = Stream(1), list[int]()
    with ExitStack() as listening:
        for number in range(MOST_LISTENERS + 2):
            listening.enter_context(stream.listen(None, partial(cut.append, number)))
        assert (cut, stream.listeners) == ([0, 1], MOST_LISTENERS)


async def test_a_client_with_many_listeners_keeps_out_nobody_but_itself():
    """However many it opens, the other clients keep theirs, and a new client finds room."""
    stream, cut = Stream(1), list[str]()

    def listen(client: str) -> None:
        listening.enter_context(stream.listen(None, partial(cut.append, client), client))

    with ExitStack() as listening:
        for client in ["operator", "page", *["greedy"] * 3 * MOST_LISTENERS, "late", "page"]:
            listen(client)
        assert stream.listeners == MOST_LISTENERS
    assert set(cut) == {"greedy"}


async def test_without_listeners_events_are_not_kept():
    """Except for a minute after the last listener has left, because it may come back."""
    now = 0.0
    stream = Stream(1, lambda: now)
    stream.publish(Announce("run", RUN))
    with stream.listen("1-0", never) as listener:
        assert b"event: reset" in (await rest(listener))[0]
    stream.publish(Announce("run", RUN))
    with stream.listen("1-1", never) as listener:
        assert ids((await rest(listener))[0]) == ["1-2"]
    now = CATCH_UP_S
    stream.publish(Announce("run", RUN))
    with stream.listen("1-1", never) as listener:
        assert b"event: reset" in (await rest(listener))[0]
        stream.publish(Announce("run", RUN))
        assert ids((await rest(listener))[0]) == ["1-4"]


async def test_waiting_events_are_sent_together():
    """One chunk has many small events, or one large one."""
    stream = Stream(1)
    with stream.listen(None, never) as listener:
        for _ in range(10):
            stream.publish(Announce("run", RUN))
        assert len(ids(await listener.take())) == 10
        for _ in range(3):
            stream.publish(Announce("run", RUN.model_copy(update={"id": "x" * CHUNK_BYTES})))
        assert len(ids(await listener.take())) == 1


async def test_the_end_comes_after_the_last_event():
    """A closed stream lets its listeners read the rest."""
    stream = Stream(1)
    with stream.listen(None, never) as listener:
        stream.publish(Announce("run", RUN))
        stream.close()
        frames, is_over = await rest(listener)
        assert (ids(frames), is_over) == (["1-1"], True)


@pytest.mark.parametrize("last_id", ["1-0", "2", "2-", "-1", "2-x", "2-99", "2--1", "2-\u0663", "2-" + "9" * 5000])
async def test_an_unknown_last_event_id_is_answered_with_a_reset(last_id):
    """If it is from another coordinator, from the future or invented, events may be missing. New ones follow."""
    stream = Stream(2)
    with stream.listen(None, never):
        stream.publish(Announce("run", RUN))
        with stream.listen(last_id, never) as listener:
            assert await rest(listener) == (b"id: 2-1\nevent: reset\ndata: {}\n\n", False)
            stream.publish(Announce("run", RUN))
            assert ids((await rest(listener))[0]) == ["2-2"]


@pytest.mark.parametrize("last_id", [None, "", "2-1"])
async def test_a_listener_that_has_missed_nothing_gets_no_reset(last_id):
    """Without an id it wants new events only."""
    stream = Stream(2)
    with stream.listen(None, never):
        stream.publish(Announce("run", RUN))
        with stream.listen(last_id, never) as listener:
            assert await rest(listener) == (b"", False)
