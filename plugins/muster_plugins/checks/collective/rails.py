"""The rails of a group, measured one after the other.

A rail is what has the same local rank on every node: where a fabric is built by rails, the network adapters of a rank
and of its peers on other nodes are on the same leaf switch. All rails at once would share the buses of each node and
the switches above the leaves, and a collective over all of them is as slow as the slowest. By itself a rail shows what
it can do, and that it is the only one that is slow. Rails are to be compared with each other only.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from muster.model import Metric
from muster_plugins.checks.collective.measurement import Seen
from muster_plugins.checks.collective.peers import Peers
from muster_plugins.checks.collective.table import median_busbw
from muster_plugins.shared.torch_group import Group
from muster_plugins.shared.unmeasured import Unmeasured

Rail = tuple[int, ...]
"""The ranks of a rail, one on each node, in order."""


class Apart(NamedTuple):
    """What is known of all rails, and how many wrong elements this rank found on its own."""

    metrics: dict[str, Metric]
    wrong: int


def rails_of(nodes: Sequence[str], local_ranks: Sequence[int]) -> list[Rail]:
    """The rails, in order of their local ranks; Unmeasured where there are none to compare.

    `nodes` and `local_ranks` are those of each rank.
    """
    counts = Counter(nodes).most_common()
    if len(counts) < 2:
        raise Unmeasured("no_rails", "rails run between nodes: that needs a group of at least two")
    (most, many), *_, (fewest, few) = counts
    if few < many:
        raise Unmeasured("no_rails", f"rails need as many ranks on every node: {fewest} has {few}, {most} has {many}")
    rails = defaultdict[int, list[int]](list)
    for rank, local_rank in enumerate(local_ranks):
        rails[local_rank].append(rank)
    return [tuple(rails[local_rank]) for local_rank in sorted(rails)]


def run_in_turn(rails: Sequence[Rail], group: Group, timeout_s: float, run: Callable[[Peers], Seen]) -> Apart:
    """Runs each rail when it is its turn, which takes at most `timeout_s` seconds; without rails, nothing.

    `rail_busbw_gbps` is the bus bandwidth of each rail in GB/s, as its slowest rank saw it.
    """
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    if not rails:
        return Apart({}, 0)
    results = []
    for number, ranks in enumerate(rails):
        process_group = dist.new_group([*ranks], timeout=group.timeout)  # which takes all ranks of the whole group
        if group.rank in ranks:
            results.append(run(Peers(ranks.index(group.rank), ranks, process_group)))
        group.wait_for(ranks, f"rail {number}", timeout_s)
    (seen,) = results
    told = group.all_gather("rails", median_busbw(seen.rows), Annotated[float, Field(ge=0, allow_inf_nan=False)])
    reached = [min(told[rank] for rank in ranks) for ranks in rails]
    return Apart({"rail_busbw_gbps": [*reached]}, sum(row.wrong or 0 for row in seen.rows))
