"""The definition of a check that most nodes announce.

Every node announces the checks that it has, and a node may lie: it announces a deadline of a year, another metric to
compare groups by, or parameters that others refuse. For work of several nodes the coordinator uses the definition that
most of them announce. In a tie the rest of the fleet decides, then the order of the nodes.

Example: of five nodes, three announce `objective = bus_gbps` and two `objective = latency_us`. The sweep compares by
`bus_gbps`, and the two take no part. Finding the definition takes time in proportion to the nodes times the different
definitions.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from muster.check import CheckInfo, Scope, Worse
from muster.params_schema import rules_of
from muster_coordinator.evidence.announced_checks import runs_by_itself
from muster_coordinator.evidence.node import Node

JudgedMetrics = tuple[tuple[str, Worse], ...]
"""The compared metrics of a check, as a node announces them."""


def are_alike(one: CheckInfo, other: CheckInfo) -> bool:
    """Whether nodes with these definitions can run the check together; deadlines and texts for people may differ."""
    if (one.scope, one.objective, one.by_rail) != (other.scope, other.objective, other.by_rail):
        return False
    return one.params == other.params or rules_of(one.params) == rules_of(other.params)


def different(check: str) -> str:
    """The reason why a node with another definition of the check cannot take part."""
    return f"its definition of check {check} differs from that of most nodes"


def usual_check(name: str, nodes: Iterable[Node], fleet: Iterable[Node]) -> CheckInfo:
    """The check as most of `nodes` announce it, with the median of their deadlines and costs.

    Each of `nodes` has the check. `fleet` are all nodes; they decide a tie.
    """
    kinds = _kinds(node.checks[name] for node in nodes)
    most = max(map(len, kinds))
    kinds = [kind for kind in kinds if len(kind) == most]
    if len(kinds) > 1:
        others = [node.checks[name] for node in fleet if name in node.checks]
        kinds.sort(key=lambda kind: -sum(are_alike(kind[0], other) for other in others))
    usual = kinds[0]
    costs = [check.cost_s for check in usual if check.cost_s is not None]
    medians = {
        "timeout_s": statistics.median_low(check.timeout_s for check in usual),
        "cost_s": statistics.median_low(costs) if costs else None,
    }
    return usual[0].model_copy(update=medians)


def like_most(nodes: Iterable[Node], name: str) -> list[Node]:
    """The nodes that announce the check as most of them do. Each of `nodes` has the check."""
    nodes = list(nodes)
    if not nodes:
        return []
    usual = usual_check(name, nodes, ())
    return [node for node in nodes if are_alike(node.checks[name], usual)]


def usual_scope(name: str, nodes: Iterable[Node]) -> Scope | None:
    """The scope that most nodes announce for the check; None when no node has it."""
    scopes = Counter(check.scope for node in nodes if (check := node.checks.get(name)) is not None)
    return max(scopes, key=lambda scope: (scopes[scope], scope)) if scopes else None


def _kinds(checks: Iterable[CheckInfo]) -> list[list[CheckInfo]]:
    """The checks in groups: those in one group are alike."""
    kinds: list[list[CheckInfo]] = []
    for check in checks:
        kind = next((kind for kind in kinds if are_alike(kind[0], check)), None)
        if kind is None:
            kinds.append([check])
        else:
            kind.append(check)
    return kinds


class Announcements:
    """The definition that most nodes announce of each check, kept up to date because every run needs it."""

    def __init__(self) -> None:
        self._metrics: defaultdict[str, Counter[JudgedMetrics]] = defaultdict(Counter)
        self._compared: dict[str, Mapping[str, Worse]] = {}
        self._running: Counter[str] = Counter()

    def restore(self, announced: Iterable[Iterable[CheckInfo]]) -> None:
        """Restores the announcements of all nodes."""
        for checks in announced:
            for check in checks:
                self._running[check.name] += runs_by_itself(check)
                self._metrics[check.name][_metrics(check)] += 1
        for name in [*self._metrics]:
            self._count(name)

    def replace(self, before: Iterable[CheckInfo], after: Iterable[CheckInfo]) -> None:
        """Replaces the announcement of a node."""
        gone, new = list(before), list(after)
        self._running.subtract(check.name for check in gone if runs_by_itself(check))
        self._running.update(check.name for check in new if runs_by_itself(check))
        for check in gone:
            self._metrics[check.name][_metrics(check)] -= 1
        for check in new:
            self._metrics[check.name][_metrics(check)] += 1
        for name in {check.name for check in (*gone, *new)}:
            self._count(name)

    def compared(self, check: str) -> Mapping[str, Worse]:
        """The compared metrics of a check, each with the direction that is worse."""
        return self._compared.get(check, {})

    def run_by_more_than(self, nodes: float) -> tuple[str, ...]:
        """The checks that more than `nodes` nodes run in the background."""
        return tuple(sorted(name for name, count in self._running.items() if count > nodes))

    def _count(self, name: str) -> None:
        counts = self._metrics[name] = +self._metrics[name]
        ranked = sorted(counts, key=lambda metrics: (counts[metrics], metrics))
        self._compared[name] = dict(ranked[-1]) if ranked else {}
        if not ranked:
            del self._metrics[name], self._compared[name], self._running[name]


def _metrics(check: CheckInfo) -> JudgedMetrics:
    return tuple(check.compared.items())
