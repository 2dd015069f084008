"""What goes wrong with members of groups: labels, invitations, agents that vanish, ranks that end each other."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from benchmarks.fabric.network import FatTree

from muster_coordinator.model.probes import Site

TYPES = ("new", "old", "oldest")
"""The machine types of the generations, the newest first."""


class HangEnding(StrEnum):
    """How a run ends that hangs: the library aborts each rank, or each agent kills its ranks at the deadline."""

    ABORTED = "aborted"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, kw_only=True)
class Membership:
    """What goes wrong, as shares and probabilities.

    `mislabelled` is the share of nodes with the label of another leaf, `unlabelled` that of nodes without one; `labels`
    has further wrong labels: a leaf for a node. With `typed`, each node declares its machine type. `declining` is the
    share of nodes that are busy and decline every invitation. An agent vanishes in a run with probability `vanishing`.
    If the ranks of a node crash, those of each other member are killed, too, with probability `drags`, and else fail
    with an exception.
    """

    mislabelled: float = 0.0
    unlabelled: float = 0.0
    labels: Mapping[int, int] = field(default_factory=dict)
    typed: bool = False
    declining: float = 0.0
    vanishing: float = 0.0
    drags: float = 0.0
    hang_ending: HangEnding = HangEnding.ABORTED


def name_of(node: int) -> str:
    """The name of a node by its number."""
    return f"n{node}"


def leaf_name(leaf: int) -> str:
    """The label of a leaf by its number."""
    return f"leaf{leaf}"


def labelled(
    network: FatTree, membership: Membership, lots: random.Random, generation: Sequence[int] = ()
) -> dict[str, Site]:
    """The sites as a coordinator knows them, in topology order: those without a label first, then by rack and name.

    A node with a wrong label is labelled as if it stood in the first rack of that leaf. `generation` has that of each
    node; without it, all are of the newest.
    """
    leaf_of, rack_of = network.leaf_of.tolist(), network.rack_of.tolist()
    first = {leaf: leaf_of.index(leaf) for leaf in set(leaf_of)}
    nodes = range(network.nodes)
    wrong = dict(membership.labels)
    for node in lots.sample(nodes, round(membership.mislabelled * network.nodes)):
        wrong[node] = lots.choice([leaf for leaf in first if leaf != leaf_of[node]] or [leaf_of[node]])
    missing = {*lots.sample(nodes, round(membership.unlabelled * network.nodes))}
    place_of = {node: first[wrong[node]] if node in wrong else node for node in nodes}
    types = {node: TYPES[generation[node] if generation else 0] if membership.typed else None for node in nodes}
    sites = {name_of(node): Site(name_of(node), hardware_kind=types[node]) for node in nodes if node in missing}
    for node in sorted(set(nodes) - missing, key=lambda node: (rack_of[place_of[node]], node)):
        place = place_of[node]
        rack, leaf = f"rack{rack_of[place]}", leaf_name(leaf_of[place])
        sites[name_of(node)] = Site(name_of(node), rack, leaf, hardware_kind=types[node])
    return sites


def busy_nodes(network: FatTree, membership: Membership, lots: random.Random) -> frozenset[str]:
    """The nodes that decline."""
    return frozenset(map(name_of, lots.sample(range(network.nodes), round(membership.declining * network.nodes))))
