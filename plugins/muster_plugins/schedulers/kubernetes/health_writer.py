"""Writes the health of nodes into their conditions."""

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from muster import NodeHealthReport
from muster.errors import Unavailable
from muster_plugins.schedulers.kubernetes.api_error import Absent, ApiError, Conflict, Forbidden, Invalid
from muster_plugins.schedulers.kubernetes.calls import PATCH_STATUS
from muster_plugins.schedulers.kubernetes.client import KubernetesClient
from muster_plugins.schedulers.kubernetes.conditions import conditions
from muster_plugins.schedulers.kubernetes.marks import has_opted_out
from muster_plugins.schedulers.kubernetes.node import KubernetesNode, Metadata, Status
from muster_plugins.schedulers.kubernetes.patches import Form, Patch
from muster_plugins.schedulers.kubernetes.settings import KubernetesActorSettings

_MOST_REFUSALS = 3
"""After this number of refusals the server is in trouble, and this round of writes ends.

Refusals that concern only one node do not count: a policy of the cluster may protect a node for any length of time.
"""

log = structlog.get_logger()


@dataclass(slots=True)
class _Known:
    """The stored state of a node: its identity, its conditions, and the report that was written last."""

    node: KubernetesNode
    has_opted_out: bool
    report: NodeHealthReport | None = None


class HealthWriter:
    """Writes one node after the other. Reports may come late; a report that is older than the last one changes nothing.

    It remembers nodes from surveys and from its own writes, so that a heartbeat is one request.
    """

    def __init__(self, client: KubernetesClient, settings: KubernetesActorSettings) -> None:
        self._client = client
        self._settings = settings
        self._known: dict[str, _Known] = {}
        self._turn = asyncio.Lock()
        self._refused: set[str] = set()  # the nodes whose last write was refused for reasons of their own

    def note(self, nodes: Collection[KubernetesNode]) -> list[NodeHealthReport]:
        """Stores the state of all nodes. Returns the last report of each that was created again under its name.

        These have lost their conditions.
        """
        before, self._known = self._known, {}
        self._refused &= {node.name for node in nodes}
        lost: list[NodeHealthReport] = []
        for node in nodes:
            last = before.get(node.name)
            self._remember(node, last.report if last else None)
            if last and last.report and last.node.metadata.uid != node.metadata.uid:
                lost.append(last.report)
        return lost

    async def write(self, reports: Iterable[NodeHealthReport]) -> None:
        """Writes all that can be written. Raises Unavailable, with the first refusal, if the server was in trouble."""
        refusals: list[ApiError] = []
        for report in reports:
            async with self._turn:
                try:
                    await self._write(report)
                    self._refused.discard(report.node)
                except Absent:
                    self._known.pop(report.node, None)
                except (Forbidden, Invalid) as error:
                    self._note_refused(report.node, error)
                except ApiError as error:
                    refusals.append(error)
            if len(refusals) == _MOST_REFUSALS:
                break
        if refusals:
            raise Unavailable(f"conditions of nodes: {refusals[0]}")

    def _note_refused(self, node: str, error: ApiError) -> None:
        """Logs a refusal, unless this or another node was refused before and still is."""
        if not self._refused:
            log.warning("condition_refused", node=node, reason=str(error), note="logged once for all nodes")
        self._refused.add(node)

    async def _write(self, report: NodeHealthReport) -> None:
        """Writes by the stored state of the node; if a new node has its name, by the new node's state."""
        if (known := self._known.get(report.node)) is not None:
            with suppress(Conflict, Invalid):
                return await self._patch(known, report)
        node = await self._client.node(report.node)
        return await self._patch(self._remember(node, None), report)

    async def _patch(self, known: _Known, report: NodeHealthReport) -> None:
        if known.has_opted_out or (known.report is not None and report.at < known.report.at):
            return
        before = {condition.type: condition for condition in known.node.status.conditions}
        wanted = conditions(report, before, by_component=self._settings.component_conditions)
        rest = {"status": {"conditions": wanted}}
        patch = Patch(call=PATCH_STATUS, form=Form.APPLY, says="conditions", guarded=False, rest=rest)
        self._remember(await self._client.patch(known.node, patch), report)

    def _remember(self, node: KubernetesNode, report: NodeHealthReport | None) -> _Known:
        """Stores the node without the fields of other writers, which take most of the memory."""
        metadata = Metadata(name=node.name, uid=node.metadata.uid, resourceVersion=node.metadata.version)
        slim = KubernetesNode(metadata=metadata, status=Status(conditions=node.status.conditions))
        known = self._known[node.name] = _Known(slim, has_opted_out(node, self._settings), report)
        return known
