"""Routes about many nodes at once: lists of nodes, groups of them, and their histories."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from muster_coordinator.model.history import MetricHistory
from muster_coordinator.model.nodes import NodeSummary, NodeView
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.store.history import history, require_measured_by_any
from muster_coordinator.store.paging import Page
from muster_coordinator.store.store import Store
from muster_coordinator.topology.selection import parse_selection
from muster_coordinator.views.node_order import NAME, grouped, sort_key
from muster_coordinator.views.node_summary import node_summary
from muster_coordinator.web.answers import (
    LOOKED_AT,
    answer,
    answer_in_slices,
    answer_large,
    cut,
    in_slices,
    page,
)
from muster_coordinator.web.requests import GroupsQuery, HistoriesQuery, OrderedNodesQuery, query


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeListApi:
    """The parts of the coordinator that the routes use."""

    pipeline: Pipeline
    store: Store

    async def nodes(self, request: web.Request) -> web.Response:
        """The nodes, or those that `select` chooses, in the order of `sort`."""
        wanted = query(request, OrderedNodesQuery)
        return await self._answer_nodes(wanted, self.pipeline.fleet.node)

    async def node_summaries(self, request: web.Request) -> web.Response:
        """What a list shows of each node, or of those that `select` chooses, in the order of `sort`."""
        wanted = query(request, OrderedNodesQuery)
        return await self._answer_nodes(wanted, self._summary)

    async def node_groups(self, request: web.Request) -> web.Response:
        """The nodes, or those that `select` chooses, counted in groups of the same value of `by`."""
        wanted, fleet = query(request, GroupsQuery), self.pipeline.fleet
        candidates = await in_slices(await self._names(wanted.select), LOOKED_AT, fleet.candidates)
        groups = await asyncio.to_thread(grouped, candidates, wanted.by)
        return answer(page(groups, lambda group: group.value or "", str, wanted, lambda group: group))

    async def histories(self, request: web.Request) -> web.Response:
        """One metric of many nodes over time, or of those that `select` chooses, by node."""
        wanted, database = query(request, HistoriesQuery), self.store.database
        names, cursor = cut(await self._names(wanted.select), lambda name: (name,), wanted, [str])
        found = [
            MetricHistory(node=name, points=(await history(database, wanted.filter(name), wanted.points, None)).items)
            for name in names
        ]
        if wanted.cursor is None and cursor is None and not any(each.points for each in found):
            await require_measured_by_any(database, [wanted.filter(name) for name in names])
        return await answer_large(Page(items=tuple(found), next_cursor=cursor))

    async def _answer_nodes(
        self, wanted: OrderedNodesQuery, view: Callable[[str, float], NodeView | NodeSummary | None]
    ) -> web.Response:
        names, now = await self._names(wanted.select), self.pipeline.clock()

        def show(name: str) -> NodeView | NodeSummary | None:
            return view(name, now)

        if wanted.sort == NAME:
            return answer_in_slices([(name,) for name in names], wanted, show)
        key = sort_key(wanted.sort)
        candidates = await in_slices(names, LOOKED_AT, self.pipeline.fleet.candidates)
        keys = await asyncio.to_thread(lambda: sorted(map(key, candidates)))
        return answer_in_slices(keys, wanted, show, (int, str, str))

    async def _names(self, select: str | None) -> Sequence[str]:
        fleet = self.pipeline.fleet
        if select is None:
            return fleet.names
        selection = parse_selection(select)
        candidates = await in_slices(fleet.names, LOOKED_AT, fleet.candidates)
        chosen = await asyncio.to_thread(selection.fitting, candidates, fleet.declared)
        return chosen.nodes

    def _summary(self, name: str, now: float) -> NodeSummary | None:
        view = self.pipeline.fleet.node(name, now)
        return None if view is None else node_summary(view)
