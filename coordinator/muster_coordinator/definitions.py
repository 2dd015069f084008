"""What a check is, as most nodes announce it.

Every node announces the checks that it has, and one may announce what is not so: a deadline of a year, another metric
to compare groups by, parameters that others refuse. What concerns several nodes goes by what most of them announce. In
a tie between some nodes the rest of the fleet decides, and what was announced first if that is a tie as well.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from muster.check import CheckInfo, Scope, Worse
from muster.params_schema import rules_of
from muster_coordinator.node import Node, runs_by_itself

Metrics = tuple[tuple[str, Worse], ...]
"""The metrics that a node has compared."""


def are_alike(one: CheckInfo, other: CheckInfo) -> bool:
    """Whether nodes that announce these can be measured together: what they say to people may differ, and deadlines."""
    if (one.scope, one.objective, one.by_rail) != (other.scope, other.objective, other.by_rail):
        return False
    return one.params == other.params or rules_of(one.params) == rules_of(other.params)


def different(check: str) -> str:
    """Why a node cannot take part in what others do with the check, behind its name."""
    return f"its check {check} differs from most nodes'"


def usual_check(name: str, some: Iterable[Node], fleet: Iterable[Node]) -> CheckInfo:
    """The check as most of `some` nodes announce it, all of which have it, with the deadline and cost in their middle.

    `fleet` are all nodes that there are.
    """
    kinds = _kinds(node.checks[name] for node in some)
    most = max(map(len, kinds))
    kinds = [kind for kind in kinds if len(kind) == most]
    if len(kinds) > 1:
        others = [node.checks[name] for node in fleet if name in node.checks]
        kinds.sort(key=lambda kind: -sum(are_alike(kind[0], other) for other in others))
    usual = kinds[0]
    costs = [check.cost_s for check in usual if check.cost_s is not None]
    middle = {
        "timeout_s": statistics.median_low(check.timeout_s for check in usual),
        "cost_s": statistics.median_low(costs) if costs else None,
    }
    return usual[0].model_copy(update=middle)


def like_most(nodes: Iterable[Node], name: str) -> list[Node]:
    """Those of the nodes, which all have the check, that announce it as most of them do."""
    nodes = list(nodes)
    if not nodes:
        return []
    usual = usual_check(name, nodes, ())
    return [node for node in nodes if are_alike(node.checks[name], usual)]


def usual_scope(name: str, nodes: Iterable[Node]) -> Scope | None:
    """The scope that most of the nodes that have the check announce for it; None when none has it."""
    scopes = Counter(check.scope for node in nodes if (check := node.checks.get(name)) is not None)
    return max(scopes, key=lambda scope: (scopes[scope], scope)) if scopes else None


def _kinds(checks: Iterable[CheckInfo]) -> list[list[CheckInfo]]:
    """The checks, those that are alike together."""
    kinds: list[list[CheckInfo]] = []
    for check in checks:
        kind = next((kind for kind in kinds if are_alike(kind[0], check)), None)
        if kind is None:
            kinds.append([check])
        else:
            kind.append(check)
    return kinds


class Announcements:
    """What most nodes announce of each check, kept up to date: every run asks."""

    def __init__(self) -> None:
        self._metrics: defaultdict[str, Counter[Metrics]] = defaultdict(Counter)
        self._compared: dict[str, Mapping[str, Worse]] = {}
        self._running: Counter[str] = Counter()

    def replace(self, before: Iterable[CheckInfo], after: Iterable[CheckInfo]) -> None:
        """Notes what a node announces now, and what it announced before."""
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
        """The metrics of a check that are compared, with what is worse."""
        return self._compared.get(check, {})

    def run_by_more_than(self, nodes: float) -> tuple[str, ...]:
        """The checks that more nodes than so many run by themselves."""
        return tuple(sorted(name for name, count in self._running.items() if count > nodes))

    def _count(self, name: str) -> None:
        counts = self._metrics[name] = +self._metrics[name]
        ranked = sorted(counts, key=lambda metrics: (counts[metrics], metrics))
        self._compared[name] = dict(ranked[-1]) if ranked else {}
        if not ranked:
            del self._metrics[name], self._compared[name], self._running[name]


def _metrics(check: CheckInfo) -> Metrics:
    return tuple(check.compared.items())
