"""What else could have made a node's runs bad, and the runs that exclude it."""

from collections.abc import Iterator

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.views.sweeps.case_file import CaseFile
from muster_coordinator.views.sweeps.naming import MOST_NAMES, names


def excluded(case: CaseFile) -> tuple[str, ...]:
    """A sentence for each other explanation that some run excludes."""
    if case.conviction is None:
        return tuple(_explained_by_others(case))
    return (*_node_itself(case), *_fabric(case), *_partners(case))


def _explained_by_others(case: CaseFile) -> Iterator[str]:
    """Bad runs of a node that is not convicted, as far as something else explains them."""
    for run in case.runs:
        culprits = [*case.culprits(run)] if run.charged else []
        if culprits and case.node not in culprits:
            yield f"the bad run {case.how(run, case.node)} is explained by {names(culprits)}"


def _node_itself(case: CaseFile) -> Iterator[str]:
    """Whoever passes alone is bad only by what connects it."""
    alone = next((run for run in case.runs if run.passed and len(run.group.members) == 1), None)
    if alone is not None and case.conviction and case.conviction.part != Part.NODE:
        yield f"{case.node} itself is not to blame: it passed {case.how(alone, case.node)}"


def _fabric(case: CaseFile) -> Iterator[str]:
    """A run alone crosses nothing, and several partners are not behind one link."""
    alone = next((run for run in case.bad_runs if len(run.group.members) == 1), None)
    if alone is not None:
        yield f"no partner, link or switch is to blame: it was bad {case.how(alone, case.node)}"
    partners = list(dict.fromkeys(run.others(case.node)[0] for run in case.bad_runs if len(run.group.members) == 2))
    if len(partners) > 1:
        yield f"no single link or partner is to blame: it was bad with each of {names(partners)}"


def _partners(case: CaseFile) -> Iterator[str]:
    """The partners in its bad runs that passed without it."""
    partners = dict.fromkeys(node for run in case.bad_runs for node in run.others(case.node))
    cleared = set(case.record.cleared_nodes)
    proven = [(node, case.proofs[node]) for node in partners if node in cleared and node in case.proofs]
    for node, proof in proven[:MOST_NAMES]:
        yield f"{node} is not to blame: it passed {case.how(proof, node)}"
    if len(proven) > MOST_NAMES:
        yield f"{len(proven) - MOST_NAMES} other partners are not to blame either: they passed without it"
