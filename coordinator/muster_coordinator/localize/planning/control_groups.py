"""The controls of a round: groups of healthy nodes that show what the others in this round should reach.

Example: a4 runs alone, and three healthy nodes run alone beside it. In the next round a4 runs with b1, and a2 with a3:
if they are slow, too, the switch of leaf a is bad, and not the link of a4.

Takes time in proportion to the probes of the round, plus a walk over the free partners for each control.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.evidence.slow_runs import MANY_ALONE
from muster_coordinator.localize.planning.partners import PartnerPool
from muster_coordinator.model.probes import Probe

Pools = Mapping[ComparedKind, PartnerPool]

ALONE = "{} has passed and shows what a node alone should reach"
ALONE_AGAIN = "{} was slower alone than other nodes that have passed, perhaps by chance"
UNSEEN = "{} may be as slow alone as a suspect, and of the same kind"
ACROSS = "{} and {} have passed and show what nodes of different leaves reach while few groups run"
AT_LEAF = "{} and {} have passed and show whether leaf {} is bad while {} runs"


def control_groups(probes: Sequence[Probe], diagnosis: Diagnosis, pools: Pools) -> list[Probe]:
    """The controls beside these probes, from the healthy nodes in the pools that are free."""
    found = [*_alone(probes, diagnosis.evidence, pools), *_at_leaves(probes, diagnosis, pools)]
    found += _across([*probes, *found], diagnosis.evidence, pools)
    return [*found, *_unseen_alone(diagnosis, pools)]


def alone_again(suspects: Iterable[str], evidence: GroupEvidence) -> Iterator[Probe]:
    """Controls for these suspects whose run alone chance may have slowed."""
    for kind in dict.fromkeys(map(evidence.hardware.kind_of, suspects)):
        for node in evidence.thresholds.among(kind).straggling_controls:
            yield Probe((node,), ALONE_AGAIN.format(node))


def _alone(probes: Sequence[Probe], evidence: GroupEvidence, pools: Pools) -> Iterator[Probe]:
    """Nodes that run alone beside suspects of their kind.

    Rule: in a fleet that is too small for controls, nearly all nodes run alone. Prevents: of four nodes, a was bad with
    b, c and d. Only d had no bad run, so nobody would know whether a or its link is bad.
    """
    alone = [node for probe in probes if len(probe.members) == 1 for node in probe.members]
    for kind in dict.fromkeys(map(evidence.hardware.kind_of, alone)):
        thresholds = evidence.thresholds.among(kind)
        missing = thresholds.controls_missing
        found = [node for _ in range(missing) if (node := pools[kind].take_spotless()) is not None]
        if len(found) < missing:
            found += pools[kind].rest()[: MANY_ALONE * thresholds.liars - len(found)]
            pools[kind].withdraw(found)
        yield from (Probe((node,), ALONE.format(node)) for node in found)


def _unseen_alone(diagnosis: Diagnosis, pools: Pools) -> Iterator[Probe]:
    """Nodes that run alone because too few have shown whether a slow one is of a kind of its own."""
    if not diagnosis.abilities.alone:
        return
    for alone in diagnosis.evidence.alone.values():
        if alone.missing:
            free = [node for pool in pools.values() for node in pool.rest() if node in alone.unseen][: alone.missing]
            for pool in pools.values():
                pool.withdraw(free)
            yield from (Probe((node,), UNSEEN.format(node)) for node in free)


def _across(probes: Sequence[Probe], evidence: GroupEvidence, pools: Pools) -> Iterator[Probe]:
    """Pairs across leaves beside other such pairs of their kind."""
    pairs = [probe.members for probe in probes if len(probe.members) > 1]
    across = [members for members in pairs if not evidence.fabric.is_inside(members)]
    for kind in dict.fromkeys(evidence.hardware.kind_of(node) for node, *_ in across):
        for _ in range(evidence.thresholds.among(kind).control_pairs_missing(len(pairs) - 1)):
            if (pair := pools[kind].take_spotless_pair()) is not None:
                yield Probe(pair, ACROSS.format(*pair))


def _at_leaves(probes: Sequence[Probe], diagnosis: Diagnosis, pools: Pools) -> Iterator[Probe]:
    """A pair inside the leaf of each node whose link these probes may convict."""
    sites, tried = diagnosis.evidence.sites, set[str | None]()
    for node in (node for probe in probes if len(probe.members) > 1 for node in probe.members):
        leaf, pool = sites[node].leaf, pools[diagnosis.evidence.hardware.kind_of(node)]
        if leaf is None or leaf in tried or not diagnosis.links.needs_control(node):
            continue
        tried.add(leaf)
        if (one := pool.take_at(leaf, set())) and (other := pool.take_at(leaf, set())):
            yield Probe((one, other), AT_LEAF.format(one, other, leaf, node))
