"""A sentence about the missing evidence for each inconclusive node, and for each node behind a convicted leaf."""

from collections.abc import Iterator, Mapping
from itertools import islice

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.hardware import FEWEST_OF_HARDWARE
from muster_coordinator.localize.wording.odds import odds_words

MOST_NAMES = 3
"""Maximum number of partners that a sentence names. The other partners would do as well."""

NOTHING_TO_COMPARE = (
    "it worked, but nothing says how fast it should be: sweep it with {}, or set a reference for this check"
    " (muster reference set)"
)
TOO_FEW_OF_ITS_KIND = (
    "no node with its hardware ({}) has passed, and this sweep has too few of them ({}) to compare them with each"
    " other: sweep at least {} together, or set a reference for this check (muster reference set)"
)
THREE_NODES = 3
"""With two, a slow run may be the fault of either, and there is no other run to compare it with."""

SUCH_AS = "such as GPU model, power limit or driver"
NO_PARTNER = "with another node that passes; this sweep has found none"


def missing_evidence(diagnosis: Diagnosis) -> Mapping[str, str]:
    """The evidence that each node lacks, in topology order."""
    nodes = diagnosis.leaves.behind.union(diagnosis.inconclusive, diagnosis.uncompared)
    return {node: _missing(diagnosis, node) for node in diagnosis.evidence.sites if node in nodes}


def _missing(diagnosis: Diagnosis, node: str) -> str:
    if node in diagnosis.uncompared:
        return _missing_comparison(diagnosis)
    return _missing_with_others(diagnosis, node) or _missing_itself(diagnosis, node)


def _missing_comparison(diagnosis: Diagnosis) -> str:
    few = len(diagnosis.evidence.sites) < THREE_NODES
    return NOTHING_TO_COMPARE.format("a third node" if few else "two nodes that pass")


def _missing_with_others(diagnosis: Diagnosis, node: str) -> str | None:
    """The evidence that a node lacks like others of its leaf or hardware; None if others do not lack it."""
    site = diagnosis.evidence.sites[node]
    if node in diagnosis.leaves.behind:
        return f"it is behind leaf {site.leaf}, which is convicted: sweep it again after the repair"
    if diagnosis.evidence.is_of_unproven_hardware(node):
        kind = site.hardware_kind
        return TOO_FEW_OF_ITS_KIND.format(kind, len(diagnosis.evidence.hardware.rare[kind]), FEWEST_OF_HARDWARE)
    if site.leaf is not None and site.leaf in diagnosis.leaves.suspected:
        odds = odds_words(diagnosis.leaves.log_ratio(site.leaf), diagnosis.leaves.bound, "runs inside it", "leaf")
        return f"its whole leaf {site.leaf} is suspected{odds}: nodes of other leaves must pass first"
    return _missing_as_it_fails_alike(diagnosis, node)


def _missing_as_others_may_be_as_slow(others: frozenset[str]) -> str:
    if others:
        return f"alone it is as slow as {_names(others)}: look what they have in common, {SUCH_AS}"
    return f"it is slow alone, and too few others have shown what is normal: look what sets it apart, {SUCH_AS}"


def _missing_as_it_fails_alike(diagnosis: Diagnosis, node: str) -> str | None:
    """What to find out about a node that fails just like others; None if it does not."""
    slow = frozenset(diagnosis.evidence.hardware.slow_alike)
    if node in slow:
        return _missing_as_others_may_be_as_slow(slow - {node})
    if node in diagnosis.links.one_switch.perhaps_behind:
        return "it fails like several nodes of another leaf: check where it stands"
    if node in diagnosis.links.one_switch.alike_at_a_leaf:
        leaf = diagnosis.evidence.sites[node].leaf
        return f"other nodes of leaf {leaf} fail like it: inspect the switch, and check which nodes stand there"
    if node in diagnosis.links.one_switch.alike:
        others = _names(diagnosis.links.one_switch.alike - {node})
        if diagnosis.evidence.sites[node].leaf is not None:
            return (
                f"it fails like {others}, and each is alone at its leaf: inspect these links, and what the leaves share"
            )
        return f"it fails like {others}: declare which nodes share a leaf, because their switch may be bad"
    return None


def _missing_itself(diagnosis: Diagnosis, node: str) -> str:
    if diagnosis.evidence.histories[node].unclear and not diagnosis.nodes.is_suspect(node):
        return f"it reached too little to exclude a loss: it needs a better run {_company(diagnosis, node)}"
    if not diagnosis.nodes.is_suspect(node):
        return f"it needs a good run {_company(diagnosis, node)}"
    if node in diagnosis.clearance.spoilers:
        return "it was bad with several nodes that are bad with no other node: inspect it, or run it alone"
    if diagnosis.evidence.histories[node].own_failures:
        return f"it failed by itself{_odds(diagnosis, node)}: run it again {_company(diagnosis, node)}"
    odds = odds_words(diagnosis.links.log_ratio(node), diagnosis.nodes.bound, "these runs", "link")
    return f"it failed with others{odds}: {_partners_missing(diagnosis, node)}"


def _odds(diagnosis: Diagnosis, node: str) -> str:
    """How far the runs of a node that was bad alone are from a conviction."""
    if not diagnosis.evidence.histories[node].bad_alone:
        return ""
    return odds_words(diagnosis.nodes.log_ratio(node), diagnosis.nodes.bound, "its runs", "node")


def _company(diagnosis: Diagnosis, node: str) -> str:
    """Alone, or the partners with which a node should run."""
    if diagnosis.evidence.thresholds.only_alone and diagnosis.evidence.runs:
        return "alone"
    partners = [*islice(_partners(diagnosis, node), MOST_NAMES)]
    return f"with a node that has passed, such as {' or '.join(partners)}" if partners else NO_PARTNER


def _partners_missing(diagnosis: Diagnosis, node: str) -> str:
    """The number of further bad runs with partners that would convict it, or what else would."""
    missing = diagnosis.links.partners_missing(node)
    if not missing and diagnosis.links.may_be_its_uplinks(node):
        return "declare which nodes share its leaf, because others may only fill the links of that leaf"
    if not missing and diagnosis.links.lacks_control(node):
        return f"it needs one more run beside other nodes of leaf {diagnosis.evidence.sites[node].leaf} that pass"
    missing = max(missing, 1)
    times = "one more run" if missing == 1 else f"{missing} more runs, each"
    return f"it needs at least {times} {_company(diagnosis, node)}"


def _partners(diagnosis: Diagnosis, node: str) -> Iterator[str]:
    """The partners of its kind of hardware that have not run with `node` yet."""
    history, hardware = diagnosis.evidence.histories[node], diagnosis.evidence.hardware
    met = {other for run in (*history.bad, *history.void) for other in run.others(node)}
    alike = (other for other in diagnosis.partners if hardware.kind_of(other) == hardware.kind_of(node))
    return (other for other in alike if other not in met)


def _names(nodes: frozenset[str]) -> str:
    shown = sorted(nodes)[:MOST_NAMES]
    return ", ".join(shown) + (f" and {len(nodes) - len(shown)} others" if len(nodes) > len(shown) else "")
