"""Routes for viewers of the whole fleet: a snapshot, and the changes since."""

from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import hdrs, web

from muster_coordinator.runtime.changes import ChangeStream
from muster_coordinator.web.requests import ChangesQuery, NoQuery, query
from muster_coordinator.web.server_sent_events import ALIVE, send_events


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerApi:
    """The part of the coordinator that the routes use."""

    changes: ChangeStream

    async def snapshot(self, request: web.Request) -> web.Response:
        """The whole fleet in columns, one list for each field; small enough for every viewer of a large fleet."""
        query(request, NoQuery)
        made = await self.changes.snapshot()
        headers = {hdrs.ETAG: f'W/"{made.id}"', hdrs.CACHE_CONTROL: "private, no-cache"}
        headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING
        if any(tag.value == made.id for tag in request.if_none_match or ()):
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        body = made.body
        if "gzip" in request.headers.get(hdrs.ACCEPT_ENCODING, ""):
            body, headers[hdrs.CONTENT_ENCODING] = made.compressed, "gzip"
        return web.Response(body=body, content_type="application/json", charset="utf-8", headers=headers)

    async def follow(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events for viewers that have a snapshot: `change` has the nodes that changed since, as they are.

        There are at most four in a second. `reset` says that a new snapshot is needed, of its version or later. After
        15 s without any of them comes `alive`.
        """
        wanted = query(request, ChangesQuery)
        last_id = request.headers.get("Last-Event-ID") or wanted.since
        return await send_events(request, lambda *of_client: self.changes.watch(last_id, *of_client), ALIVE)
