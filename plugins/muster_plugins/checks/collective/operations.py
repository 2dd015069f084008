"""The collectives that can be measured: what each rank sends, what must arrive, and the calls to torch.

Buffers are filled with numbers that identify the sender and the place in the message: the position plus a shift for
each sender, modulo a prime, so that no chunk with a power-of-two size looks like its neighbour. Their sums are whole
numbers that fp32 holds exactly in any order of addition. Only functions that run in a child process import torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from muster_plugins.checks.collective.peers import Peers
from muster_plugins.shared.collectives.message_sizes import ELEMENT_BYTES
from muster_plugins.shared.collectives.params import CollectiveName

if TYPE_CHECKING:
    import torch

_PERIOD = 4093
"""A prime. Sums of its numbers over 4096 ranks stay below 2^24, up to which fp32 holds every whole number."""

_APART = 61
"""Shift between the messages to two successive ranks; any number that does not divide the period works."""

_COMPARED_ROWS = (1 << 24) // _PERIOD
"""Repetitions of a pattern that are compared at once. CUDA counts differences in eight bytes for each element."""

_WORKING_BYTES = {"cuda": 2 << 30, "cpu": 1 << 24}
"""Memory that a rank needs besides its buffers: for the comparison, and for NCCL, which takes about 1 GiB on nodes of
eight GPUs; NVIDIA gives no figure.
"""

_EMPTY = -1.0
"""A value that occurs in no pattern: it marks elements to which nothing has been written."""


@dataclass(frozen=True, slots=True)
class PreparedCollective:
    """A collective with its buffers on one rank.

    A buffer consists of equal parts, and each part holds a pattern that repeats. `received` is `sent` where torch
    writes the result into its argument.
    """

    sent: "torch.Tensor"
    sends: Sequence["torch.Tensor"]
    received: "torch.Tensor"
    expects: Sequence["torch.Tensor"]
    run: Callable[[], object]

    def refill(self) -> None:
        """Fills the buffer to send and marks the buffer to receive as empty."""
        self.received.fill_(_EMPTY)
        for part, pattern in zip(self.sent.chunk(len(self.sends)), self.sends, strict=True):
            whole, rest = _tiles(part, pattern)
            whole.copy_(pattern.expand_as(whole))
            rest.copy_(pattern[: rest.numel()])

    def wrong(self) -> "torch.Tensor":
        """The number of wrong elements, as a tensor, so that the host need not wait for the device."""
        import torch  # noqa: PLC0415  only child processes may load torch

        wrong = torch.zeros((), dtype=torch.int64, device=self.received.device)
        for part, pattern in zip(self.received.chunk(len(self.expects)), self.expects, strict=True):
            whole, rest = _tiles(part, pattern)
            for rows in torch.split(whole, _COMPARED_ROWS):
                wrong += torch.count_nonzero(rows != pattern)
            wrong += torch.count_nonzero(rest != pattern[: rest.numel()])
        return wrong


def _tiles(part: "torch.Tensor", pattern: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
    """The part as rows of the pattern's length, and the remainder after the last row."""
    whole = part.numel() // pattern.numel() * pattern.numel()
    return part[:whole].view(-1, pattern.numel()), part[whole:]


class MessageBuffers:
    """Prepares the exercises of a rank: the patterns and buffers of a message of `elements` elements in all.

    `rank` and `ranks` count the peers from 0; only the calls to torch need the numbers in the whole group.
    """

    def __init__(self, peers: Peers, elements: int, torch_name: str) -> None:
        import torch  # noqa: PLC0415  only child processes may load torch

        self.peers = peers
        self.rank = peers.position
        self.ranks = range(len(peers.ranks))
        self.elements = elements
        self.each = elements // len(peers.ranks)
        self._torch_name = torch_name
        self._counting = torch.arange(2 * _PERIOD, dtype=torch.float32, device=torch_name) % _PERIOD

    def buffer(self, elements: int) -> "torch.Tensor":
        """A buffer that is not filled yet."""
        import torch  # noqa: PLC0415  only child processes may load torch

        return torch.empty(elements, dtype=torch.float32, device=self._torch_name)

    def pattern(self, sender: int, receiver: int = 0) -> "torch.Tensor":
        """The pattern that `sender` sends to `receiver`."""
        return self._counting.narrow(0, (sender + _APART * receiver) % _PERIOD, _PERIOD)

    def total(self, receiver: int = 0) -> "torch.Tensor":
        """The sum of the patterns that all ranks send to `receiver`."""
        total = self.pattern(0, receiver).clone()
        for sender in self.ranks[1:]:
            total += self.pattern(sender, receiver)
        return total

    def nothing(self) -> "torch.Tensor":
        """The pattern of a rank that sends nothing."""
        return self._counting.new_full((_PERIOD,), _EMPTY)


def _all_reduce(message: MessageBuffers) -> PreparedCollective:
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    buffer, group = message.buffer(message.elements), message.peers.process_group
    sends, expects = [message.pattern(message.rank)], [message.total()]
    return PreparedCollective(buffer, sends, buffer, expects, lambda: dist.all_reduce(buffer, group=group))


def _broadcast(message: MessageBuffers) -> PreparedCollective:
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    buffer, of_root, peers = message.buffer(message.elements), message.pattern(0), message.peers
    sends = [of_root if message.rank == 0 else message.nothing()]
    run = partial(dist.broadcast, buffer, src=peers.ranks[0], group=peers.process_group)
    return PreparedCollective(buffer, sends, buffer, [of_root], run)


