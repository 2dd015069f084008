"""The order of nodes in a list, and groups of nodes with what is wrong in each. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable

from muster.errors import Refused, unknown
from muster.model import Data, Health, ServiceState
from muster_coordinator.topology.selection_term import KEYS, LABEL, Candidate, Term
from muster_coordinator.views.node_list import HEALTH_ORDER, SERVICE_ORDER

NAME, URGENCY = "name", "urgency"

SortKey = tuple[int, str, str]
"""A rank, a value and the name of the node."""


class NodeGroup(Data):
    """The nodes that have the same value, such as those of a rack; null for those that have none.

    `lost` nodes are counted under their health, too.
    """

    value: str | None
    nodes: int
    health: dict[Health, int]
    service: dict[ServiceState, int]
    lost: int


def sort_key(sort: str) -> Callable[[Candidate], SortKey]:
    """The sort key of a node: by `urgency`, what is wrong first, or by a key of selections, those without it last.

    Raises Refused for an unknown one.
    """
    if sort == URGENCY:
        return lambda node: (_rank(node), "", node.name)
    read = _reader(sort, (URGENCY,))

    def key(node: Candidate) -> SortKey:
        value = read(node)
        return int(value is None), value or "", node.name

    return key


def grouped(nodes: Iterable[Candidate], by: str) -> list[NodeGroup]:
    """The nodes in groups of the same value for a key of selections, by value; first those that have none.

    Raises Refused for an unknown key.
    """
    members = members_by(nodes, by)
    return [_group(value, members[value]) for value in sorted(members, key=lambda value: value or "")]


def members_by(nodes: Iterable[Candidate], by: str) -> dict[str | None, list[Candidate]]:
    """The nodes by their value for a key of selections. Raises Refused for an unknown key."""
    read = _reader(by)
    members: dict[str | None, list[Candidate]] = {}
    for node in nodes:
        members.setdefault(read(node), []).append(node)
    return members


def _group(value: str | None, nodes: list[Candidate]) -> NodeGroup:
    return NodeGroup(
        value=value,
        nodes=len(nodes),
        health=dict(Counter(node.health for node in nodes if node.health is not None)),
        service=dict(Counter(node.service for node in nodes if node.service is not None)),
        lost=sum(node.lost for node in nodes),
    )


def _rank(node: Candidate) -> int:
    """As `muster node list` sorts: by health, of equal health lost nodes first, then nodes out of service.

    Nodes that have left the fleet come last.
    """
    health = HEALTH_ORDER.index(node.health or Health.UNKNOWN)
    service = SERVICE_ORDER.index(node.service or ServiceState.ACCEPTING)
    rank = node.left * len(HEALTH_ORDER) + health
    return (rank * 2 + (not node.lost)) * len(SERVICE_ORDER) + service


def _reader(key: str, more: tuple[str, ...] = ()) -> Callable[[Candidate], str | None]:
    """Reads the first value of a key; None for a node that has none, or an empty one."""
    if key not in KEYS and not (key.startswith(LABEL) and key != LABEL):
        raise Refused(unknown("key", key, [*more, *KEYS, f"{LABEL}KEY"]))
    term = Term(key, ())
    return lambda node: min(term.read(node), default="") or None
