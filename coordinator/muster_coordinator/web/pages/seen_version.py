"""The version of the fleet that a page shows, so that it takes what changed before it listened to changes."""

from aiohttp import web

from muster_coordinator.runtime.changes import ChangeStream
from muster_coordinator.web.pages.response import HTML

SLOT = b'data-seen=""'
"""Where the version stands in the frame of pages. No text of a node can contain it: it would be escaped."""


def with_seen_version(route: web.RouteDef, changes: ChangeStream) -> web.RouteDef:
    """The route, whose pages say what version of the fleet they show at least."""

    async def handler(request: web.Request) -> web.StreamResponse:
        seen = changes.id  # before the page is made: what changes meanwhile may be in it or not
        response: web.StreamResponse = await route.handler(request)
        if isinstance(response, web.Response) and response.content_type == HTML and isinstance(response.body, bytes):
            response.body = response.body.replace(SLOT, f'data-seen="{seen}"'.encode(), 1)
        return response

    return web.RouteDef(route.method, route.path, handler, route.kwargs)
