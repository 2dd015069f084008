"""How fast each of two nodes sends while the other one only receives.

A collective sends both ways at once and is as slow as the slower direction. This measurement tells a node that is slow
only when it sends, or only when it receives, from a node that is slow both ways.
"""

from collections.abc import Sequence
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from muster.model import Metric
from muster_plugins.checks.collective.operations import MessageBuffers, one_way
from muster_plugins.checks.collective.peers import everyone
from muster_plugins.checks.collective.rounds import run_rounds
from muster_plugins.shared.collectives.message_sizes import ELEMENT_BYTES
from muster_plugins.shared.torch_device import Place
from muster_plugins.shared.torch_group import RankGroup

_ITERATIONS, _WARMUP = 3, 1
"""Rounds in each direction. Each sends half of the message, so both directions cost two to four rounds of the
collective.
"""

Sides = tuple[list[int], list[int]]
"""The ranks of the two nodes; the ranks at the same place in both tuples are partners."""


class SendRates(NamedTuple):
    """Facts about this rank's node, and the number of wrong elements that this rank found."""

    metrics: dict[str, Metric]
    wrong: int


def send_one_way(group: RankGroup, size_bytes: int, place: Place) -> SendRates:
    """Each node in turn sends half of `size_bytes` to the other. Nothing is sent unless the group is two equal nodes.

    Each rank sends its part to its partner. `sent_gbps` is the rate at which this rank's node sent, in GB/s: all its
    bytes over the time until the last part had arrived, as the median of the rounds.
    """
    sides = two_sides(group.nodes)
    if sides is None:
        return SendRates({}, 0)
    part_bytes = max(1, size_bytes // 2 // len(sides[0]) // ELEMENT_BYTES) * ELEMENT_BYTES
    received_s, wrong = _take_turns(sides, group, part_bytes, place)
    told = group.all_gather("received", received_s, list[Annotated[float, Field(gt=0, allow_inf_nan=False)]])
    others = next(side for side in sides if group.rank not in side)
    node_s = median(max(part_s) for part_s in zip(*(told[rank] for rank in others), strict=True))
    return SendRates({"sent_gbps": part_bytes * len(others) / node_s / 1e9}, wrong)


def _take_turns(sides: Sides, group: RankGroup, part_bytes: int, place: Place) -> tuple[list[float], int]:
    """The seconds that this rank's part took to arrive, by round, and the wrong elements in both directions.

    The sender may return while its message is still on its way, so the receiver reports the time.
    """
    peers = everyone(group.rank, len(group.nodes))
    message = MessageBuffers(peers, part_bytes // ELEMENT_BYTES, place.torch_name)
    received_s, wrong = list[float](), 0
    for senders, receivers in (sides, sides[::-1]):
        sender, receiver = next(pair for pair in zip(senders, receivers, strict=True) if group.rank in pair)
        rounds = run_rounds(one_way(message, sender, receiver), peers, place, _ITERATIONS, _WARMUP)
        wrong += rounds.wrong
        if group.rank == receiver:
            received_s = rounds.seconds
    return received_s, wrong


def two_sides(nodes: Sequence[str]) -> Sides | None:
    """The two sides, given the node of each rank; None unless there are two nodes with the same number of ranks."""
    sides = [[rank for rank, node in enumerate(nodes) if node == name] for name in dict.fromkeys(nodes)]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        return None
    return sides[0], sides[1]
