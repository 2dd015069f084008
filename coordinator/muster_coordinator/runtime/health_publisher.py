"""Publishes the health of nodes to plugins: changes at once, and each node every few minutes as a heartbeat.

It makes no decision, so it runs in every mode. If a plugin could not take a report, the report is sent again: changes
after a pause that grows to half a minute and after newer changes, heartbeats with the next round. When every plugin has
said that it shows no health, they are not called again.
"""

import asyncio
from collections.abc import Callable, Sequence

from muster.backoff import backoff_s
from muster.node_health import NodeHealthReport
from muster.plugins import Plugins
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.views.node_health import health_report

HOOK = "muster_node_health"

AT_ONCE = 100
"""Maximum number of nodes in one call. A plugin that writes two hundred a second finishes within a second."""

HEARTBEAT_S = 300.0
"""Seconds between two heartbeats of a node.

Each is a write to the database of Kubernetes. Its kubelets (nodeStatusReportFrequency) and node-problem-detector
(--k8s-exporter-heartbeat-period) write the status of a node as often by default.
"""

TIMEOUT_S = 60.0
"""Timeout of one call in seconds."""

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 30.0


class HealthPublisher:
    """`names` are the nodes of the fleet; `view` returns one of them, None if it no longer exists."""

    def __init__(
        self,
        plugins: Plugins,
        every_s: float,
        *,
        names: Callable[[], Sequence[str]],
        view: Callable[[str], NodeView | None],
        clock: Callable[[], float],
    ) -> None:
        self._plugins = plugins
        self._every_s = every_s
        self._names = names
        self._view = view
        self._clock = clock
        self._is_wanted = bool(plugins.implementing(HOOK))
        self._changed: dict[str, NodeHealthReport] = {}  # reports that wait to be sent
        self._taken: dict[str, NodeHealthReport] = {}  # the last report of each node that every plugin has taken
        self._news = asyncio.Event()

    def note(self, view: NodeView) -> None:
        """Queues the present health of a node if it has changed."""
        if not self._is_wanted:
            return
        report, before = health_report(view, self._clock()), self._taken.get(view.name)
        if before is not None and report == before.model_copy(update={"at": report.at}):
            self._changed.pop(view.name, None)
        else:
            self._changed[view.name] = report
            self._news.set()

    async def run(self) -> None:
        """Sends reports to plugins. Does not return, unless no plugin has the hook."""
        if not self._is_wanted:
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._publish_changes(), name="changes of health")
            group.create_task(self._beat(), name="heartbeats of health")

    async def _publish_changes(self) -> None:
        failures = 0
        while True:
            await self._news.wait()
            reports = [self._changed.pop(name) for name in list(self._changed)[:AT_ONCE]]
            if await self._publish(reports):
                failures = 0
            else:
                failures += 1
                self._changed |= {report.node: report for report in reports if report.node not in self._changed}
                await asyncio.sleep(backoff_s(failures, FIRST_RETRY_S, LONGEST_RETRY_S))
            if not self._changed:
                self._news.clear()

    async def _beat(self) -> None:
        """Sends heartbeats; the first round at once, because reports from before this start may be wrong by now."""
        await self._send_round(0.0)
        while self._is_wanted:
            await self._send_round(self._every_s)

    async def _send_round(self, within_s: float) -> None:
        """Sends a heartbeat of each node, evenly over the time, because others need the scheduler's API, too."""
        now, names = asyncio.get_running_loop().time, self._names()
        begun = now()
        calls = range(0, len(names), AT_ONCE)
        for number, start in enumerate(calls, 1):
            await asyncio.sleep(begun + number * within_s / len(calls) - now())
            views = (self._view(name) for name in names[start : start + AT_ONCE])
            there = [view for view in views if view is not None and not view.left]
            await self._publish([health_report(view, self._clock()) for view in there])
            if not self._is_wanted:
                return
        known = set(self._names())
        self._taken = {name: report for name, report in self._taken.items() if name in known}
        await asyncio.sleep(max(0.0, begun + within_s - now()))

    async def _publish(self, reports: Sequence[NodeHealthReport]) -> bool:
        """Whether every plugin has taken the reports."""
        if not reports:
            return True
        for report in reports:  # until the plugins have answered, every report about the node counts as a change
            self._taken.pop(report.node, None)
        answers = await self._plugins.call_each(HOOK, TIMEOUT_S, reports=tuple(reports))
        if any(answer.error for answer in answers):
            return False
        self._is_wanted = not all(answer.value is False for answer in answers)
        for report in reports:
            if report.at >= self._taken.get(report.node, report).at:  # a change may overtake a heartbeat
                self._taken[report.node] = report
        return True
