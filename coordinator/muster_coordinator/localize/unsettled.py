"""What would settle the nodes that are neither cleared nor at fault, in a sentence for each."""

from collections.abc import Iterator, Mapping
from itertools import islice

from muster_coordinator.localize.culprits import Judgement

MOST_NAMES = 3
"""More names than these help nobody."""


def unsettled(judgement: Judgement) -> Mapping[str, str]:
    """By node, in topology order, what is missing."""
    open_ = judgement.behind.union(judgement.open)
    return {node: _missing(judgement, node) for node in judgement.evidence.sites if node in open_}


def _missing(judgement: Judgement, node: str) -> str:
    return _missing_with_others(judgement, node) or _missing_itself(judgement, node)


def _missing_with_others(judgement: Judgement, node: str) -> str | None:
    """What a node lacks like others of its leaf or machine type; None when it is alone in this."""
    site = judgement.evidence.sites[node]
    if node in judgement.behind:
        return f"it is behind leaf {site.leaf}, which is at fault: try it again when that is repaired"
    if judgement.evidence.is_odd(node):
        return f"no node of machine type {site.machine_type} has passed, but others have: sweep each type by itself"
    if node in judgement.of_suspected_leaves:
        return f"its whole leaf {site.leaf} is suspected: nodes of other leaves have to pass first"
    if node in judgement.alike:
        others = _names(judgement.alike - {node})
        return f"it fails just as {others} do: say which nodes share a leaf, since their switch may be bad"
    return None


def _missing_itself(judgement: Judgement, node: str) -> str:
    if not judgement.is_suspect(node):
        return f"it needs a good run {_company(judgement, node)}"
    if node in judgement.spoilers:
        return "it was bad with several nodes that are bad with nobody else: inspect it, or run it alone"
    if judgement.evidence.histories[node].own:
        return f"it failed once by itself: run it again {_company(judgement, node)}"
    return f"it failed with others: {_partners_missing(judgement, node)}"


def _company(judgement: Judgement, node: str) -> str:
    """Alone or with whom a node is to be run."""
    if judgement.evidence.only_alone and judgement.evidence.trials:
        return "alone"
    partners = [*islice(_partners(judgement, node), MOST_NAMES)]
    return f"with a node that has passed, such as {' or '.join(partners)}" if partners else _NOBODY


_NOBODY = "with another node that passes; this sweep has found none"


def _partners_missing(judgement: Judgement, node: str) -> str:
    """How many more runs with partners would convict it, if they are bad too."""
    lacking = max(judgement.partners_missing(node), 1)
    times = "one more run" if lacking == 1 else f"{lacking} more runs, each"
    return f"it needs at least {times} {_company(judgement, node)}"


def _partners(judgement: Judgement, node: str) -> Iterator[str]:
    """Who has passed and has not been tried with `node` yet."""
    history = judgement.evidence.histories[node]
    met = {other for trial in (*history.bad, *history.void) for other in trial.others(node)}
    return (other for other in judgement.partners if other not in met)


def _names(nodes: frozenset[str]) -> str:
    shown = sorted(nodes)[:MOST_NAMES]
    return ", ".join(shown) + (f" and {len(nodes) - len(shown)} others" if len(nodes) > len(shown) else "")
