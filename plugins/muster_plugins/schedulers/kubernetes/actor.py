"""Acts on transitions in Kubernetes, and surveys its nodes."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from muster import ActionOutcome, Effect, Mark, NodeHealthReport, SchedulerNode, Survey, Transition
from muster.errors import Unavailable
from muster_plugins.schedulers.kubernetes.api_error import Absent, ApiError, Conflict
from muster_plugins.schedulers.kubernetes.calls import OF_THE_COORDINATOR
from muster_plugins.schedulers.kubernetes.client import KubernetesClient
from muster_plugins.schedulers.kubernetes.connection import Connection
from muster_plugins.schedulers.kubernetes.event import event
from muster_plugins.schedulers.kubernetes.health_writer import HealthWriter
from muster_plugins.schedulers.kubernetes.marks import (
    describe_others_mark,
    has_opted_out,
    is_incomplete,
    is_new,
    mark_owner,
    our_mark,
    why_left,
)
from muster_plugins.schedulers.kubernetes.node import KubernetesNode
from muster_plugins.schedulers.kubernetes.others_taints import TaintKind, keeps_off, ordinary_kinds
from muster_plugins.schedulers.kubernetes.patches import patches
from muster_plugins.schedulers.kubernetes.planned_departure import leaving
from muster_plugins.schedulers.kubernetes.request_rate import RateLimiter
from muster_plugins.schedulers.kubernetes.settings import KubernetesActorSettings, KubernetesSettings

_NOTHING = "nothing to change"

_TRIES = 4
"""Attempts to change a node. Others may change it in between, and each such change costs one attempt:

Kubernetes, which taints a node that is cordoned; our own write of the condition, for the same finding; and one more.
"""

_MOST_RESTORED = 100
"""Nodes whose conditions one survey writes again, so that it ends soon. The others wait for their heartbeats."""


class Actor:
    """The actor of one coordinator. It stays connected until it is closed.

    Drains do not wait for their turn: the quarantine's own budget limits how many nodes are drained in a minute.
    """

    def __init__(self, settings: KubernetesSettings) -> None:
        self._settings = settings.actor
        self._gpu_resources = settings.gpu_resources
        self._connection = Connection(settings)
        pace = RateLimiter(settings.actor.requests_per_s)
        self._client = KubernetesClient(self._connection, pace.wait)
        self._urgent_client = KubernetesClient(self._connection, pace.go_first)
        self._health = HealthWriter(self._client, settings.actor)

    async def close(self) -> None:
        await self._connection.close()

    async def survey(self) -> Survey:
        """All nodes, with the state that the coordinator needs. Raises Unavailable if the nodes cannot be listed."""
        nodes = await self._client.nodes()
        lost = self._health.note(nodes)
        with suppress(Unavailable):  # the heartbeats write them, too
            await self._health.write(lost[:_MOST_RESTORED])
        allowed = await asyncio.gather(*map(self._client.may, OF_THE_COORDINATOR))
        missing = [str(call) for call, is_allowed in zip(OF_THE_COORDINATOR, allowed, strict=True) if not is_allowed]
        ordinary = ordinary_kinds(nodes, self._gpu_resources)
        name = f"Kubernetes at {self._connection.server}"
        return Survey(
            summary=name,
            can_cordon=not missing,
            problem=f"{name} does not let us {', '.join(missing)}: grant it by RBAC" if missing else None,
            nodes=tuple(scheduler_node(node, ordinary, self._settings) for node in nodes),
        )

    async def show_health(self, reports: Iterable[NodeHealthReport]) -> None:
        """Writes conditions. Raises Unavailable if some could not be written."""
        await self._health.write(reports)

    async def act(self, transition: Transition) -> ActionOutcome:
        """Brings the node to the state of the transition, or says why it cannot."""
        done: list[str] = []
        try:
            return await self._act_despite_conflicts(transition, done)
        except Absent:
            return ActionOutcome(effect=Effect.LEFT, detail=f"Kubernetes has no node {transition.node}")
        except Unavailable as error:
            wait_s = error.retry_after_s if isinstance(error, ApiError) else None
            detail = f"node {transition.node}: {'; '.join([*done, str(error)])}"
            return ActionOutcome(effect=Effect.FAILED, detail=detail, retry_after_s=wait_s)

    async def _act_despite_conflicts(self, transition: Transition, done: list[str]) -> ActionOutcome:
        """If somebody has changed the node meanwhile, decides again from its new state, a few times."""
        for _ in range(_TRIES - 1):
            with suppress(Conflict):
                return await self._act(transition, done)
        return await self._act(transition, done)

    async def _act(self, transition: Transition, done: list[str]) -> ActionOutcome:
        client = self._urgent_client if transition.is_out else self._client
        node = await client.node(transition.node)
        if why := why_left(node, transition, self._settings):
            return ActionOutcome(effect=Effect.LEFT, detail=f"node {node.name} {why}")
        missing = patches(node, transition, self._settings)
        if transition.dry_run:
            would = "; ".join(patch.says for patch in missing) or _NOTHING
            return ActionOutcome(effect=Effect.WOULD, detail=f"would patch node {node.name}: {would}")
        for patch in missing:
            node = await client.patch(node, patch)
            done.append(patch.says)
        try:
            await client.create_event(event(node, transition))
        except Unavailable as error:  # the node is as it should be, and an Event only reports it
            done.append(f"no Event: {error}")
        return _outcome(node, transition, done)


def _outcome(node: KubernetesNode, transition: Transition, done: list[str]) -> ActionOutcome:
    """The outcome, from the node's state at the API server."""
    if node.spec.unschedulable and not transition.is_out:
        done.append(f"but it is {describe_others_mark(node)}, too")
        return ActionOutcome(effect=Effect.LEFT, detail=f"node {node.name}: {'; '.join(done)}")
    return ActionOutcome(effect=Effect.DONE, detail=f"node {node.name}: {'; '.join(done) or _NOTHING}")


def scheduler_node(
    node: KubernetesNode, ordinary: frozenset[TaintKind], settings: KubernetesActorSettings
) -> SchedulerNode:
    """The state of one node in Kubernetes; `ordinary` taints do not count."""
    mark, ours = mark_owner(node, settings), our_mark(node, settings)
    return SchedulerNode(
        node=node.name,
        mark=mark,
        is_new=is_new(node, settings),
        registration=node.metadata.uid,
        transition=ours.transition if ours else None,
        incomplete=mark is Mark.OURS and is_incomplete(node, settings),
        detail=describe_others_mark(node) if mark is Mark.FOREIGN else "",
        opted_out=has_opted_out(node, settings),
        leaving=leaving(node),
        keeps_off=keeps_off(node, ordinary, settings),
        labels=node.metadata.labels,
    )
