"""What the ranks of a group do together: run rounds of every message size, then exchange their results."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from muster.model import Json, Metric
from muster_plugins.checks.collective.operations import OPERATIONS, MessageBuffers
from muster_plugins.checks.collective.peers import Peers
from muster_plugins.checks.collective.rounds import Rounds, last_arrivals, run_rounds
from muster_plugins.shared.collectives.message_sizes import ELEMENT_BYTES
from muster_plugins.shared.collectives.params import CollectiveParams
from muster_plugins.shared.collectives.table import SizeRow
from muster_plugins.shared.nccl.transport import Transport
from muster_plugins.shared.torch_device import Place
from muster_plugins.shared.torch_group import RankGroup

_Count = Annotated[int, Field(ge=0, lt=1 << 53)]
_Transports = Annotated[dict[Annotated[str, Field(max_length=64)], _Count], Field(max_length=64)]

_LATEST = 8
"""Maximum number of late ranks that are named."""


class RankResults(NamedTuple):
    """The results of one rank, by message size from the smallest; it was the last of its peers in `last` rounds."""

    rows: list[SizeRow]
    rounds: list[Rounds]
    last: int

    def add_wrong(self, elements: int) -> None:
        """Adds wrong elements of other messages of the largest size to its own."""
        self.rows[-1] = replace(self.rows[-1], wrong=self.rounds[-1].wrong + elements)

    @property
    def waited(self) -> list[float]:
        """Seconds that the rank waited for the others, over the rounds of all sizes."""
        return [seconds for rounds in self.rounds for seconds in rounds.waited]

    def times(self) -> dict[str, Metric]:
        """Where the rank's own time went: the median wait and, for the largest message, the median work before a round.

        `arrived_last` is the share of rounds in which it came last.
        """
        return {
            "waited_s": median(self.waited),
            "compute_s": median(self.rounds[-1].computed),
            "arrived_last": self.last / len(self.waited),
        }


def run_sizes(
    params: CollectiveParams,
    sizes: Sequence[int],
    place: Place,
    progress: Callable[[str], None],
    peers: Peers,
) -> RankResults:
    """Runs and checks the collective at every size, in bytes."""
    operation, world_size, seen = OPERATIONS[params.collective], len(peers.ranks), RankResults([], [], 0)
    for size in sizes:
        elements = operation.elements(size, world_size)
        progress(f"{params.collective} of {elements * ELEMENT_BYTES} bytes over {world_size} ranks")
        message = MessageBuffers(peers, elements, place.torch_name)
        # No name here refers to the buffers, so they are freed before the next size allocates its own.
        rounds = run_rounds(operation.prepare(message), peers, place, params.iterations, params.warmup)
        seen.rounds.append(rounds)
        seen.rows.append(_row(params, elements, world_size, rounds))
    return seen._replace(last=last_arrivals(seen.waited, peers, place))


def _row(params: CollectiveParams, elements: int, world_size: int, rounds: Rounds) -> SizeRow:
    operation, seconds, size_bytes = OPERATIONS[params.collective], median(rounds.seconds), elements * ELEMENT_BYTES
    algbw = size_bytes / seconds / 1e9
    return SizeRow(
        size_bytes=size_bytes,
        count=elements // (world_size if operation.split else 1),
        redop=operation.redop,
        root=operation.root,
        time_us=seconds * 1e6,
        algbw_gbps=algbw,
        busbw_gbps=algbw * operation.factor(world_size),
        wrong=rounds.wrong,
        in_place=operation.in_place,
    )


class GroupResults(NamedTuple):
    """The results of all ranks: wrong elements by size, transports from the NCCL logs, and late ranks.

    `last` says by rank in how many rounds it came last.
    """

    wrong: list[int]
    last: list[int]
    transports: Counter[Transport]

    def latest(self, nodes: Sequence[str]) -> list[Json]:
        """The ranks that came last most often, with their number of rounds; `nodes` are the node names by rank."""
        often = sorted(range(len(self.last)), key=self.last.__getitem__, reverse=True)[:_LATEST]
        return [{"rank": rank, "node": nodes[rank], "rounds": self.last[rank]} for rank in often if self.last[rank]]


def exchange_results(group: RankGroup, seen: RankResults, transports: Counter[Transport]) -> GroupResults:
    """Sends this rank's results to all ranks and returns the results of all of them."""
    own = ([row.wrong or 0 for row in seen.rows], seen.last, dict(transports))
    counts = Annotated[list[_Count], Field(min_length=len(seen.rows), max_length=len(seen.rows))]
    results = group.all_gather("seen", own, tuple[counts, _Count, _Transports])
    wrong, last, logged = zip(*results, strict=True)
    return GroupResults(
        wrong=[sum(column) for column in zip(*wrong, strict=True)],
        last=list(last),
        transports=sum(map(Counter, logged), Counter()),
    )
