"""Rebuilds the evidence about nodes from their last runs, once, after an upgrade from a release that did not store it.

The runs of all nodes are compared in the order in which they began, as when they arrived. That takes time in proportion
to the runs; see `evidence_records` for what every later restart does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from muster.model import Run
from muster_coordinator.evidence.health import held_findings
from muster_coordinator.evidence.node import Node
from muster_coordinator.model.baseline_commands import EraseBaseline
from muster_coordinator.normal.baselines import ComparedRun


def rebuild(
    nodes: Mapping[str, Node],
    outdated: Set[str],
    runs: Iterable[Run],
    observe: Callable[[Run, float], ComparedRun],
    now: float,
) -> tuple[set[str], list[EraseBaseline]]:
    """Adds the runs of the `outdated` ones of all nodes to their evidence.

    Returns the nodes whose evidence has to be stored, and the baselines to delete; all others are stored again.
    """
    due: set[str] = {*outdated}
    erased: list[EraseBaseline] = []
    for run in _counting({name: nodes[name] for name in outdated}, runs):
        node = nodes[run.node]
        node.evidence.add(run, node.uuids)
        compared = observe(run, min(run.started_at, now))
        for (name, subject), findings in held_findings(compared.held, run, lambda name: nodes[name].uuids).items():
            nodes[name].evidence.compare(subject, findings)
            due.add(name)
        erased += [command for command in compared.commands if isinstance(command, EraseBaseline)]
    return due, erased


def _counting(nodes: Mapping[str, Node], runs: Iterable[Run]) -> Iterator[Run]:
    """The runs of these nodes, without those from before a node was forgotten."""
    for run in runs:
        node = nodes.get(run.node)
        if node is not None and run.started_at - (node.clock.ahead_s or 0.0) >= node.forgotten_at:
            yield run