def _all_gather(message: MessageBuffers) -> PreparedCollective:
    gather = _newest("all_gather_single", "all_gather_into_tensor")
    sent, received, group = message.buffer(message.each), message.buffer(message.elements), message.peers.process_group
    expects = [message.pattern(sender) for sender in message.ranks]
    return PreparedCollective(
        sent, [message.pattern(message.rank)], received, expects, lambda: gather(received, sent, group=group)
    )


def _reduce_scatter(message: MessageBuffers) -> PreparedCollective:
    scatter = _newest("reduce_scatter_single", "reduce_scatter_tensor")
    sent, received, group = message.buffer(message.elements), message.buffer(message.each), message.peers.process_group
    sends = [message.pattern(message.rank, receiver) for receiver in message.ranks]
    return PreparedCollective(
        sent, sends, received, [message.total(message.rank)], lambda: scatter(received, sent, group=group)
    )


def _alltoall(message: MessageBuffers) -> PreparedCollective:
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    sent, received, group = (
        message.buffer(message.elements),
        message.buffer(message.elements),
        message.peers.process_group,
    )
    sends = [message.pattern(message.rank, receiver) for receiver in message.ranks]
    expects = [message.pattern(sender, message.rank) for sender in message.ranks]
    return PreparedCollective(
        sent, sends, received, expects, lambda: dist.all_to_all_single(received, sent, group=group)
    )


def _sendrecv(message: MessageBuffers) -> PreparedCollective:
    """Each rank sends to the next one, the last to the first."""
    following, preceding = ((message.rank + step) % len(message.ranks) for step in (1, -1))
    sent, received = message.buffer(message.elements), message.buffer(message.elements)
    run = _point_to_point(message, [(sent, following)], [(received, preceding)])
    return PreparedCollective(sent, [message.pattern(message.rank)], received, [message.pattern(preceding)], run)


def one_way(message: MessageBuffers, sender: int, receiver: int) -> PreparedCollective:
    """One rank sends to another one, which sends nothing; both ranks call it."""
    buffer, pattern = message.buffer(message.elements), message.pattern(sender)
    if message.rank == sender:
        return PreparedCollective(
            buffer, [pattern], buffer, [pattern], _point_to_point(message, [(buffer, receiver)], [])
        )
    return PreparedCollective(
        buffer, [message.nothing()], buffer, [pattern], _point_to_point(message, [], [(buffer, sender)])
    )


_Message = tuple["torch.Tensor", int]
"""A buffer, and the rank to which it is sent or from which it is received."""


def _point_to_point(message: MessageBuffers, sent: list[_Message], received: list[_Message]) -> Callable[[], None]:
    """Sends and receives at the same time."""
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    ranks, group = message.peers.ranks, message.peers.process_group
    operations = [dist.P2POp(dist.isend, buffer, ranks[rank], group) for buffer, rank in sent]
    operations += [dist.P2POp(dist.irecv, buffer, ranks[rank], group) for buffer, rank in received]

    def run() -> None:
        for work in dist.batch_isend_irecv(operations):
            work.wait()

    return run


def _newest(name: str, before_2_13: str) -> Callable[..., Any]:
    """The function of torch.distributed with this name, or with the name that torch had for it before 2.13."""
    import torch.distributed as dist  # noqa: PLC0415  only child processes may load torch

    found: Callable[..., Any] = getattr(dist, name, None) or getattr(dist, before_2_13)
    return found


class Operation(NamedTuple):
    """A collective: how to prepare it, and what nccl-tests prints and calculates for it.

    busbw is algbw times `factor`, a function of the number of ranks; `split` means that a message has a part for each
    rank; `buffers` is the memory of a rank as a multiple of the message. `redop` and `root` are columns of its table.
    `in_place`: torch writes the result into the buffer that is sent.
    """

    prepare: Callable[[MessageBuffers], PreparedCollective]
    factor: Callable[[int], float]
    buffers: int
    split: bool
    redop: str = "none"
    root: int = -1
    in_place: bool = False

    def elements(self, size_bytes: int, world_size: int) -> int:
        """The elements in a message of at most `size_bytes`; at least one for each rank that has a part in it."""
        parts = world_size if self.split else 1
        return max(1, size_bytes // ELEMENT_BYTES // parts) * parts

    def most_bytes(self, room_bytes: int, backend: str) -> int:
        """The largest message for which a rank needs at most `room_bytes` of memory; 0 if none is small enough."""
        return max(0, int((room_bytes - _WORKING_BYTES[backend]) / self.buffers))


def _around_a_ring(world_size: int) -> float:
    return (world_size - 1) / world_size


def _there_and_back(world_size: int) -> float:
    return 2 * (world_size - 1) / world_size


def _straight(_world_size: int) -> float:
    return 1.0


OPERATIONS: dict[CollectiveName, Operation] = {
    "all_reduce": Operation(_all_reduce, _there_and_back, buffers=1, split=False, redop="sum", in_place=True),
    "all_gather": Operation(_all_gather, _around_a_ring, buffers=2, split=True),
    "reduce_scatter": Operation(_reduce_scatter, _around_a_ring, buffers=2, split=True, redop="sum"),
    "alltoall": Operation(_alltoall, _around_a_ring, buffers=2, split=True),
    "broadcast": Operation(_broadcast, _straight, buffers=1, split=False, root=0, in_place=True),
    "sendrecv": Operation(_sendrecv, _straight, buffers=2, split=False),
}
"""Factors and sizes as in the source of NVIDIA/nccl-tests."""
