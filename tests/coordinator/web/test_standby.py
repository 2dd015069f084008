"""What a standby serves: the answers of the leader that there is."""

import asyncio
import contextlib

import pytest
from aiohttp import ClientPayloadError, ClientSession, web
from aiohttp.test_utils import TestServer

from muster.config import HttpSettings
from muster.http_server import serving
from muster_coordinator.web.server import listen
from muster_coordinator.web.standby import PASSED_ON, standby_application


@pytest.fixture
async def leader():
    """An API that says what it got, and one endless answer."""

    async def echo(request):
        said = {name: value for name, value in request.headers.items() if name.startswith("X-") or name == "Host"}
        body = (await request.read()).decode()
        answer = {"method": request.method, "path": request.path_qs, "headers": said, "body": body}
        return web.json_response(answer, status=418, headers={"X-Back": "1", "Set-Cookie": "a=b"})

    async def endless(request):
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            for number in range(1_000):
                await response.write(b"%d\n" % number)
                await asyncio.sleep(0.01)
        return response

    async def cut(request):
        response = web.StreamResponse(headers={"X-Kind": "cut"})
        await response.prepare(request)
        await response.write(b"half")
        request.transport.abort()
        return response

    app = web.Application()
    app.router.add_get("/endless", endless)
    app.router.add_get("/cut", cut)
    app.router.add_route("*", "/{path:.*}", echo)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


class Standby:
    """A standby whose leader the test names."""

    def __init__(self):
        self.leader = None
        self.url = ""


@pytest.fixture
async def standby(request):
    """A standby that serves; its settings may be a parameter."""
    it = Standby()
    listener, it.url = listen("127.0.0.1:0")
    settings = HttpSettings.model_validate(getattr(request, "param", {}))
    async with serving(standby_application(lambda: it.leader, settings), listener):
        yield it


@pytest.fixture
async def client(live):
    """A client that follows nothing by itself."""
    async with ClientSession() as session:
        yield session


async def test_a_request_reaches_the_leader_as_it_is(standby, leader, client):
    """And its answer comes back as it is."""
    standby.leader = leader
    headers = {"X-Mine": "yes", "Host": "fleet.example"}
    async with client.put(f"{standby.url}/a%2Fb?c=%20d", data=b"e", headers=headers, allow_redirects=False) as answer:
        said = await answer.json()
        assert (answer.status, answer.headers["X-Back"], answer.headers["Set-Cookie"]) == (418, "1", "a=b")
    assert (said["method"], said["path"], said["body"]) == ("PUT", "/a%2Fb?c=%20d", "e")
    assert (said["headers"]["X-Mine"], said["headers"]["Host"]) == ("yes", "fleet.example")


@pytest.mark.parametrize(("said", "passed_on"), [({}, "127.0.0.1"), ({"X-Forwarded-For": "a"}, "a, 127.0.0.1")])
async def test_the_leader_learns_who_has_asked(standby, leader, client, said, passed_on):
    """By the addresses in front of the standby."""
    standby.leader = leader
    async with client.get(f"{standby.url}/a", headers=said) as answer:
        assert (await answer.json())["headers"]["X-Forwarded-For"] == passed_on


async def test_an_answer_comes_piece_by_piece(standby, leader, client):
    """Events of a stream do not wait for its end."""
    standby.leader = leader
    async with asyncio.timeout(5), client.get(f"{standby.url}/endless") as answer:
        assert await answer.content.readline() == b"0\n"
        assert await answer.content.readline() == b"1\n"


async def test_an_answer_that_the_leader_does_not_finish_is_not_taken_for_whole(standby, leader, client):
    """The client sees that something is missing."""
    standby.leader = leader
    async with client.get(f"{standby.url}/cut") as answer:
        assert answer.headers["X-Kind"] == "cut"
        with pytest.raises(ClientPayloadError):
            await answer.read()


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:1"])
async def test_nobody_leads(standby, client, url):
    """Or the one who did is gone: 503, and when to ask again."""
    standby.leader = url
    async with client.get(f"{standby.url}/api/v1/fleet") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
        assert "takes over" in (await answer.json())["detail"]


async def test_a_request_goes_on_once(standby, client):
    """A standby that thinks of itself as the leader does not ask itself for ever."""
    standby.leader = standby.url
    async with client.get(f"{standby.url}/api/v1/fleet") as answer:
        assert answer.status == 503


async def test_probes_are_answered_by_the_standby_itself(standby, client):
    """It works, whether anybody leads or not."""
    for path in ("/healthz", "/readyz"):
        async with client.get(standby.url + path) as answer:
            assert (answer.status, await answer.json()) == (200, {"status": "standby", "leader": None})


async def test_metrics_are_those_of_the_standby(standby, leader, client):
    """One that leads says 1. Sums over all coordinators count the fleet once."""
    standby.leader = leader
    async with client.get(f"{standby.url}/metrics") as answer:
        assert [line for line in (await answer.text()).splitlines() if line[0] != "#"] == ["muster_leads 0.0"]


WHO = {"X-Muster-User": "eve", "X-Muster-Role": "operate", "X-Forwarded-Host": "h", "X-Forwarded-Proto": "https"}


@pytest.mark.parametrize(
    ("standby", "passed_on"),
    [({}, {}), ({"token_file": "/t", "trusted_proxies": ["127.0.0.1"]}, WHO)],
    indirect=["standby"],
)
async def test_only_a_trusted_proxy_says_who_has_logged_in(standby, leader, client, passed_on):
    """The leader may trust this standby; so nobody else may use its trust."""
    standby.leader = leader
    async with client.get(f"{standby.url}/x", headers=WHO) as answer:
        said = (await answer.json())["headers"]
    assert {name: said[name] for name in WHO if name in said} == passed_on
    assert said[PASSED_ON] == "1"
