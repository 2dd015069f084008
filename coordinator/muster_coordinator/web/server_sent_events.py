"""Server-sent events: a connection that gets every event.

A listener that does not read is disconnected like any client that keeps the server waiting (`muster.connections`), or
earlier when it falls behind the log of the stream. Written by hand, because aiohttp-sse has no such limits.
"""

import asyncio
import socket

from aiohttp import web

from muster_coordinator.runtime.stream import Listener, Stream

QUIET_S = 15.0
"""A comment is sent after this much silence, so that both ends notice when the other one is gone."""

UNSENT_BYTES = 64 << 10
"""The kernel's send buffer for one listener. With its default, a silent listener is noticed only after megabytes."""


async def send_events(request: web.Request, stream: Stream) -> web.StreamResponse:
    """Sends the stream until either side ends it; `Last-Event-ID` first requests the events after that one."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    transport = request.transport
    if transport is None:  # the client has disconnected already
        return response
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSENT_BYTES)
    await response.prepare(request)
    with stream.listen(request.headers.get("Last-Event-ID"), transport.abort) as listener:
        frames: bytes | None = b": listening\n\n"  # sends the headers at once
        while frames is not None and not transport.is_closing():
            await response.write(frames)
            frames = await _next(listener)
    return response


async def _next(listener: Listener) -> bytes | None:
    """The next events, or a comment after QUIET_S of silence; None when the stream has ended."""
    try:
        async with asyncio.timeout(QUIET_S):
            return await listener.take()
    except TimeoutError:
        return b": still here\n\n"
