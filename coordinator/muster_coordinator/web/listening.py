"""Server-sent events: one connection that hears whatever happens.

A listener that does not take what is sent is cut off like any client that keeps the server waiting (`connections`), and
before that when it has fallen behind what is remembered.
"""

import asyncio
import socket

from aiohttp import web

from muster_coordinator.stream import Listener, Stream

QUIET_S = 15.0
"""A comment is sent after this much silence, so that both ends notice when the other is gone."""

UNSENT_BYTES = 64 << 10
"""What the kernel may keep for one listener; by itself it would take megabytes before a silent one shows."""


async def send_events(request: web.Request, stream: Stream) -> web.StreamResponse:
    """Sends the stream until either side ends; `Last-Event-ID` asks for what came after that event first."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    transport = request.transport
    if transport is None:  # the client has gone already
        return response
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSENT_BYTES)
    await response.prepare(request)
    with stream.listen(request.headers.get("Last-Event-ID"), transport.abort) as listener:
        told: bytes | None = b": listening\n\n"  # sends the headers at once
        while told is not None and not transport.is_closing():
            await response.write(told)
            told = await _next(listener)
    return response


async def _next(listener: Listener) -> bytes | None:
    try:
        async with asyncio.timeout(QUIET_S):
            return await listener.take()
    except TimeoutError:
        return b": still here\n\n"
