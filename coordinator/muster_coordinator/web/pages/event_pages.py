"""The page of events, and the method that makes it."""

import asyncio
from http import HTTPStatus

from aiohttp import web
from pydantic import Field

from muster.errors import unknown
from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.store.paging import Page
from muster_coordinator.store.recent import timeline
from muster_coordinator.views.pages.event_list import KINDS, PAGE_SIZE, event_list
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.response import page_response, root_of
from muster_coordinator.web.pages.templates import render
from muster_coordinator.web.requests import Request, query

MOST_NAME = 253
"""Characters of the name of a node."""


class EventQuery(Request):
    """The events to show; empty fields of the form count as none."""

    node: str = Field("", max_length=MOST_NAME)
    kind: str = Field("", max_length=MOST_NAME)
    cursor: str | None = None


class EventPages:
    """Makes the page of what `reader` reads."""

    def __init__(self, reader: FleetReader) -> None:
        self._reader = reader

    def routes(self) -> list[web.RouteDef]:
        """The page."""
        return [web.get("/events", self.events)]

    async def events(self, request: web.Request) -> web.Response:
        """What happened in the fleet, the latest first; a filter that is not valid is explained above no events."""
        wanted = query(request, EventQuery)
        node, kind = wanted.node.strip() or None, wanted.kind or None
        refused, found = self._why_refused(node, kind), Page[StoryEntry](items=())
        if not refused:
            found = await timeline(self._reader.store.database, PAGE_SIZE, wanted.cursor, node=node, kind=kind)
        page = event_list(
            found.items,
            at=self._reader.pipeline.clock(),
            node=node,
            kind=kind,
            is_first=wanted.cursor is None,
            next_cursor=found.next_cursor,
            refused=refused,
        )
        html = await asyncio.to_thread(
            render,
            "events",
            root=root_of(request),
            fleet=self._reader.pipeline.fleet.name,
            is_current=self._reader.is_current,
            page=page,
            kinds=KINDS,
        )
        return page_response(html, HTTPStatus.UNPROCESSABLE_ENTITY if refused else HTTPStatus.OK)

    def _why_refused(self, node: str | None, kind: str | None) -> str:
        """Why the filter is not valid; empty if it is."""
        fleet = self._reader.pipeline.fleet
        kinds = [each for of_subject in KINDS.values() for each in of_subject]
        if node is not None and not fleet.remembers(node):
            return unknown("node", node, fleet.names)
        if kind is not None and kind not in kinds:
            return unknown("kind of event", kind, kinds)
        return ""
