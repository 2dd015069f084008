"""Server-sent events: one connection that hears whatever happens."""

import asyncio

from aiohttp import web

from muster_coordinator.stream import Queue, Stream

QUIET_S = 15.0
"""A comment is sent after this much silence, so that both ends notice when the other is gone."""

STALLED_S = 30.0
"""A listener that takes nothing for so long is cut off."""


async def send_events(request: web.Request, stream: Stream) -> web.StreamResponse:
    """Sends the stream until either side ends; `Last-Event-ID` asks for what came after that event first."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    with stream.listen(request.headers.get("Last-Event-ID")) as queue:
        frame: bytes | None = b": listening\n\n"  # sends the headers at once
        try:
            while frame is not None:
                async with asyncio.timeout(STALLED_S):
                    await response.write(frame)
                frame = await _next_frame(queue)
        except (ConnectionError, TimeoutError):
            if request.transport is not None:
                request.transport.abort()
    return response


async def _next_frame(queue: Queue) -> bytes | None:
    try:
        async with asyncio.timeout(QUIET_S):
            told = await queue.get()
    except TimeoutError:
        return b": still here\n\n"
    return None if told is None else told.frame
