"""Measures the rails of a group, one after the other.

A rail consists of the ranks with the same local rank on every node. In a rail-optimised fabric, the network adapters of
a rail are on the same leaf switch. All rails at once would share the buses of each node and the switches above the
leaves, and a collective over all of them is as slow as the slowest rail. A rail that runs alone shows its own
bandwidth, and a single slow rail stands out. Compare rails only with each other.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from muster.model import Metric
from muster_plugins.checks.collective.measurement import RankResults
from muster_plugins.checks.collective.peers import Peers
from muster_plugins.shared.collectives.table import median_busbw
from muster_plugins.shared.torch_group import RankGroup
from muster_plugins.shared.unmeasured import Unmeasured

Rail = tuple[int, ...]
"""The ranks of a rail, one on each node, in order."""


class RailResults(NamedTuple):
    """Facts about all rails, and the number of wrong elements that this rank found on its own rail."""

    metrics: dict[str, Metric]
    wrong: int


def rails_of(nodes: Sequence[str], local_ranks: Sequence[int]) -> list[Rail]:
    """The rails, in order of their local ranks. Raises Unmeasured if there are no rails to compare.

    `nodes` and `local_ranks` hold one value for each rank.
    """
    counts = Counter(nodes).most_common()
    if len(counts) < 2:
        raise Unmeasured("no_rails", "rails run between nodes: use a group of at least two nodes")
    (most, many), *_, (fewest, few) = counts
    if few < many:
        raise Unmeasured(
            "no_rails", f"rails need the same number of ranks on every node: {fewest} has {few}, {most} has {many}"
        )
    rails = defaultdict[int, list[int]](list)
    for rank, local_rank in enumerate(local_ranks):
        rails[local_rank].append(rank)
    return [tuple(rails[local_rank]) for local_rank in sorted(rails)]


def run_in_turn(
    rails: Sequence[Rail], group: RankGroup, timeout_s: float, run: Callable[[Peers], RankResults]
) -> RailResults:
    """Runs the rails one after the other, each for at most `timeout_s` seconds; does nothing without rails.

    `rail_busbw_gbps` is the bus bandwidth of each rail in GB/s, as its slowest rank saw it.
    """
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    if not rails:
        return RailResults({}, 0)
    own = []
    for number, ranks in enumerate(rails):
        process_group = dist.new_group([*ranks], timeout=group.timeout)  # a call for all ranks of the whole group
        if group.rank in ranks:
            own.append(run(Peers(ranks.index(group.rank), ranks, process_group)))
        group.wait_for(ranks, f"rail {number}", timeout_s)
    (seen,) = own
    results = group.all_gather("rails", median_busbw(seen.rows), Annotated[float, Field(ge=0, allow_inf_nan=False)])
    reached = [min(results[rank] for rank in ranks) for ranks in rails]
    return RailResults({"rail_busbw_gbps": [*reached]}, sum(row.wrong or 0 for row in seen.rows))
