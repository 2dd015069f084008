"""The tests that the quarantine requests: a run of the node alone, or a sweep of the node with healthy partners.

The outcome of each test goes to the registry as news for the quarantine.
"""

from muster.check import Scope
from muster.errors import Refused
from muster.model import Name, Verdict
from muster_coordinator.evidence.definitions import are_alike, different, usual_scope
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.events import FleetCommand, RunRequested, SweepRequested
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.quarantine import OUT
from muster_coordinator.model.quarantine_events import LEAST_PARTNERS, StartTest, TestEnded
from muster_coordinator.model.sweep_records import SweepRecord, SweepRequest
from muster_coordinator.sweeps.partners import draw_partners
from muster_coordinator.sweeps.recovery import RESTARTED
from muster_coordinator.sweeps.registry import SweepRegistry
from muster_coordinator.sweeps.requests import order_run

TEST_OF = "test of "
"""The beginning of the origin of a sweep that tests the node named after it."""


class NodeTests:
    """Starts the tests of nodes and reports how they ended."""

    def __init__(self, registry: NodeRegistry, orders: Orders, sweeps: SweepRegistry) -> None:
        self._registry = registry
        self._orders = orders
        self._sweeps = sweeps
        self._sweep_of_test: dict[str, str] = {}  # the node of each sweep that was requested as a test
        self._unheard: dict[str, list[StartTest]] = {}  # tests of online nodes that were not heard since the start

    def restore(self, now: float) -> list[FleetCommand]:
        """Ends the sweeps that an earlier coordinator began as tests: their nodes are tested again."""
        self._unheard = {name: [] for name, node in self._registry.nodes.items() if node.online}
        plans = [sweep.plan for sweep in self._sweeps.running.values()]
        old = [plan.id for plan in plans if plan.origin.startswith(TEST_OF)]
        return [command for sweep in old for command in self._sweeps.abort(sweep, RESTARTED, now)]

    def hear(self, node: str, now: float) -> list[FleetCommand]:
        """Starts the tests that waited for a sign of life: a node that is not connected loses an order."""
        return [command for wanted in self._unheard.pop(node, ()) for command in self.start(wanted, now)]

    def lose(self, node: str) -> None:
        """Ends the tests that waited for a node that is lost. They say nothing about the node."""
        for wanted in self._unheard.pop(node, ()):
            self._end(wanted.node, wanted.test, Verdict.UNKNOWN)

    def start(self, wanted: StartTest, now: float) -> list[FleetCommand]:
        """Starts a test. A test that cannot start ends UNKNOWN, and the node's story says why."""
        if wanted.node in self._unheard:
            self._unheard[wanted.node].append(wanted)
            return []
        try:
            return self._begin(wanted, now)
        except Refused as refused:
            self._end(wanted.node, wanted.test, Verdict.UNKNOWN)
            text = f"could not start {wanted.check}: {refused}"
            return [self._registry.story.tell(wanted.node, "test", text, wanted.test, now)]

    def note_ended_sweeps(self) -> None:
        """Reports what the sweeps that have ended say about the nodes that they tested."""
        for sweep in sorted(self._sweep_of_test.keys() - self._sweeps.running.keys()):
            node = self._sweep_of_test.pop(sweep)
            self._end(node, sweep, _verdict_on(node, self._sweeps.record(sweep)))

    def _begin(self, wanted: StartTest, now: float) -> list[FleetCommand]:
        nodes = self._registry.nodes
        node = nodes[wanted.node]
        if wanted.check not in node.checks or usual_scope(wanted.check, nodes.values()) is Scope.NODE:
            request = RunRequested(wanted.test, wanted.node, wanted.check, wanted.params)
            return order_run(request, self._registry, self._orders, now)
        out = {name for name, other in nodes.items() if other.service in OUT}
        partners = draw_partners(node, nodes, wanted.check, wanted.partners, seed=wanted.test, without=out)
        if partners and not are_alike(node.checks[wanted.check], partners[0].checks[wanted.check]):
            raise Refused(different(wanted.check))
        names = (wanted.node, *(other.name for other in partners))
        # Without a strategy, the sweep would take it from the check's scope, which a lone node announces itself. Such a
        # node could choose to be tested without partners.
        sweep = SweepRequest(check=wanted.check, params=wanted.params, strategy=Strategy.ADAPTIVE, nodes=names)
        begun = self._sweeps.begin(SweepRequested(wanted.test, sweep, f"{TEST_OF}{wanted.node}"), now)
        self._sweep_of_test[wanted.test] = wanted.node
        return begun

    def _end(self, node: str, test: str, verdict: Verdict) -> None:
        self._registry.news.note_test_ended(TestEnded(node=node, test=test, verdict=verdict))


def _was_compared(record: SweepRecord) -> bool:
    """Whether enough partners have taken part to show what is slow: all of them, or as many as are needed."""
    there = [node for node in record.nodes if node not in record.absent]
    return not record.absent or len(there) > LEAST_PARTNERS


def _verdict_on(node: Name, record: SweepRecord | None) -> Verdict:
    """What a sweep says about one of its nodes."""
    if record is not None and node in record.cleared_nodes and _was_compared(record):
        return Verdict.PASS
    if record is not None and any(failed.node == node for failed in record.failed_nodes):
        return Verdict.FAIL
    return Verdict.UNKNOWN
