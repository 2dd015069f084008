"""Long answers are made in slices."""

import asyncio
from collections.abc import Sequence

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from muster_coordinator.model.nodes import NodeGone
from muster_coordinator.store.paging import make_cursor
from muster_coordinator.web.answers import answer_in_slices, in_slices
from muster_coordinator.web.requests import PageQuery


@pytest.mark.parametrize(
    ("turn_s", "expected"),
    [
        (0.0, ["slice of 2", "other", "slice of 2", "other", "slice of 1", "other"]),
        (3600.0, ["slice of 2", "slice of 2", "slice of 1"]),
    ],
)
async def test_others_get_their_turn_after_slices_that_take_long(
    monkeypatch: pytest.MonkeyPatch, turn_s: float, expected: list[str]
) -> None:
    """Between two of them, whatever waits runs; and all is made in order."""
    monkeypatch.setattr("muster_coordinator.web.answers.TURN_S", turn_s)
    happened: list[str] = []

    async def other() -> None:
        while True:
            happened.append("other")
            await asyncio.sleep(0)

    def made(some: Sequence[int]) -> list[int]:
        happened.append(f"slice of {len(some)}")
        return [-each for each in some]

    running = asyncio.create_task(other())
    found = await in_slices([1, 2, 3, 4, 5], 2, made)
    running.cancel()
    assert found == [-1, -2, -3, -4, -5]
    assert happened == expected


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("turn_s", [0.0, 3600.0])
@pytest.mark.parametrize(
    ("limit", "gone", "expected"),
    [
        (100, set(), range(35)),
        (100, set(range(12)), range(12, 35)),
        (100, set(range(35)), ()),
        (20, {3, 19}, [number for number in range(19) if number != 3]),
    ],
)
async def test_pages_are_sent_in_slices(
    monkeypatch: pytest.MonkeyPatch, turn_s: float, limit: int, gone: set[int], expected: Sequence[int]
) -> None:
    """The parts together are one page, without what has gone since the request, and with the next cursor."""
    monkeypatch.setattr("muster_coordinator.web.answers.TURN_S", turn_s)
    keys = [(f"node-{number:02}",) for number in range(35)]

    def show(name: str) -> NodeGone | None:
        return None if int(name[-2:]) in gone else NodeGone(name=name)

    async def nodes(_: web.Request) -> web.Response:
        return answer_in_slices(keys, PageQuery(limit=limit), show)

    app = web.Application()
    app.router.add_get("/", nodes)
    async with TestClient(TestServer(app)) as client, client.get("/") as response:
        page = await response.json()
    assert [item["name"] for item in page["items"]] == [f"node-{number:02}" for number in expected]
    assert page["next_cursor"] == (None if limit >= len(keys) else make_cursor(*keys[limit - 1]))
