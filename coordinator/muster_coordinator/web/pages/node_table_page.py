"""The page of the table of nodes, and the method that makes it."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

from aiohttp import web
from pydantic import Field

from muster.errors import Refused
from muster_coordinator.topology.selection_term import Candidate
from muster_coordinator.views.node_order import URGENCY
from muster_coordinator.views.pages.group_lines import GroupLine, group_keys, group_lines
from muster_coordinator.views.pages.node_table import (
    BACKWARDS,
    NodeTable,
    TableAddress,
    TableLine,
    TablePart,
    in_order,
    table_line,
    table_part,
)
from muster_coordinator.views.pages.page_row import condition_counts
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.response import page_response, root_of
from muster_coordinator.web.pages.templates import render
from muster_coordinator.web.requests import MOST_KEY, MOST_SELECTION, Request, query


class NodeTableQuery(Request):
    """The nodes to show: selection, sort key and key of groups are those of the API. Empty fields count as none."""

    select: str = Field("", max_length=MOST_SELECTION)
    sort: str = Field("", max_length=MOST_KEY + len(BACKWARDS))
    group: str = Field("", max_length=MOST_KEY)
    page: int = Field(1, ge=1, le=1_000_000)

    def address(self) -> TableAddress:
        return TableAddress(
            select=self.select.strip() or None,
            sort=self.sort.strip() or URGENCY,
            group=self.group.strip() or None,
            page=self.page,
        )


class NodeTablePage:
    """Makes the page of what `reader` reads."""

    def __init__(self, reader: FleetReader) -> None:
        self._reader = reader

    def routes(self) -> list[web.RouteDef]:
        """The page."""
        return [web.get("/nodes", self.nodes)]

    async def nodes(self, request: web.Request) -> web.Response:
        """The nodes, or groups of them, as a table; a request that is not valid is explained above an empty one."""
        address = query(request, NodeTableQuery).address()
        chosen: Sequence[Candidate] = ()
        part: TablePart[TableLine] | TablePart[GroupLine] = table_part((), 1)
        refused = ""
        try:
            chosen = await self._reader.chosen(address.select)
            part = await self._part(chosen, address)
        except Refused as error:
            refused = str(error)
        fleet, is_current = self._reader.pipeline.fleet, self._reader.is_current
        table = NodeTable(
            at=self._reader.pipeline.clock(),
            address=address,
            nodes=len(fleet.names),
            found=0 if refused else len(chosen),
            counts={} if refused else condition_counts(chosen, is_current=is_current),
            part=part,
            group_keys=group_keys(chosen),
            refused=refused,
        )
        html = await asyncio.to_thread(
            render, "nodes", root=root_of(request), fleet=fleet.name, is_current=is_current, table=table
        )
        return page_response(html, HTTPStatus.UNPROCESSABLE_ENTITY if refused else HTTPStatus.OK)

    async def _part(
        self, nodes: Sequence[Candidate], address: TableAddress
    ) -> TablePart[TableLine] | TablePart[GroupLine]:
        is_current = self._reader.is_current
        ordered = await asyncio.to_thread(in_order, nodes, address.sort)
        if address.group is not None:
            groups = await asyncio.to_thread(group_lines, nodes, address.group, address.select, is_current=is_current)
            return table_part(groups, address.page)
        shown = table_part(ordered, address.page)
        rows = await self._reader.rows([node.name for node in shown.items])
        return shown.showing([table_line(row, is_current=is_current) for row in rows])
