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
from muster_coordinator.node import Node

Announced = tuple[tuple[str, Worse], ...]
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


class ComparedMetrics:
    """By check, the metrics that most nodes have compared, with what is worse. Every run asks."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[Announced]] = defaultdict(Counter)
        self._usual: dict[str, Mapping[str, Worse]] = {}

    def replace(self, before: Iterable[CheckInfo], after: Iterable[CheckInfo]) -> None:
        """Notes what a node announces now, and what it announced before."""
        gone, new = list(map(_announced, before)), list(map(_announced, after))
        for name, announced in gone:
            self._counts[name][announced] -= 1
        for name, announced in new:
            self._counts[name][announced] += 1
        for name in {name for name, _ in (*gone, *new)}:
            counts = self._counts[name] = +self._counts[name]
            self._usual[name] = dict(max(counts, key=lambda metrics: (counts[metrics], metrics))) if counts else {}

    def of(self, check: str) -> Mapping[str, Worse]:
        """What is compared of a check."""
        return self._usual.get(check, {})


def _announced(check: CheckInfo) -> tuple[str, Announced]:
    return check.name, tuple(check.compared.items())
