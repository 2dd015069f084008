"""The routes for those who look at the whole fleet: lists of nodes, snapshot and changes, and the login."""

from http import HTTPStatus

from aiohttp import hdrs

from muster_coordinator.model.fleet_columns import FleetSnapshot
from muster_coordinator.model.history import MetricHistory
from muster_coordinator.model.nodes import NodeSummary, NodeView
from muster_coordinator.store.paging import Page
from muster_coordinator.views.node_order import NodeGroup
from muster_coordinator.web.answers import Working
from muster_coordinator.web.guard import LOGIN
from muster_coordinator.web.handlers import ROOT
from muster_coordinator.web.login import SessionApi, SessionView
from muster_coordinator.web.node_lists import NodeListApi
from muster_coordinator.web.requests import ChangesQuery, GroupsQuery, HistoriesQuery, NewSession, OrderedNodesQuery
from muster_coordinator.web.route import EVENTS, IF_NONE_MATCH, Route
from muster_coordinator.web.viewers import ViewerApi

GET, POST, DELETE = hdrs.METH_GET, hdrs.METH_POST, hdrs.METH_DELETE

NODE_LIST_ROUTES: tuple[Route[NodeListApi], ...] = (
    Route(
        name="list_nodes",
        method=GET,
        path=f"{ROOT}/nodes",
        handler=NodeListApi.nodes,
        query=OrderedNodesQuery,
        answers=Page[NodeView],
    ),
    Route(
        name="list_node_summaries",
        method=GET,
        path=f"{ROOT}/fleet/nodes",
        handler=NodeListApi.node_summaries,
        query=OrderedNodesQuery,
        answers=Page[NodeSummary],
    ),
    Route(
        name="list_node_groups",
        method=GET,
        path=f"{ROOT}/fleet/groups",
        handler=NodeListApi.node_groups,
        query=GroupsQuery,
        answers=Page[NodeGroup],
    ),
    Route(
        name="list_histories",
        method=GET,
        path=f"{ROOT}/history",
        handler=NodeListApi.histories,
        query=HistoriesQuery,
        answers=Page[MetricHistory],
    ),
)

VIEWER_ROUTES: tuple[Route[ViewerApi], ...] = (
    Route(
        name="get_snapshot",
        method=GET,
        path=f"{ROOT}/snapshot",
        handler=ViewerApi.snapshot,
        reads={IF_NONE_MATCH: "The ETag of the snapshot that the client has"},
        answers=FleetSnapshot,
        sends={"ETag": "The epoch and version of the snapshot"},
    ),
    Route(
        name="listen_to_changes",
        method=GET,
        path=f"{ROOT}/changes",
        handler=ViewerApi.follow,
        query=ChangesQuery,
        reads={"Last-Event-ID": "The id of the last event that arrived; what changed since is sent first"},
        answers={EVENTS: None},
    ),
)

SESSION_ROUTES: tuple[Route[SessionApi], ...] = (
    Route(
        name="log_in",
        method=POST,
        path=LOGIN,
        handler=SessionApi.log_in,
        body=NewSession,
        status=HTTPStatus.CREATED,
        answers=SessionView,
        sends={"Set-Cookie": "The session, for a browser"},
        errors=(HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS),
    ),
    Route(name="get_session", method=GET, path=LOGIN, handler=SessionApi.session, answers=SessionView),
    Route(name="log_out", method=DELETE, path=LOGIN, handler=SessionApi.log_out, answers=Working),
)
