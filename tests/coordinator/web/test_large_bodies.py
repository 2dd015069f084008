"""Large bodies take turns, and rest."""

import asyncio
import time
from typing import Any

import pytest
from aiohttp import web
from tests.coordinator.web.acceptances import acceptance, sent

from muster.connections import Connections
from muster.http_server import CONNECTIONS
from muster_coordinator.web.guard import ACCEPTANCE
from muster_coordinator.web.large_bodies import AT_ONCE, MOST_WAITING, LargeBodies
from muster_coordinator.web.problems import Problem


class Body:
    """A request whose body arrives when it may."""

    app = {CONNECTIONS: Connections("api", 1)}
    transport = None

    def __init__(self):
        self.may_arrive = asyncio.Event()
        self.is_waited_for = False

    def clone(self, **_):
        return self

    async def read(self):
        self.is_waited_for = True
        await self.may_arrive.wait()


async def turns(times=20):
    for _ in range(times):
        await asyncio.sleep(0)


async def test_few_are_in_memory_and_a_slow_one_delays_no_other():
    """The others wait for room, not for the slow ones to be read."""
    bodies, sent_in, done = LargeBodies(9), [Body() for _ in range(AT_ONCE + 2)], []

    async def take(body):
        async with bodies.taken(body):
            done.append(body)

    tasks = [asyncio.create_task(take(body)) for body in sent_in]
    await turns()
    assert [body.is_waited_for for body in sent_in] == [True] * AT_ONCE + [False] * 2
    sent_in[AT_ONCE - 1].may_arrive.set()
    await turns()
    assert (done, sent_in[AT_ONCE].is_waited_for) == ([sent_in[AT_ONCE - 1]], True)
    for body in sent_in:
        body.may_arrive.set()
    await asyncio.gather(*tasks)
    assert len(done) == len(sent_in)


async def test_who_comes_when_many_wait_is_sent_away():
    """Otherwise slow senders would hold a connection each, and in the end all that there are."""
    bodies, sent_in = LargeBodies(9), [Body() for _ in range(AT_ONCE + MOST_WAITING)]

    async def take(body):
        async with bodies.taken(body):
            pass

    tasks = [asyncio.create_task(take(body)) for body in sent_in]
    await turns()
    with pytest.raises(Problem, match="100 reports wait already") as refused:
        await take(Body())
    assert refused.value.status == 503
    for body in sent_in:
        body.may_arrive.set()
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("is_refused", [False, True])
async def test_after_a_large_one_there_is_a_rest(monkeypatch, is_refused):
    """As long as said, in which others have their turn; also if it was refused."""
    rests: list[float] = []

    async def rest_for(seconds):
        rests.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", rest_for)
    body: Any = Body()
    body.may_arrive.set()
    try:
        async with LargeBodies(9).taken(body):
            time.sleep(0.1)
            if is_refused:
                raise web.HTTPBadRequest
    except web.HTTPBadRequest:
        assert is_refused
    (rest,) = rests
    assert rest >= 3 * 0.08


async def test_small_reports_of_a_whole_fleet_need_no_rest(api):
    """A hundred at once are there in a second or two."""
    bodies = [sent(acceptance(f"n{number}")) for number in range(100)]
    answers = await asyncio.gather(*(api.ask("POST", ACCEPTANCE, json=body) for body in bodies))
    assert {response.status for response, _ in answers} == {201}
