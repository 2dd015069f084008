"""How the HTTP server ends."""

import asyncio
import socket

import pytest
from aiohttp import web

from muster.connections import Connections
from muster.garbage import no_collection
from muster.http_server import application, listening_socket, serving

pytestmark = pytest.mark.usefixtures("live")

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def greet(_request):
    return web.Response(text="hello")


async def answer_never(_request):
    await asyncio.Event().wait()


def serving_with(handler, listener):
    app = application(Connections("api", 10))
    app.router.add_get("/", handler)
    return serving(app, listener.dup())


@pytest.fixture
def listener():
    with listening_socket("127.0.0.1:0") as it:
        yield it


@pytest.fixture
def client(listener):
    """A client that has sent a request; the kernel has taken it, whether or not a server listens."""
    with socket.create_connection(listener.getsockname(), timeout=10) as it:
        it.sendall(REQUEST)
        yield it


@pytest.mark.parametrize("turns", range(6))
async def test_a_client_that_comes_as_the_server_ends_is_not_left_waiting(listener, client, turns):
    """Whether it was accepted, taken in or neither: it is disconnected, or answered by this server or the next one."""
    with no_collection():
        async with serving_with(greet, listener):
            for _ in range(turns):
                await asyncio.sleep(0)
        async with serving_with(greet, listener):
            answer = await asyncio.to_thread(client.recv, 1024)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 200 OK")


async def test_a_server_that_is_cancelled_twice_leaves_no_client_waiting(listener, client):
    """As when a coordinator loses its lock and its database at once. Its first end waits for the answer."""
    waits = asyncio.Event()

    async def serve():
        async with serving_with(answer_never, listener):
            await asyncio.sleep(0.1)
            waits.set()
            await asyncio.Event().wait()

    with no_collection():
        task = asyncio.create_task(serve())
        await waits.wait()
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.1)
        assert task.done()
        assert await asyncio.to_thread(client.recv, 1024) == b""
