"""How the HTTP server ends."""

import asyncio
import socket

import pytest
from aiohttp import web

from muster.connections import Connections
from muster.garbage import no_collection
from muster.http_server import application, listening_socket, serving

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def greeting():
    """An application that answers each request."""

    async def greet(_request):
        return web.Response(text="hello")

    app = application(Connections("api", 10))
    app.router.add_get("/", greet)
    return app


@pytest.mark.parametrize("turns", range(6))
async def test_a_client_that_comes_as_the_server_ends_is_not_left_waiting(turns):
    """Whether it was accepted, taken in or neither: it is disconnected, or answered by this server or the next one."""
    with no_collection(), listening_socket("127.0.0.1:0") as listener, socket.socket() as client:
        async with serving(greeting(), listener.dup()):
            await asyncio.sleep(0)  # the server listens
            client.settimeout(10)
            client.connect(listener.getsockname())
            client.sendall(REQUEST)
            for _ in range(turns):
                await asyncio.sleep(0)
        async with serving(greeting(), listener.dup()):
            answer = await asyncio.to_thread(client.recv, 1024)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 200 OK")
